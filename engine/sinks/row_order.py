"""The order of the rows of an answer: by all their values, and by nothing else.

Rows are sorted by the temporal columns (descending where these decrease), then by those of ORDER
BY, then in ascending order by all other columns from left to right. NULL comes first, except where
ORDER BY puts it last; text and addresses are compared by their bytes; -0.0 is less than 0.0, and
NaN greater than any other number. Rows that are equal in all columns are identical. So the order,
and with it the choice of the first rows, depends on the rows alone, not on the size of batches, the
number of tasks or the time at which a step began.

Columns are packed, in order, into words of 64 bits, each part with no more bits than its range
needs. Sorting by one word decides nearly all rows; only ties are sorted by the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.queries.int64 import MAX_INT
from gscope.queries.plan.row_order import SortKey, is_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]

_WORD_BITS = 64
_HALF_BITS = np.uint64(32)
_LOW_HALF = np.uint64(0xFFFF_FFFF)
_SIGN = np.uint64(1 << 63)
_ALL_BUT_SIGN = np.int64(MAX_INT)
_ADDRESS_BYTES = 16


def in_order(table: pa.Table, order: Sequence[str] = (), keys: Sequence[SortKey] = ()) -> pa.Table:
    """Return the rows of ``table`` in the order of answers.

    Args:
        table: the rows.
        order: the temporal columns, ``-f`` for a decreasing column f.
        keys: the columns by which rows are ordered next.
    """
    if table.num_rows < 2:
        return table
    first = [SortKey(n.removeprefix("-"), n.startswith("-"), has_nulls_first=True) for n in order]
    named = {key.name for key in (*first, *keys)}
    others = [
        SortKey(name, has_nulls_first=True)
        for name in table.column_names
        if name not in named and not is_hidden(name)
    ]
    places = _sorted_places(_all_parts(table, (*first, *keys, *others)), table.num_rows)
    return table.take(pa.array(places))


def first_rows(
    table: pa.Table, keys: Sequence[SortKey], limit: int, epoch: str | None = None
) -> pa.Table:
    """Return the first rows of each epoch.

    A few of many rows are found without sorting the others.

    Args:
        table: the rows.
        keys: the columns by which rows are ordered, all visible columns among them.
        limit: the number of rows to keep of each epoch.
        epoch: the column of the epoch, the first of ``keys``; None if all rows are of one epoch.
    """
    count = table.num_rows
    if count <= limit:
        return table
    if epoch is not None and pc.count_distinct(table[epoch], mode="all").as_py() > 1:
        places = _sorted_places(_all_parts(table, keys), count)
        epochs = _flat(table[epoch]).fill_null(0).to_numpy()[places]
        begins = np.flatnonzero(np.append(True, epochs[1:] != epochs[:-1]))
        numbers = np.arange(count) - np.repeat(begins, np.diff(np.append(begins, count)))
        return table.take(pa.array(places[numbers < limit]))
    word, _ = _word(np.zeros(count, np.uint64), _all_parts(table, keys), None, slice(None))
    greatest = np.partition(word, limit - 1)[limit - 1]
    table = table.take(pa.array(np.flatnonzero(word <= greatest)))
    places = _sorted_places(_all_parts(table, keys), table.num_rows)
    return table.take(pa.array(places[:limit]))


def _all_parts(table: pa.Table, keys: Sequence[SortKey]) -> Iterator[Array]:
    """Yield columns as numbers of up to 32 bits in the order of ``keys``."""
    return (part for key in keys for part in _parts(_flat(table[key.name]), key))


def _sorted_places(parts: Iterator[Array], count: int) -> Array:
    """Return the numbers of ``count`` rows, sorted by their ``parts``, the first part first."""
    places = np.arange(count)
    # The positions of ties in ``places``, and the run of ties to which each belongs.
    tied, runs = np.arange(count), np.zeros(count, np.uint64)
    left_over: Array | None = None
    rows: Array | slice = slice(None)
    while len(tied):
        word, left_over = _word(runs, parts, left_over, rows)
        by_word = np.argsort(word)
        places[tied] = places[tied][by_word]
        if left_over is None:
            return places
        word = word[by_word]
        is_same = word[1:] == word[:-1]
        is_tied = np.append(is_same, False) | np.append(False, is_same)
        runs = np.append(np.uint64(0), np.cumsum(~is_same, dtype=np.uint64))[is_tied]
        tied = tied[is_tied]
        rows = places[tied]
    return places


def _word(
    runs: Array, parts: Iterator[Array], left_over: Array | None, rows: Array | slice
) -> tuple[Array, Array | None]:
    """Pack the run of ties and as many parts as fit into a word for each of ``rows``.

    Returns:
        The words, and the first part that did not fit; None if all parts are used.
    """
    used = int(runs[-1]).bit_length()
    word = runs
    part = left_over if left_over is not None else next(parts, None)
    while part is not None:
        values = part[rows]
        least = values.min()
        bits = int(values.max() - least).bit_length()
        if used + bits > _WORD_BITS:
            return word, part
        if bits:
            word = (word << np.uint64(bits)) | (values - least)
            used += bits
        part = next(parts, None)
    return word, None


def _parts(column: pa.Array, key: SortKey) -> Iterator[Array]:
    """Yield a column as numbers of up to 32 bits in the same order, the first most significant."""
    if column.null_count:
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        yield (valid if key.has_nulls_first else ~valid).astype(np.uint64)
        if column.null_count == len(column):
            return
    for word in _words(column):
        turned = ~word if key.is_descending else word
        # The value under a NULL is arbitrary and must not decide.
        known = np.where(valid, turned, np.uint64(0)) if column.null_count else turned
        yield known >> _HALF_BITS
        yield known & _LOW_HALF


def _words(column: pa.Array) -> Iterator[Array]:
    """Yield a column as numbers of 64 bits in the same order, the first most significant."""
    kind = column.type
    if pa.types.is_floating(kind):
        values = column.fill_null(0.0).to_numpy().astype(np.float64)
        # Arithmetic leaves NaN in several forms, of either sign.
        bits = np.where(np.isnan(values), np.nan, values).view(np.int64)
        yield np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits).view(np.uint64) ^ _SIGN
    elif pa.types.is_fixed_size_binary(kind) and kind.byte_width == _ADDRESS_BYTES:
        yield from _halves(column)
    elif pa.types.is_binary(kind) or pa.types.is_string(kind):
        length = pc.min_max(pc.binary_length(column)).as_py()
        if length["min"] == length["max"] == _ADDRESS_BYTES:
            yield from _halves(column.cast(pa.binary()).cast(pa.binary(_ADDRESS_BYTES)))
        else:
            yield _ranks(column)
    else:
        numbers = column.cast(pa.int64()).fill_null(0).to_numpy()
        yield numbers.view(np.uint64) ^ _SIGN


def _halves(addresses: pa.Array) -> Iterator[Array]:
    data = np.frombuffer(
        addresses.buffers()[1], ">u8", 2 * len(addresses), _ADDRESS_BYTES * addresses.offset
    )
    yield data[0::2].astype(np.uint64)
    yield data[1::2].astype(np.uint64)


def _ranks(column: pa.Array) -> Array:
    coded = column.dictionary_encode()
    by_value = pc.sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(by_value), np.uint64)
    ranks[by_value] = np.arange(len(by_value), dtype=np.uint64)
    by_row: Array = ranks[coded.indices.fill_null(0).to_numpy()]
    return by_row


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, of plain values."""
    joined = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks else pa.array([], joined.type)
    return joined.dictionary_decode() if pa.types.is_dictionary(joined.type) else joined
