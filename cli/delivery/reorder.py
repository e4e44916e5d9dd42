"""Rows of one stream in the order of their time, although packets step back a little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.row_order import in_order

if TYPE_CHECKING:
    from gscope.cli.delivery.answer_order import AnswerOrder
    from gscope.engine.watermarks.bounds import Bound


class Reorder:
    """Holds rows until punctuation promises that no earlier row will come.

    Args:
        column: the column to sort by, ascending, NULL first; None to keep rows as they come.
        order: the order of an answer, whose rows with the same time are sorted by all of their
            values; None for rows of packets, which keep their order.
    """

    def __init__(self, column: str | None, order: AnswerOrder | None = None) -> None:
        self._column = column
        self._order = order
        self._held: list[tuple[int, pa.Table]] = []

    @property
    def newest(self) -> int:
        """Return the greatest number of a table with held rows; -1 if none are held."""
        return max((number for number, _ in self._held), default=-1)

    def add(self, table: pa.Table, number: int = 0) -> None:
        """Take rows; rows with the same time leave in the order of their numbers."""
        self._held.append((number, table))

    def release(self, bound: Bound) -> pa.Table | None:
        """Remove and return the rows below ``bound``, in order; None if there are none."""
        below, kept = [], []
        for number, held in sorted(self._held, key=lambda each: each[0]):
            values = pc.cast(held[self._column], pa.int64())
            is_below = pc.fill_null(pc.less(values, int(bound)), True)
            count = pc.sum(is_below).as_py() or 0
            if count:
                below.append(held if count == held.num_rows else held.filter(is_below))
            if count < held.num_rows:
                kept.append((number, held if not count else held.filter(pc.invert(is_below))))
        self._held = kept
        return self._sorted(pa.concat_tables(below)) if below else None

    def rest(self) -> pa.Table | None:
        """Remove and return all held rows, in order; None if there are none."""
        held, self._held = sorted(self._held, key=lambda each: each[0]), []
        return self._sorted(pa.concat_tables([table for _, table in held])) if held else None

    def _sorted(self, table: pa.Table) -> pa.Table:
        """Sort rows; those of packets with the same time keep their order."""
        if self._column is None or table.num_rows < 2:
            return table
        if self._order is not None:
            return in_order(table.combine_chunks(), self._order.temporal, self._order.keys)
        values = pc.cast(table[self._column], pa.int64())
        if not values.null_count and pc.all(pc.greater_equal(values[1:], values[:-1])).as_py():
            return table
        keys = [(self._column, "ascending", "at_start")]
        return table.take(pc.sort_indices(table, sort_keys=keys))
