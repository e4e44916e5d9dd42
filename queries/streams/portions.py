"""Tables split by their bytes: a limit of rows bounds memory only while values are short.

The sender of a packet determines how long a STRING value is, up to 256 KiB. Readers of Parquet hold
a row group, or 4,096 rows of one, in memory, so a row group is bounded by bytes as well.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from numpy.typing import NDArray

GROUP_BYTES = 8 << 20
"""Bytes of STRING values in a row group; a single row may have more."""


def row_groups(table: pa.Table) -> Iterator[pa.Table]:
    """Split ``table`` into slices with at most ``GROUP_BYTES`` of STRING values, or of one row."""
    names = text_columns(table)
    return portions(table, names, GROUP_BYTES) if names else iter((table,))


def portions(table: pa.Table, names: Collection[str], size_bytes: int) -> Iterator[pa.Table]:
    """Split ``table`` into slices with at most ``size_bytes`` in the columns ``names``.

    A slice has at least one row. A table that is small enough is returned unchanged.
    """
    rows = table.num_rows
    if _most_bytes(table[name] for name in names) <= size_bytes:
        yield table
        return
    ends = np.cumsum(text_bytes(table, names))
    if not rows or ends[-1] <= size_bytes:
        yield table
        return
    first = 0
    while first < rows:
        before = ends[first - 1] if first else 0
        last = max(int(np.searchsorted(ends, before + size_bytes, "right")), first + 1)
        yield table.slice(first, last - first)
        first = last


def text_columns(table: pa.Table) -> list[str]:
    """Return the names of the columns that hold STRING values, not encoded as dictionaries."""
    return [field.name for field in table.schema if _is_text(field.type)]


def text_bytes(table: pa.Table, names: Iterable[str]) -> NDArray[np.int64]:
    """Return the bytes of each row of ``table`` in the columns ``names``; NULL has none."""
    lengths = np.zeros(table.num_rows, np.int64)
    for name in names:
        begin = 0
        for chunk in table[name].chunks:
            lengths[begin : begin + len(chunk)] += _lengths(chunk)
            begin += len(chunk)
    return lengths


def _most_bytes(columns: Iterable[pa.ChunkedArray]) -> float:
    """Return at least the bytes of texts, found without looking at rows; infinity if unknown."""
    total = 0
    for column in columns:
        if pa.types.is_dictionary(column.type):
            return math.inf
        # With the offsets, and at most a bit for each row that says whether it is NULL.
        total += column.nbytes
    return total


def _lengths(texts: pa.Array) -> NDArray[np.integer]:
    import pyarrow.compute as pc

    if pa.types.is_dictionary(texts.type):
        sizes = pc.binary_length(texts.dictionary).take(texts.indices)
    else:
        sizes = pc.binary_length(texts)
    found: NDArray[np.integer] = pc.fill_null(sizes, 0).to_numpy(zero_copy_only=False)
    return found


def _is_text(kind: pa.DataType) -> bool:
    return bool(
        pa.types.is_binary(kind)
        or pa.types.is_string(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_large_string(kind)
    )
