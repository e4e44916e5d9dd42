"""Partial tuples added into partial tuples: the groups of several hosts as one.

What an LFTA emits of a group may come in parts, and a relay makes one part of those that it has:
it sorts rows by their keys and folds each column by its ``PartialOp``, with numpy over columns.
Folds are associative and commutative, so neither the split of a group over hosts nor the depth of
the tree of relays changes the group in the end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.capture.log.stream_rows import relay_schema
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import Direction, GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gscope.queries.plan.program import Lfta, Partial

    Words = NDArray[np.int64]
    Flags = NDArray[np.bool_]

INTERFACE = "interface"

_LEAST, _GREATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max

_FOLDS: dict[PartialOp, tuple[np.ufunc, int]] = {
    PartialOp.COUNT: (np.add, 0),
    PartialOp.SUM: (np.add, 0),
    PartialOp.MIN: (np.minimum, _GREATEST),
    PartialOp.MAX: (np.maximum, _LEAST),
    PartialOp.OR: (np.bitwise_or, 0),
    PartialOp.AND: (np.bitwise_and, -1),
    PartialOp.XOR: (np.bitwise_xor, 0),
}
"""The fold of integers, which wraps as the kernel's does, and the value that stands for NULL."""


def merged_groups(table: pa.Table, lfta: Lfta) -> pa.Table:
    """Return the rows of ``table`` with those of equal keys folded into one, by epoch and key.

    Args:
        table: partial tuples in the relay's schema of ``lfta``.
        lfta: an aggregation.
    """
    schema = relay_schema(lfta)
    table = table.select(schema.names).combine_chunks()
    if table.num_rows < 2:
        return table
    names = [*(key.name for key in lfta.keys), *([INTERFACE] if lfta.has_interface_column else [])]
    words = [word for name in names for word in _key_words(table[name].chunk(0))]
    epoch = _integers(table[lfta.epoch or ""].chunk(0))
    if lfta.schema[lfta.epoch or ""].ordering.direction is Direction.DECREASING:
        epoch = ~epoch
    order = np.lexsort((_hashes(words), epoch))
    begins = _group_begins([word[order] for word in words])
    firsts = pa.array(order[begins])
    folded = {p.name: _folded(p, table[p.name].chunk(0), order, begins) for p in lfta.partials}
    return pa.Table.from_arrays(
        [
            folded[field.name] if field.name in folded else table[field.name].chunk(0).take(firsts)
            for field in schema
        ],
        schema=schema,
    )


def _hashes(words: Sequence[Words]) -> NDArray[np.uint64]:
    """Return a hash of each row's keys.

    Rows with equal hashes and different keys cost no more than a group in two parts: groups begin
    wherever keys differ.
    """
    mixed = np.zeros(len(words[0]), np.uint64)
    with np.errstate(over="ignore"):
        for word in words:
            mixed = (mixed ^ word.view(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(32)
            mixed *= np.uint64(0xD6E8FEB86659FD93)
            mixed ^= mixed >> np.uint64(29)
    return mixed


def _group_begins(words: Sequence[Words]) -> NDArray[np.intp]:
    """Return the positions where groups begin, in rows that are sorted by their keys."""
    is_new = np.zeros(len(words[0]), np.bool_)
    is_new[0] = True
    for word in words:
        is_new[1:] |= word[1:] != word[:-1]
    return np.flatnonzero(is_new)


def _key_words(values: pa.Array) -> list[Words]:
    """Return columns of integers that are equal exactly where the values are; NULL equals NULL."""
    words = [_numbered(values)] if pa.types.is_binary(values.type) else _words(values)
    if not values.null_count:
        return words
    is_null = _is_null(values)
    return [*(np.where(is_null, 0, word) for word in words), is_null.astype(np.int64)]


def _numbered(values: pa.Array) -> Words:
    encoded = values.dictionary_encode()
    return _integers(encoded.indices.cast(pa.int64()))


def _words(values: pa.Array) -> list[Words]:
    """Return the bits of fixed-width values; those of NULLs may be anything."""
    if pa.types.is_fixed_size_binary(values.type):
        pairs = np.frombuffer(values.buffers()[1], ">i8")
        pairs = pairs[2 * values.offset : 2 * (values.offset + len(values))].astype(np.int64)
        return [pairs[0::2].copy(), pairs[1::2].copy()]
    if pa.types.is_boolean(values.type):
        return [_integers(values.cast(pa.int64()))]
    return [_integers(values)]


def _integers(values: pa.Array) -> Words:
    """Return the 64-bit words of values, of doubles their bits; those of NULLs may be anything."""
    words = np.frombuffer(values.buffers()[1], np.int64)
    return words[values.offset : values.offset + len(values)]


def _is_null(values: pa.Array) -> Flags:
    flags: Flags = values.is_null().to_numpy(zero_copy_only=False)
    return flags


def _folded(
    partial: Partial, values: pa.Array, order: NDArray[np.intp], begins: NDArray[np.intp]
) -> pa.Array:
    """Return the fold of each group, whose rows begin at ``begins`` of ``order``."""
    if not values.null_count:
        is_missing = None
        is_empty = None
    else:
        is_missing = _is_null(values)[order]
        is_empty = np.logical_and.reduceat(is_missing, begins)
    words = [word[order] for word in _words(values)]
    if len(words) == 2:
        return _extreme_addresses(partial.op, words, begins, is_missing, is_empty)
    (word,) = words
    is_float = pa.types.is_floating(values.type)
    fold, neutral = _FOLDS[partial.op]
    if is_float:
        word = _ordered_bits(word)
    if is_missing is not None:
        word = np.where(is_missing, neutral, word)
    result = fold.reduceat(word, begins)
    if is_float:
        return _floats(_ordered_bits(result), is_empty)
    array = pa.array(result, mask=is_empty)
    return array.cast(pa.bool_()) if partial.type in (GsqlType.BOOL, GsqlType.NULL) else array


def _ordered_bits(bits: Words) -> Words:
    """Return the bits of doubles so that they order as the doubles, NaN last, and back again.

    LFTAs emit one zero and one NaN, whose sign is not set.
    """
    return np.where(bits < 0, bits ^ np.int64(_GREATEST), bits)


def _floats(bits: Words, is_empty: Flags | None) -> pa.Array:
    return pa.array(np.ascontiguousarray(bits).view(np.float64), mask=is_empty, from_pandas=False)


def _extreme_addresses(
    op: PartialOp,
    words: Sequence[Words],
    begins: NDArray[np.intp],
    is_missing: Flags | None,
    is_empty: Flags | None,
) -> pa.Array:
    """Return the least or the greatest address of each group, as 128 unsigned bits."""
    high, low = (word.view(np.uint64) for word in words)
    fold = np.minimum if op is PartialOp.MIN else np.maximum
    neutral = np.uint64(2**64 - 1 if op is PartialOp.MIN else 0)
    counts = np.diff(np.append(begins, len(high)))
    if is_missing is not None:
        high = np.where(is_missing, neutral, high)
    best_high = fold.reduceat(high, begins)
    is_candidate = high == np.repeat(best_high, counts)
    if is_missing is not None:
        is_candidate &= ~is_missing
    best_low = fold.reduceat(np.where(is_candidate, low, neutral), begins)
    pairs = np.empty((len(begins), 2), ">u8")
    pairs[:, 0], pairs[:, 1] = best_high, best_low
    values: Any = pairs.tobytes()
    addresses = pa.Array.from_buffers(pa.binary(16), len(begins), [None, pa.py_buffer(values)])
    if is_empty is None:
        return addresses
    nothing = pa.scalar(None, pa.binary(16))
    return pc.if_else(pa.array(is_empty), nothing, addresses)
