"""The partition of a row: equal in all forms, even, and independent of the other hashes."""

from __future__ import annotations

import math
import random
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.queries.plan.partitioning.value_pools import GREATEST, LEAST, MAPPED, POOLS, V4

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.partition_hash import (
    START,
    ValueColumn,
    hash_value,
    partition_of,
    partition_of_values,
)
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms, threshold_of

if TYPE_CHECKING:
    from collections.abc import Sequence

INT, IP, BOOL = GsqlType.INT, GsqlType.IP, GsqlType.BOOL
MASK = (1 << 64) - 1
PRIMES = (
    11400714785074694791,
    14029467366897019727,
    1609587929392839161,
    9650029242287828579,
    2870177450012600261,
)
"""As the specification of XXH64 has them, in decimal."""


def turned(word: int, count: int) -> int:
    return (word << count | word >> 64 - count) & MASK


def plain_xxh64(data: bytes, seed: int) -> int:
    """XXH64 of whole words, fewer than four, written from its specification."""
    one, two, three, four, five = PRIMES
    state = (seed + five + len(data)) & MASK
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at : at + 8], "little")
        state ^= turned(word * two & MASK, 31) * one & MASK
        state = (turned(state, 27) * one + four) & MASK
    state = (state ^ state >> 33) * two & MASK
    state = (state ^ state >> 29) * three & MASK
    return state ^ state >> 32


def stored(values: Sequence[int | None], kind: GsqlType) -> pa.Array:
    """The column as a stream holds it; integers as narrow as their values allow."""
    if kind is IP:
        texts = [None if value is None else value.to_bytes(16) for value in values]
        return pa.array(texts, pa.binary(16))
    if kind is BOOL:
        return pa.array(values, pa.bool_())
    is_narrow = all(v is None or -(1 << 31) <= v < 1 << 31 for v in values)
    return pa.array(values, pa.int32() if is_narrow else pa.int64())


def plain_partition(members: list[list[tuple[int | None, GsqlType]]], partitions: int) -> int:
    """The partition by the text of the module alone."""

    def hashed(value: int | None, kind: GsqlType, seed: int) -> int:
        if value is None:
            return plain_xxh64((0x6E756C6C76616C75).to_bytes(8, "little"), seed)
        if kind is IP:
            return plain_xxh64(value.to_bytes(16, "big"), seed)
        return plain_xxh64(int(value).to_bytes(8, "little", signed=True), seed)

    start = plain_xxh64((0x7061727469746E73).to_bytes(8, "little"), 42)
    result = start
    for member in members:
        if len(member) == 1:
            result = hashed(*member[0], result)
        else:
            alone = sorted(hashed(*each, start) for each in member)
            alone.sort(key=lambda word: word - (1 << 64) if word >> 63 else word)
            for word in alone:
                result = plain_xxh64(word.to_bytes(8, "little"), result)
    return (result - (1 << 64) if result >> 63 else result) % partitions


@st.composite
def tables(
    draw: st.DrawFn,
) -> tuple[list[list[tuple[list[int | None], GsqlType]]], int]:
    """Members, each of one or two columns of one type, and a number of partitions."""
    rows = draw(st.integers(1, 12))
    members = []
    for _ in range(draw(st.integers(1, 3))):
        kind = draw(st.sampled_from(list(POOLS)))
        wide = st.integers(0, 2**128 - 1) if kind is IP else st.integers(LEAST, GREATEST)
        values = (
            st.sampled_from(POOLS[kind]) if kind is BOOL else st.sampled_from(POOLS[kind]) | wide
        )
        column = st.lists(values, min_size=rows, max_size=rows)
        members.append([(draw(column), kind) for _ in range(draw(st.integers(1, 2)))])
    return members, draw(st.integers(2, 1024))


@given(tables())
def test_columns_and_rows_agree_with_the_specification(
    table: tuple[list[list[tuple[list[int | None], GsqlType]]], int],
) -> None:
    members, partitions = table
    columns = [
        [ValueColumn.from_arrow(stored(values, kind), kind) for values, kind in member]
        for member in members
    ]
    found = partition_of(columns, partitions).tolist()
    for row, partition in enumerate(found):
        values = [[(column[row], kind) for column, kind in member] for member in members]
        assert partition == partition_of_values(values, partitions)
        assert partition == plain_partition(values, partitions)


def test_parts_of_columns_and_pieces_are_hashed_like_whole_ones() -> None:
    rows = 20_000
    chance = random.Random(1)
    ips = [chance.choice([None, V4 | chance.getrandbits(32)]) for _ in range(rows)]
    whole = stored(ips, IP)
    pieces = pa.chunked_array([whole[:7], whole[7:9000], whole[9000:]])
    first = partition_of([[ValueColumn.from_arrow(whole, IP)]], 64)
    assert (first == partition_of([[ValueColumn.from_arrow(pieces, IP)]], 64)).all()
    later = partition_of([[ValueColumn.from_arrow(whole[9001:], IP)]], 64)
    assert (first[9001:] == later).all()


def test_a_number_has_one_partition_however_it_is_stored() -> None:
    values = [-5, 0, 80, 255]
    found = [
        partition_of([[ValueColumn.from_arrow(pa.array(values, kind), INT)]], 64).tolist()
        for kind in (pa.int16(), pa.int32(), pa.int64())
    ]
    assert found[0] == found[1] == found[2]


def test_the_two_families_of_one_address_are_divided_apart() -> None:
    both = stored([V4 | 0x0A000001, MAPPED | 0x0A000001], IP)
    one, other = partition_of([[ValueColumn.from_arrow(both, IP)]], 1024).tolist()
    assert one != other


def test_the_order_of_a_pair_does_not_count_and_that_of_members_does() -> None:
    a, b = ((V4 | 1, IP),), ((V4 | 2, IP),)
    pair, swapped = [(*a[0:1], *b[0:1])], [(*b[0:1], *a[0:1])]
    assert partition_of_values(pair, 1024) == partition_of_values(swapped, 1024)
    assert partition_of_values([a, b], 1024) != partition_of_values([b, a], 1024)


def test_pairs_of_equal_values_are_in_many_partitions() -> None:
    found = {partition_of_values([[(port, INT), (port, INT)]], 64) for port in range(500)}
    assert len(found) == 64


@pytest.mark.parametrize("kind", [GsqlType.FLOAT, GsqlType.STRING])
def test_floats_and_strings_are_refused(kind: GsqlType) -> None:
    with pytest.raises(ValueError, match=kind.value):
        ValueColumn.from_arrow(pa.array([None], pa.null()), kind)
    with pytest.raises(ValueError, match=kind.value):
        hash_value(None, kind, START)


def is_even(counts: np.ndarray, trials: int) -> bool:
    """Whether counts are those of equal chances: a chi-square within five deviations."""
    expected = trials / len(counts)
    square = float(((counts - expected) ** 2 / expected).sum())
    degrees = len(counts) - 1
    return abs(square - degrees) < 5 * math.sqrt(2 * degrees)


@pytest.mark.parametrize("partitions", [2, 3, 64, 100])
def test_neighbouring_addresses_and_ports_are_spread_evenly(partitions: int) -> None:
    rows = 64_000
    addresses = stored([V4 | 0x0A000000 | n for n in range(rows)], IP)
    for column in (
        ValueColumn.from_arrow(addresses, IP),
        ValueColumn.from_numbers(np.arange(rows)),
    ):
        counts = np.bincount(partition_of([[column]], partitions), minlength=partitions)
        assert is_even(counts, rows)


def test_a_partition_does_not_depend_on_the_hash_of_sketches() -> None:
    """All partitions have their share of values whose ``hash_int`` ends alike.

    So they have of those whose ``hash_int`` begins alike.
    """
    counts = np.zeros((2, 16), np.int64)
    for number in range(32_000):
        hashed = evaluate(call("hash_int", Literal(number, INT)), lambda _: None)
        assert isinstance(hashed, int)
        partition = partition_of_values([[(number, INT)]], 16)
        counts[0, partition] += hashed % 16 == 0
        counts[1, partition] += hashed >> 60 == 3
    for ends in counts:
        assert is_even(ends, int(ends.sum()))


def test_a_partition_does_not_depend_on_the_sample() -> None:
    key = HashKey.of_seed(3)
    counts = np.zeros(16, np.int64)
    for number in range(32_000):
        if hash_terms((V4 | number,), (IP,), key) <= threshold_of(0.1):
            counts[partition_of_values([[(V4 | number, IP)]], 16)] += 1
    assert is_even(counts, int(counts.sum()))
