"""The hash that divides rows into partitions: of values, whatever they are packed or stored as.

    H = xxh64(DOMAIN, seed 42); for each member: H = xxh64(bytes of its value, seed H)
    partition = H mod P, of H as a signed number, from 0 to P - 1

Bytes of a value are the 16 of an IP in network order, the 8 of a word that stands for NULL, and for
any other type the 8 of the value as a signed integer, least significant first. A member of two
values whose order does not count is two words: each value is hashed by itself, as if it were the
only member, and the lesser hash goes first, as signed numbers.

The seed of the first value is not 42, with which ``hash_int`` and Spark hash values for sketches:
else all values of a partition would share bits of those hashes. The hash that samples packets
(``queries/plan/sampling/keyed_hash.py``) is another function with a secret key, so what is sampled
does not depend on the partition.

There are three forms of it, equal bit for bit: ``partition_of_values`` (one row), ``partition_of``
(columns) and ``capture/kernels/row_partitions.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.catalog.scalar.hashes import (
    PRIME_1,
    PRIME_2,
    PRIME_3,
    PRIME_4,
    PRIME_5,
    xxh64,
)
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.expressions.types import HASHED_TYPES, GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gscope.queries.expressions.expressions import Value

    Words = NDArray[np.uint64]

DOMAIN = 0x7061727469746E73
"""What the hash begins with; a number without meaning."""

NULL_WORD = 0x6E756C6C76616C75
"""The word that stands for NULL."""

_WORD = 1 << 64
_CHUNK_ROWS = 1 << 13
"""Rows that are hashed at a time, so that intermediate results stay in a near cache."""


def _bytes(word: int) -> bytes:
    return (word % _WORD).to_bytes(8, "little")


START = xxh64(_bytes(DOMAIN))
"""The hash before the first member, an unsigned number."""


def hash_value(value: Value, type_: GsqlType, seed: int) -> int:
    """Return the hash of one value as an unsigned number."""
    ensure_hashed(type_)
    if value is None:
        return xxh64(_bytes(NULL_WORD), seed)
    assert isinstance(value, int)
    return xxh64(value.to_bytes(16) if type_ is GsqlType.IP else _bytes(value), seed)


def partition_of_values(
    members: Sequence[Sequence[tuple[Value, GsqlType]]], partitions: int
) -> int:
    """Return the partition of a row, given the values of each member and their types."""
    result = START
    for member in members:
        if len(member) == 1:
            ((value, type_),) = member
            result = hash_value(value, type_, result)
        else:
            for alone in sorted(wrap(hash_value(*each, START)) for each in member):
                result = xxh64(_bytes(alone), result)
    return wrap(result) % partitions


def ensure_hashed(type_: GsqlType) -> None:
    """Refuse a type whose values do not divide rows: equal FLOATs may have different bits.

    Raises:
        ValueError: the type is FLOAT or STRING.
    """
    if type_ not in HASHED_TYPES and type_ is not GsqlType.NULL:
        message = f"rows are not divided by values of type {type_.value}"
        raise ValueError(message)


@dataclass(frozen=True, slots=True)
class ValueColumn:
    """The values of one expression, for a number of rows.

    Attributes:
        words: the bytes of each value as words, least significant byte first: two of an IP, one of
            any other value. Those of a NULL are arbitrary.
        valid: which rows are not NULL; None if no row is.
    """

    words: tuple[Words, ...]
    valid: NDArray[np.bool_] | None

    def __len__(self) -> int:
        return len(self.words[0])

    @classmethod
    def from_arrow(cls, column: pa.Array | pa.ChunkedArray, kind: GsqlType) -> ValueColumn:
        """Return a column as streams and outputs hold it.

        Raises:
            ValueError: the type is FLOAT or STRING.
        """
        ensure_hashed(kind)
        if isinstance(column, pa.ChunkedArray):
            column = column.combine_chunks()
        valid = None
        if column.null_count:
            valid = column.is_valid().to_numpy(zero_copy_only=False)
        if kind is GsqlType.NULL:
            return cls((np.zeros(len(column), np.uint64),), np.zeros(len(column), np.bool_))
        if kind is GsqlType.IP:
            texts = column.fill_null(bytes(16)) if valid is not None else column
            texts = texts.cast(pa.binary(16))
            words = np.frombuffer(texts.buffers()[1], "<u8", 2 * len(texts), 16 * texts.offset)
            return cls((words[0::2], words[1::2]), valid)
        if valid is not None:
            column = column.fill_null(False if pa.types.is_boolean(column.type) else 0)
        return cls.from_numbers(column.to_numpy(zero_copy_only=False), valid)

    @classmethod
    def from_numbers(
        cls, values: NDArray[Any], valid: NDArray[np.bool_] | None = None
    ) -> ValueColumn:
        """Return a column of integers of any width, or of BOOL."""
        return cls((values.astype(np.int64, copy=False).view(np.uint64),), valid)

    def slice(self, first: int, end: int) -> ValueColumn:
        """Return the rows from ``first`` up to ``end``."""
        valid = None if self.valid is None else self.valid[first:end]
        return ValueColumn(tuple(each[first:end] for each in self.words), valid)


def partition_of(members: Sequence[Sequence[ValueColumn]], partitions: int) -> NDArray[np.int32]:
    """Return the partition of each row, given the columns of each member, at least one."""
    rows = len(members[0][0])
    found = np.empty(rows, np.int32)
    for first in range(0, rows, _CHUNK_ROWS):
        end = min(first + _CHUNK_ROWS, rows)
        parts = [[column.slice(first, end) for column in member] for member in members]
        found[first:end] = _hashes(parts).view(np.int64) % np.int64(partitions)
    return found


def _hashes(members: Sequence[Sequence[ValueColumn]]) -> Words:
    seed: Words = np.full(len(members[0][0]), START, np.uint64)
    for member in members:
        if len(member) == 1:
            seed = _hashed(member[0], seed)
        else:
            start = np.full(len(seed), START, np.uint64)
            one, other = (_hashed(each, start).view(np.int64) for each in member)
            for alone in (np.minimum(one, other), np.maximum(one, other)):
                seed = _xxh64((alone.view(np.uint64),), seed)
    return seed


def _hashed(column: ValueColumn, seed: Words) -> Words:
    made = _xxh64(column.words, seed)
    if column.valid is None:
        return made
    nulls = np.full(len(seed), NULL_WORD, np.uint64)
    return np.where(column.valid, made, _xxh64((nulls,), seed))


def _xxh64(words: Sequence[Words], seed: Words) -> Words:
    """Return the hash of a few words in each row; less than a stripe of the algorithm."""
    state = seed + np.uint64((PRIME_5 + 8 * len(words)) % _WORD)
    for word in words:
        state ^= _rotated(word * np.uint64(PRIME_2), 31) * np.uint64(PRIME_1)
        state = _rotated(state, 27)
        state *= np.uint64(PRIME_1)
        state += np.uint64(PRIME_4)
    state ^= state >> np.uint64(33)
    state *= np.uint64(PRIME_2)
    state ^= state >> np.uint64(29)
    state *= np.uint64(PRIME_3)
    state ^= state >> np.uint64(32)
    return state


def _rotated(words: Words, count: int) -> Words:
    made = words << np.uint64(count)
    made |= words >> np.uint64(64 - count)
    return made
