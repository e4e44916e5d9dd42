"""Sorting of rows by columns that are packed into words of 64 bits.

Each column is one or more numbers in the order of its values, the most significant first: whether
the value is NULL, then the value. A number takes as many bits as its range needs, and a number that
does not fit into a word continues in the next. Sorting by the first word decides nearly all rows;
only ties are sorted by the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.arrow_integers import arrow_integers
from gscope.queries.int64 import MAX_INT
from gscope.queries.plan.row_order import SortKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Array = NDArray[Any]

_WORD_BITS = 64
_HALF_BITS = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_ZERO, _ONE, _TWO = np.uint64(0), np.uint64(1), np.uint64(2)
_SIGN = np.uint64(1 << 63)
_ALL_BUT_SIGN = np.int64(MAX_INT)
_ASCENDING = SortKey("")
_ADDRESS_BYTES = 16
_V4_MARK = np.uint64(0xFFFF)
_DIGIT_BITS = 16
_RADIX_ROWS = 16_384
"""Rows from which sorting digit by digit is faster than comparing."""

_MIXED_ROWS = 2048
"""Rows from which the families of addresses are kept apart."""

_RANKED_ROWS = 65_536
"""Rows from which sorting the distinct addresses first is worthwhile, if they are few."""

_SAMPLE_ROWS = 4096
"""Rows at the beginning of a column that show whether its distinct addresses are few."""


class OrderWords:
    """The words of rows, made one after the other for the rows that still need them.

    Args:
        columns: the columns, in the order in which they decide, with their keys.
    """

    def __init__(self, columns: Iterable[tuple[pa.Array, SortKey]]) -> None:
        self._columns = iter(columns)
        self._rows: Array | None = None
        self._numbers: Iterator[Array] = iter(())
        # What did not fit into the last word: the number, and its bits.
        self._rest: tuple[Array, int] | None = None
        self.is_complete = False

    def next(self, runs: Array) -> tuple[Array, int]:
        """Return the next word of each row, and how many bits it uses.

        Args:
            runs: the number of the run of ties to which each row belongs, ascending.
        """
        used = int(runs[-1]).bit_length()
        word = runs
        while used < _WORD_BITS and (number := self._next_number()) is not None:
            values, bits = number
            excess = max(0, used + bits - _WORD_BITS)
            if excess:
                rest = values & np.uint64((1 << excess) - 1)
                self._rest = rest, excess
                values = values >> np.uint64(excess)
            word = (word << np.uint64(bits - excess)) | values
            used += bits - excess
        return word, used

    def keep(self, rows: Array) -> None:
        """Go on with some of the rows, given by their places."""
        self._rows = rows if self._rows is None else self._rows[rows]
        if self._rest is not None:
            values, bits = self._rest
            self._rest = values[rows], bits
        numbers = self._numbers
        self._numbers = (number[rows] for number in numbers)

    def _next_number(self) -> tuple[Array, int] | None:
        """Return the next number of each row, less the least, and the bits that it needs."""
        if self._rest is not None:
            rest, self._rest = self._rest, None
            return rest
        while (values := next(self._numbers, None)) is None:
            column = next(self._columns, None)
            if column is None:
                self.is_complete = True
                return None
            array, key = column
            if self._rows is not None:
                array = array.take(arrow_integers(self._rows))
            self._numbers = _numbers(array, key)
        least = values.min()
        return values - least, int(values.max() - least).bit_length()


def sorted_places(columns: Iterable[tuple[pa.Array, SortKey]], count: int) -> Array:
    """Return the numbers of ``count`` rows, sorted by ``columns``, the first column first."""
    words = OrderWords(columns)
    places = np.arange(count)
    # The positions of ties in ``places``, and the run of ties to which each belongs.
    tied, runs = np.arange(count), np.zeros(count, np.uint64)
    while len(tied):
        word, bits = words.next(runs)
        by_word = _sorted_by(word, bits)
        places[tied] = places[tied][by_word]
        if words.is_complete:
            break
        word = word[by_word]
        is_same = word[1:] == word[:-1]
        is_tied = np.append(is_same, False) | np.append(False, is_same)
        runs = np.append(_ZERO, np.cumsum(~is_same, dtype=np.uint64))[is_tied]
        tied = tied[is_tied]
        words.keep(by_word[is_tied])
    return places


def _sorted_by(word: Array, bits: int) -> Array:
    """Return the places of words, of which ``bits`` are used, in ascending order."""
    if len(word) < _RADIX_ROWS:
        return np.argsort(word)
    places = None
    for shift in range(0, bits, _DIGIT_BITS):
        digit = (word >> np.uint64(shift)).astype(np.uint16)
        # numpy sorts numbers of 16 bits by radix.
        if places is None:
            places = np.argsort(digit, kind="stable")
        else:
            places = places[np.argsort(digit[places], kind="stable")]
    return places if places is not None else np.arange(len(word))


def _numbers(column: pa.Array, key: SortKey) -> Iterator[Array]:
    """Yield a column as numbers in the order of its values, the first most significant."""
    valid = None
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        yield (valid if key.has_nulls_first else ~valid).astype(np.uint64)
        if column.null_count == len(column):
            return
    for word in _words(column):
        turned = ~word if key.is_descending else word
        # The value under a NULL is arbitrary: it must neither decide nor extend the range.
        yield turned if valid is None else np.where(valid, turned, turned[valid].min())


def _words(column: pa.Array) -> Iterator[Array]:
    """Yield a column as numbers of up to 64 bits in ascending order of its values."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.fill_null(0.0).to_numpy().astype(np.float64)
        # Arithmetic leaves NaN in several forms, of either sign.
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        yield np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits).view(np.uint64) ^ _SIGN
    elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == _ADDRESS_BYTES:
        yield from _address_words(column)
    elif pa.types.is_binary(kind) or pa.types.is_string(kind):
        length = pc.min_max(pc.binary_length(column)).as_py()
        if length["min"] == length["max"] == _ADDRESS_BYTES:
            yield from _address_words(column.cast(pa.binary()).cast(pa.binary(_ADDRESS_BYTES)))
        else:
            coded = column.dictionary_encode()
            yield _ranks(coded, pc.sort_indices(coded.dictionary).to_numpy())
    else:
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
        yield numbers.view(np.uint64) ^ _SIGN


def _address_words(addresses: pa.Array) -> Iterator[Array]:
    """Yield addresses as their ranks if few are distinct, else bit by bit."""
    if not _are_few_distinct(addresses):
        yield from _address_bits(addresses)
        return
    coded = addresses.dictionary_encode()
    distinct = coded.dictionary
    yield _ranks(coded, sorted_places([(distinct, _ASCENDING)], len(distinct)))


def _are_few_distinct(addresses: pa.Array) -> bool:
    """Return whether addresses repeat even in a small part of a long column."""
    if len(addresses) < _RANKED_ROWS:
        return False
    sample = addresses.slice(0, _SAMPLE_ROWS)
    return bool(pc.count_distinct(sample, mode="all").as_py() <= _SAMPLE_ROWS * 15 // 16)


def _address_bits(addresses: pa.Array) -> Iterator[Array]:
    """Yield addresses as numbers.

    IPv4 addresses, as stored, begin with the same 96 bits. So a number first says whether an
    address is in their block, below or above it, and that of an IPv4 address continues with its
    last 32 bits.
    """
    data = np.frombuffer(
        addresses.buffers()[1], ">u8", 2 * len(addresses), _ADDRESS_BYTES * addresses.offset
    )
    high, low = data[0::2].astype(np.uint64), data[1::2].astype(np.uint64)
    if len(addresses) < _MIXED_ROWS:
        yield high
        yield low
        return
    mark = low >> _HALF_BITS
    is_v4 = (high == 0) & (mark == _V4_MARK)
    is_above = (high != 0) | (mark > _V4_MARK)
    yield np.where(is_v4, _ONE, np.where(is_above, _TWO, _ZERO))
    yield np.where(is_v4, low & _LOW_HALF, high >> _HALF_BITS)
    yield np.where(is_v4, _ZERO, high & _LOW_HALF)
    yield np.where(is_v4, _ZERO, low)


def _ranks(coded: pa.DictionaryArray, by_value: Array) -> Array:
    """Return the rank of each value, given the places of the distinct values in their order."""
    ranks = np.empty(len(by_value), np.uint64)
    ranks[by_value] = np.arange(len(by_value), dtype=np.uint64)
    by_row: Array = ranks[coded.indices.fill_null(0).to_numpy()]
    return by_row
