"""Random numbers of tuples: a keyed hash, so that every run over the same tuples gives the same."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def key_hashes(keys: pa.Table, prefix: str) -> NDArray[Any]:
    """Return 64 bits for each row of ``keys``: a hash of its values behind ``prefix``."""
    names = keys.column_names
    return np.array([_hash(prefix, [row[n] for n in names]) for row in keys.to_pylist()], np.uint64)


def _hash(prefix: str, values: list[Any]) -> int:
    # -0.0 is 0.0 as a key.
    plain = [value + 0.0 if isinstance(value, float) else value for value in values]
    digest = hashlib.blake2b(f"{prefix}{plain!r}".encode(), digest_size=8)
    return int.from_bytes(digest.digest(), "little")


def random_numbers(keys: NDArray[Any], places: NDArray[Any]) -> NDArray[Any]:
    """Return a number from 0 to 2^63 - 1 for each pair of a key and a place.

    It is the output of SplitMix64 (Steele, Lea and Flood: Fast Splittable Pseudorandom Number
    Generators, OOPSLA 2014) with the key as its seed, after ``place + 1`` steps.

    Args:
        keys: 64 bits for each tuple, as uint64.
        places: how many tuples of the same key are before it.
    """
    with np.errstate(over="ignore"):
        word = keys + (places.astype(np.uint64) + np.uint64(1)) * _GOLDEN
        word = (word ^ (word >> np.uint64(30))) * _FIRST
        word = (word ^ (word >> np.uint64(27))) * _SECOND
        word ^= word >> np.uint64(31)
    numbers: NDArray[Any] = (word >> np.uint64(1)).astype(np.int64)
    return numbers
