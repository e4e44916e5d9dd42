"""Rows as they are delivered, before they become readable.

Their keys find the packets behind them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gscope.cli.view.rows.history import MOST_ROWS

if TYPE_CHECKING:
    import pyarrow as pa


class RawRows:
    """The latest rows of each answer, by their number in it. It sees rows on their way to a sink.

    Args:
        most: the most rows of an answer that are kept, to whole tables.
    """

    def __init__(self, most: int = MOST_ROWS) -> None:
        self._most = most
        self._tables: dict[str, deque[tuple[int, pa.Table]]] = {}
        self._ends: dict[str, int] = {}

    def take(self, query: str, table: pa.Table) -> None:
        """Note rows."""
        tables = self._tables.setdefault(query, deque())
        first = self._ends.get(query, 0)
        self._ends[query] = first + table.num_rows
        tables.append((first, table))
        while len(tables) > 1 and self._ends[query] - tables[1][0] >= self._most:
            tables.popleft()

    def settle(self) -> None:
        """Do nothing: rows are kept until there are more."""

    def row(self, query: str, number: int) -> pa.Table | None:
        """Return the row ``number`` of an answer, from 0; None if it is not kept."""
        for first, table in self._tables.get(query, ()):
            if first <= number < first + table.num_rows:
                return table.slice(number - first, 1)
        return None
