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


def number_groups(keys: Sequence[pa.ChunkedArray], rows: int) -> tuple[Array, int]:
    """Return the number of the group of each row, and the number of groups.

    Args:
        keys: the key columns; NULL equals NULL, NaN equals NaN, and -0.0
            equals 0.0, as in every other GROUP BY.
        rows: the length of each key column.
    """
    numbers, count = np.zeros(rows, np.int64), min(rows, 1)
    for key in keys:
        if pa.types.is_floating(key.type):
            key = pc.add(key, 0.0)  # -0.0 + 0.0 is 0.0; Arrow's dictionaries separate the two
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
