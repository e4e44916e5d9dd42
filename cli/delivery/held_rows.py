"""Rows of one answer, held until no earlier row can come."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.cli.delivery.order_column import OrderColumn
from gscope.engine.sinks.row_order import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.row_order import SortKey


class HeldRows:
    """Puts the rows of several steps into one order that does not depend on the steps.

    Rows with one value of the first temporal column may come in several steps, as those of a merge
    do; without this, their order would depend on when a step began.

    Args:
        order: the temporal columns, see ``row_order.in_order``; at least one.
        keys: the columns by which rows are ordered next, as there.
    """

    def __init__(self, order: Sequence[str], keys: Sequence[SortKey] = ()) -> None:
        self._order = order
        self._keys = keys
        self._column = OrderColumn(order[0])
        self._held: pa.Table | None = None

    def take(self, tables: Iterable[pa.Table], bound: Bound) -> Iterator[pa.Table]:
        """Return the rows that are complete, in order.

        Args:
            tables: the rows of a step, each table in order and after the one before it.
            bound: the bound below which no later step has rows, as it is promised for the first
                column of the order: negated for a decreasing column.
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
        """Return all held rows; no more will come."""
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
        self._held = in_order(both, self._order, self._keys)

    def _below(self, bound: Bound) -> Iterator[pa.Table]:
        """Remove and return the held rows below ``bound``; NULL is below every bound."""
        if self._held is None:
            return
        complete = self._column.count_below(self._held, bound)
        if complete:
            yield self._held.slice(0, complete)
        left = self._held.slice(complete)
        self._held = left if left.num_rows else None
