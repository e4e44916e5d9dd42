"""Rows of one answer that are delivered when none can come before them any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.cli.delivery.order_column import OrderColumn
from gscope.engine.sinks.row_order import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gscope.engine.watermarks.bounds import Bound


class HeldRows:
    """Puts rows of several steps into one order, whatever the step in which they came.

    Where the rows of one value of the first temporal column come in several steps, as those of a
    merge do, their order would show the moment at which a step began.

    Args:
        order: the temporal columns, see ``row_order.in_order``; at least one.
    """

    def __init__(self, order: Sequence[str]) -> None:
        self._order = order
        self._column = OrderColumn(order[0])
        self._held: pa.Table | None = None

    def take(self, tables: Iterable[pa.Table], bound: Bound) -> Iterator[pa.Table]:
        """The rows that are complete, in order.

        Args:
            tables: the rows of a step, each in order and behind those before.
            bound: no later step has rows below it; of the first column of the order as it is
                promised, so negative values of one that falls.
        """
        rest = iter(tables)
        table = next(rest, None)
        while table is not None:
            following = next(rest, None)
            self._add(table)
            yield from self._below(min(bound, self._column.first(following)))
            table = following
        yield from self._below(bound)

    def rest(self) -> Iterator[pa.Table]:
        """All rows that are held; nothing more will come."""
        if self._held is not None:
            yield self._held
            self._held = None

    def _add(self, table: pa.Table) -> None:
        if not table.num_rows:
            return
        if self._held is None:
            self._held = table
            return
        both = pa.concat_tables([self._held, table], promote_options="permissive")
        self._held = in_order(both, self._order)

    def _below(self, bound: Bound) -> Iterator[pa.Table]:
        """The held rows below ``bound``, which are held no longer; NULL is below everything."""
        if self._held is None:
            return
        complete = self._column.count_below(self._held, bound)
        if complete:
            yield self._held.slice(0, complete)
        left = self._held.slice(complete)
        self._held = left if left.num_rows else None
