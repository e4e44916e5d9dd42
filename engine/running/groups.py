"""Numbering groups: equal keys get equal numbers, without a Python object for any."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_MAX_CODE = 1 << 62


def number_groups(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Array, int]:
    """The number of the group of each row, and how many groups there are.

    Args:
        keys: the columns that tell groups apart; NULL equals NULL, NaN equals NaN.
        rows: of each of them.
    """
    numbers, count = np.zeros(rows, np.int64), min(rows, 1)
    for key in keys:
        coded = key.combine_chunks().dictionary_encode(null_encoding="encode")
        codes, size = coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
        if count * size > _MAX_CODE:
            numbers, count = _dense(numbers)
        numbers = numbers * size + codes
        count *= size
    return _dense(numbers)


def _dense(numbers: Array) -> tuple[Array, int]:
    coded = pa.array(numbers).dictionary_encode()
    return coded.indices.to_numpy().astype(np.int64), len(coded.dictionary)
