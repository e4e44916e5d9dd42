"""Rows of several results in turn, converted to readable tables together.

A round of interleaved results may have one row. The fixed cost of a conversion (addresses, text) is
some milliseconds, so rows of many rounds are converted together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.sinks.columns import readable
from gscope.engine.sinks.parallel import ROWS_AT_ONCE
from gscope.engine.sinks.pieces import PIECE_BYTES, bounded_pieces, string_columns
from gscope.queries.streams.portions import text_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.queries.expressions.schema import Schema


class Turns:
    """Collects the rows that are due next and returns them as readable tables.

    Args:
        schemas: the delivered columns of each result.
    """

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas
        self._turns: list[tuple[str, pa.Table]] = []
        self._rows = 0
        self._bytes = 0

    @property
    def is_full(self) -> bool:
        """Return whether rows must be taken before more are added, to bound memory."""
        return self._rows >= ROWS_AT_ONCE or self._bytes >= PIECE_BYTES

    def add(self, query: str, table: pa.Table) -> None:
        """Add rows that follow those added before."""
        schema = self._schemas[query]
        rows = table.select(schema.names)
        self._turns.append((query, rows))
        self._rows += rows.num_rows
        self._bytes += int(text_bytes(rows, string_columns(schema)).sum())

    def take(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield all added rows, in order, as readable tables of bounded text."""
        turns, self._turns, self._rows = self._turns, [], 0
        is_large, self._bytes = self._bytes > PIECE_BYTES, 0
        if is_large:
            # A single table may exceed the limit for all of them.
            for query, table in turns:
                schema = self._schemas[query]
                for piece in bounded_pieces(table, schema):
                    yield query, readable(piece, schema)
            return
        tables: dict[str, list[pa.Table]] = {}
        for query, table in turns:
            tables.setdefault(query, []).append(table)
        whole = {
            query: readable(_joined(each), self._schemas[query]) for query, each in tables.items()
        }
        given = dict.fromkeys(whole, 0)
        for query, table in turns:
            yield query, whole[query].slice(given[query], table.num_rows)
            given[query] += table.num_rows


def _joined(tables: list[pa.Table]) -> pa.Table:
    return pa.concat_tables(tables, promote_options="permissive")
