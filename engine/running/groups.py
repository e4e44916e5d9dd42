"""Numbers of groups: equal keys get equal numbers, without a Python object for any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_MAX_CODE = 1 << 62
_SHORT_RANGE = 1 << 16
"""Integers of a range up to this size, or up to the number of rows, are not looked up."""


def number_groups(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Array, int]:
    """Return the number of the group of each row, and the number of groups.

    Groups are numbered from 0 in the order in which they appear.

    Args:
        keys: the key columns; NULL equals NULL, NaN equals NaN, and -0.0
            equals 0.0, as in every other GROUP BY.
        rows: the length of each key column.
    """
    numbers, count, is_dense = np.zeros(rows, np.int64), min(rows, 1), True
    for key in keys:
        codes, size, is_by_appearance = _codes(key)
        if count * size > _MAX_CODE:
            numbers, count = _dense(numbers)
        if count <= 1:
            numbers, is_dense = codes, is_by_appearance
        elif size > 1:
            numbers, is_dense = numbers * size + codes, False
        count *= size
    return (numbers, count) if is_dense else _dense(numbers)


def _codes(key: pa.ChunkedArray) -> tuple[Array, int, bool]:
    """Return numbers below a size, equal for equal values, and the size.

    Return also whether they are without gaps, in the order in which values appear. Integers of a
    short range, such as ports, are numbers already.
    """
    if pa.types.is_integer(key.type) and not key.null_count and len(key):
        extent = pc.min_max(key).as_py()
        size = extent["max"] - extent["min"] + 1
        if size <= max(_SHORT_RANGE, len(key)):
            numbers = key.combine_chunks().to_numpy() - extent["min"]
            return numbers.astype(np.int64), size, size == 1
    if pa.types.is_floating(key.type):
        key = pc.add(key, 0.0)  # -0.0 + 0.0 is 0.0; Arrow's dictionaries separate the two
    coded = key.combine_chunks().dictionary_encode(null_encoding="encode")
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary), True


def _dense(numbers: Array) -> tuple[Array, int]:
    """Return numbers without gaps, in the order in which they appear, and how many there are."""
    coded = pa.array(numbers).dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
