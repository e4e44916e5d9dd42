"""The partitions of many rows as compiled kernels.

``queries/plan/partitioning/partition_hash.py`` defines the hash, and computes it in numpy in five
times as long. The kernels take addresses instead of arrays, so that one compilation serves columns
of any stride.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import ld8, ld64, lshr, srem, st8, st64
from gscope.capture.kernels.language.kinds import Kind
from gscope.queries.catalog.scalar.hashes import PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.plan.partitioning.partition_hash import NULL_WORD, START

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gscope.queries.plan.partitioning.partition_hash import ValueColumn

_WORD_BYTES = 8
_NULL = wrap(NULL_WORD)
_START = wrap(START)
_P1, _P2, _P3, _P4, _P5 = map(wrap, (PRIME_1, PRIME_2, PRIME_3, PRIME_4, PRIME_5))


def order_by_range(
    members: Sequence[Sequence[ValueColumn]], range_of_partition: NDArray[np.uint8], ranges: int
) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """Return rows in the order of their ranges of partitions, and where each range ends.

    Rows of one range keep their order.

    Args:
        members: the columns of each member, at least one member.
        range_of_partition: the range of each partition.
        ranges: the number of ranges.
    """
    hashes = _hashes(members)
    rows = len(hashes)
    found = np.empty(rows, np.uint8)
    counts = np.zeros(ranges, np.int64)
    order = np.empty(rows, np.intp)
    partitions = len(range_of_partition)
    _count_ranges(_at(hashes), rows, partitions, _at(range_of_partition), _at(found), _at(counts))
    places = np.cumsum(counts) - counts
    _place_rows(_at(found), rows, _at(places), _at(order))
    return order, places


def load_kernels() -> None:
    """Compile the kernels, or load them from the cache: the first time on a machine takes a second.

    They get no rows: kernels check no bounds, and write wherever rows that are not there would be.
    """
    column = _at(np.zeros(1, np.int64))
    rows = 0
    _hash_values(column, rows, 1, column, _WORD_BYTES, 0, 0, 0)
    _hash_lesser_first(column, rows, column, column)
    _count_ranges(column, rows, 2, column, column, column)
    _place_rows(column, rows, column, column)


def _hashes(members: Sequence[Sequence[ValueColumn]]) -> NDArray[np.int64]:
    rows = len(members[0][0])
    hashes = np.full(rows, _START)
    for member in members:
        if len(member) == 1:
            _extend(hashes, member[0])
            continue
        one, other = np.full(rows, _START), np.full(rows, _START)
        _extend(one, member[0])
        _extend(other, member[1])
        _hash_lesser_first(_at(hashes), rows, _at(one), _at(other))
    return hashes


def _extend(hashes: NDArray[np.int64], column: ValueColumn) -> None:
    words, valid = column.words, column.valid
    first, last = words[0], words[-1]
    _hash_values(
        _at(hashes),
        len(hashes),
        len(words),
        _at(first),
        first.strides[0],
        _at(last),
        last.strides[0],
        0 if valid is None else _at(valid),
    )


def _at(array: NDArray[np.generic]) -> int:
    return int(array.ctypes.data)


@kernel_part
def _with_word(state: int, word: int) -> int:
    """Return the state of a hash after one more word."""
    mixed = word * _P2
    state ^= ((mixed << 31) | lshr(mixed, 33)) * _P1
    return ((state << 27) | lshr(state, 37)) * _P1 + _P4


@kernel_part
def _finished(state: int) -> int:
    """Return the hash of a state."""
    state = (state ^ lshr(state, 33)) * _P2
    state = (state ^ lshr(state, 29)) * _P3
    return state ^ lshr(state, 32)


@native_kernel(*(Kind.INT,) * 8, result=Kind.NOTHING)
def _hash_values(
    hashes: int,
    rows: int,
    words: int,
    first: int,
    first_step: int,
    second: int,
    second_step: int,
    valid: int,
) -> None:
    """Replace each hash by that of a value of one or two words, with the hash as its seed.

    Args:
        hashes: the address of the hashes.
        rows: their number.
        words: the words of a value.
        first: the address of the first words, ``first_step`` bytes apart.
        first_step: see there.
        second: the address of the second words, ``second_step`` bytes apart.
        second_step: see there.
        valid: the address of a byte for each row, 0 if its value is NULL; 0 if no value is.
    """
    for row in range(rows):
        at = hashes + row * 8
        seed = ld64(at) + _P5
        if valid != 0 and ld8(valid + row) == 0:
            state = _with_word(seed + 8, _NULL)
        elif words == 1:
            state = _with_word(seed + 8, ld64(first + row * first_step))
        else:
            state = _with_word(seed + 16, ld64(first + row * first_step))
            state = _with_word(state, ld64(second + row * second_step))
        st64(at, _finished(state))


@native_kernel(*(Kind.INT,) * 4, result=Kind.NOTHING)
def _hash_lesser_first(hashes: int, rows: int, one: int, other: int) -> None:
    """Replace each hash by that of two words whose order does not count."""
    for row in range(rows):
        at = hashes + row * 8
        a, b = ld64(one + row * 8), ld64(other + row * 8)
        state = _finished(_with_word(ld64(at) + _P5 + 8, min(a, b)))
        st64(at, _finished(_with_word(state + _P5 + 8, max(a, b))))


@native_kernel(*(Kind.INT,) * 6, result=Kind.NOTHING)
def _count_ranges(
    hashes: int, rows: int, partitions: int, range_of_partition: int, found: int, counts: int
) -> None:
    """Store the range of each row as a byte, and add to the number of rows of each range."""
    for row in range(rows):
        rest = srem(ld64(hashes + row * 8), partitions)
        number = ld8(range_of_partition + rest + ((rest >> 63) & partitions))
        st8(found + row, number)
        st64(counts + number * 8, ld64(counts + number * 8) + 1)


@native_kernel(*(Kind.INT,) * 4, result=Kind.NOTHING)
def _place_rows(found: int, rows: int, places: int, order: int) -> None:
    """Store the number of each row at the next place of its range, which becomes the one after."""
    for row in range(rows):
        at = places + ld8(found + row) * 8
        place = ld64(at)
        st64(order + place * 8, row)
        st64(at, place + 1)
