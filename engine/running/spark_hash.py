"""Spark's ``hash`` over columns: Murmur3 (x86, 32 bits), seed 42, by column, skipping NULL.

It deals groups to tasks: Spark computes it in a large step, this module in a small one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_SEED = 42
_IP_WORDS = 4


def spark_hash(columns: Sequence[pa.Array], rows: int) -> Array:
    """Return ``hash(columns)`` as Spark computes it, as signed 32-bit numbers.

    Args:
        columns: columns of 64-bit integers, and of addresses as 16 bytes.
        rows: the length of each column.
    """
    hashed = np.full(rows, _SEED, np.uint32)
    for column in columns:
        words = _words(column)
        mixed = hashed
        for word in words:
            mixed = _mix_hash(mixed, word)
        mixed = _finish(mixed, 4 * len(words))
        if column.null_count:
            mixed = np.where(column.is_valid().to_numpy(zero_copy_only=False), mixed, hashed)
        hashed = mixed
    return hashed.view(np.int32)


def _words(column: pa.Array) -> list[Array]:
    """Return the values as words of 32 bits, in the order in which they are hashed."""
    if pa.types.is_int64(column.type):
        filled = column.fill_null(0) if column.null_count else column
        whole = filled.to_numpy().view(np.uint64)
        return [whole.astype(np.uint32), (whole >> np.uint64(32)).astype(np.uint32)]
    fixed = column.cast(pa.binary(16))
    fixed = fixed.fill_null(bytes(16)) if fixed.null_count else fixed
    words = np.frombuffer(fixed.buffers()[1], "<u4")[_IP_WORDS * fixed.offset :]
    table = words[: _IP_WORDS * len(fixed)].reshape(len(fixed), _IP_WORDS)
    return [table[:, place] for place in range(_IP_WORDS)]


def _turned(words: Array, bits: int) -> Array:
    turned: Array = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return turned


def _mix_hash(hashed: Array, word: Array) -> Array:
    key = _turned(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
    mixed: Array = _turned(hashed ^ key, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    return mixed


def _finish(hashed: Array, size: int) -> Array:
    hashed = hashed ^ np.uint32(size)
    hashed = (hashed ^ (hashed >> np.uint32(16))) * np.uint32(0x85EBCA6B)
    hashed = (hashed ^ (hashed >> np.uint32(13))) * np.uint32(0xC2B2AE35)
    finished: Array = hashed ^ (hashed >> np.uint32(16))
    return finished
