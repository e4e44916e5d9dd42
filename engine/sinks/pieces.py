"""Results cut into pieces whose text is small, and values cut where they would not be.

The sender of a packet decides what a byte costs as text: a control character takes four, each of them an object while
it is made. So a table with STRING columns becomes text in pieces of ``PIECE_BYTES``, and of a value only ``MOST_BYTES`` do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gscope.queries.expressions.schema import Schema

PIECE_BYTES = 4 << 20
"""Bytes of STRING values that become text at once; a single row may have more."""

MOST_BYTES = 65_536
"""Bytes of a STRING value that are written as text: more than an IP packet without segmentation offload has."""


def bounded_pieces(table: pa.Table, schema: Schema) -> Iterator[pa.Table]:
    """Cut ``table`` into slices of at most ``PIECE_BYTES`` of STRING values, of one row at least."""
    rows = table.num_rows
    ends = np.cumsum(text_bytes(table, schema))
    if not rows or ends[-1] <= PIECE_BYTES:
        yield table
        return
    first = 0
    while first < rows:
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + PIECE_BYTES, "right")), first + 1)
        yield table.slice(first, last - first)
        first = last


def text_bytes(table: pa.Table, schema: Schema) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return how many bytes of STRING values each row of ``table`` has."""
    lengths = np.zeros(table.num_rows, np.int64)
    for column in schema.columns:
        if column.type is GsqlType.STRING:
            lengths += _lengths(table[column.name])
    return lengths


def cut_text(value: bytes, escape: Callable[[bytes], str]) -> str:
    """Return the text of a value; of a long one the beginning, and behind it how many bytes it has."""
    if len(value) <= MOST_BYTES:
        return escape(value)
    return f"{escape(value[:MOST_BYTES])}… ({len(value)} bytes)"


def _lengths(column: pa.ChunkedArray) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    parts = [np.zeros(0, np.int64)]
    for chunk in column.chunks:
        if pa.types.is_dictionary(chunk.type):
            sizes = pc.binary_length(chunk.dictionary).take(chunk.indices)
        else:
            sizes = pc.binary_length(chunk)
        parts.append(pc.fill_null(sizes, 0).to_numpy(zero_copy_only=False).astype(np.int64))
    return np.concatenate(parts)
