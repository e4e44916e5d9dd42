"""Rows of a selection with ORDER BY, which the end of the input puts in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.sinks.row_order import first_rows, in_order
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.plan.row_order import SortKey

ROWS_BETWEEN_CUTS = 65_536
"""The rows that are held besides those that LIMIT keeps, so that few tables are cut at once."""

MOST_BYTES = 2 << 30
"""The most bytes of rows that are held; sorting them takes several times as much."""


class RowsUntilEnd:
    """Holds the rows of one answer, or with a limit those that may be among the first.

    Args:
        keys: the columns by which rows are ordered, all visible columns among them.
        limit: the number of rows to keep; None for all.
    """

    def __init__(self, keys: Sequence[SortKey], limit: int | None) -> None:
        self._keys = keys
        self._limit = limit
        self._held: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

    def add(self, table: pa.Table) -> None:
        """Take rows, in any order.

        Raises:
            EngineError: more rows would have to be held than fit into memory.
        """
        if not table.num_rows:
            return
        self._held.append(table)
        self._rows += table.num_rows
        self._bytes += table.nbytes
        if self._limit is not None and self._rows >= self._limit + ROWS_BETWEEN_CUTS:
            self._hold(first_rows(self._joined(), self._keys, self._limit))
        if self._bytes > MOST_BYTES:
            message = (
                f"ORDER BY holds {self._rows:,} rows ({self._bytes >> 20} MB) until the input "
                "ends, more than fit into memory; add LIMIT, group them, or sort where the answer "
                "is read"
            )
            raise EngineError(message)

    def rest(self) -> Iterator[pa.Table]:
        """Remove and return all rows, in order; no more will come."""
        if not self._held:
            return
        ordered = in_order(self._joined(), keys=self._keys)
        self._held = []
        yield ordered if self._limit is None else ordered.slice(0, self._limit)

    def _joined(self) -> pa.Table:
        return pa.concat_tables(self._held, promote_options="permissive")

    def _hold(self, table: pa.Table) -> None:
        self._held, self._rows, self._bytes = [table], table.num_rows, table.nbytes
