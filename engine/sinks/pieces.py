"""Results cut into pieces whose text is small, and values cut where they would not be.

The sender of a packet decides what a byte costs as text: a control character takes four, each of them an object while
it is made. So a table with STRING columns becomes text in pieces of ``PIECE_BYTES``, and of a value only ``MOST_BYTES`` do.
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
"""Bytes of STRING values that become text at once; a single row may have more."""

MOST_BYTES = 65_536
"""Bytes of a STRING value that are written as text: more than an IP packet without segmentation offload has."""


def bounded_pieces(table: pa.Table, schema: Schema) -> Iterator[pa.Table]:
    """Cut ``table`` into slices of at most ``PIECE_BYTES`` of STRING values, of one row at least."""
    return portions(table, string_columns(schema), PIECE_BYTES)


def string_columns(schema: Schema) -> list[str]:
    """Return the names of the columns of type STRING."""
    return [column.name for column in schema.columns if column.type is GsqlType.STRING]


def cut_text(value: bytes, escape: Callable[[bytes], str]) -> str:
    """Return the text of a value; of a long one the beginning, and behind it how many bytes it has."""
    if len(value) <= MOST_BYTES:
        return escape(value)
    return f"{escape(value[:MOST_BYTES])}… ({len(value)} bytes)"
