"""Rows of one stream in the order of their time, although packets step back a little."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from gscope.engine.bounds import Bound


class Reorder:
    """Holds rows until the punctuation says that nothing earlier will come.

    Args:
        column: that rows are to be ascending in, NULL first; None to keep them as they come.
    """

    def __init__(self, column: str | None) -> None:
        self._column = column
        self._held: list[pa.Table] = []

    def add(self, table: pa.Table) -> None:
        """Take rows in."""
        self._held.append(table)

    def release(self, bound: Bound) -> pa.Table | None:
        """The rows below ``bound``, in order; None if there are none."""
        if not self._held:
            return None
        held = pa.concat_tables(self._held)
        is_below = pc.fill_null(pc.less(pc.cast(held[self._column], pa.int64()), int(bound)), True)
        below = held.filter(is_below)
        self._held = [held.filter(pc.invert(is_below))] if below.num_rows < held.num_rows else []
        return self._sorted(below) if below.num_rows else None

    def rest(self) -> pa.Table | None:
        """All rows still held, in order; None if there are none."""
        held, self._held = self._held, []
        return self._sorted(pa.concat_tables(held)) if held else None

    def _sorted(self, table: pa.Table) -> pa.Table:
        """Stable: rows of one time stay as they came."""
        if self._column is None:
            return table
        keys = [(self._column, "ascending", "at_start")]
        return table.take(pc.sort_indices(table, sort_keys=keys))
