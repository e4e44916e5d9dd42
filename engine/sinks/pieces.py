"""Bounded text: results cut into pieces, and long values truncated.

The sender of a packet decides how long a byte is as text: a control character takes four
characters, each an object during conversion. So a table with STRING columns is converted in pieces
of ``PIECE_BYTES``, and a value is truncated to ``MOST_BYTES``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.portions import portions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pyarrow as pa

    from gscope.queries.expressions.schema import Schema

PIECE_BYTES = 4 << 20
"""Bytes of STRING values that are converted at once; a single row may have more."""

MOST_BYTES = 65_536
"""Bytes of a STRING value that are written as text: more than in any IP packet, except with
segmentation offload."""


def bounded_pieces(table: pa.Table, schema: Schema) -> Iterator[pa.Table]:
    """Yield slices of ``table`` of at most ``PIECE_BYTES`` of STRING values, or of one row."""
    return portions(table, string_columns(schema), PIECE_BYTES)


def string_columns(schema: Schema) -> list[str]:
    """Return the names of the columns of type STRING."""
    return [column.name for column in schema.columns if column.type is GsqlType.STRING]


def cut_text(value: bytes, escape: Callable[[bytes], str]) -> str:
    """Return the text of a value; for a long one its beginning, followed by its size in bytes."""
    if len(value) <= MOST_BYTES:
        return escape(value)
    return f"{escape(value[:MOST_BYTES])}… ({len(value)} bytes)"
