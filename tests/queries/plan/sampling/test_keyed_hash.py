"""The keyed hash: uniform, independent of the hashes of the language, equal in all forms."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import (
    FULL_THRESHOLD,
    NULL_WORD,
    WORD,
    HashKey,
    address_words,
    hash_packet,
    hash_terms,
    hash_words,
    mix,
    rate_of,
    threshold_of,
)

SEEDS = st.integers(0, 2**64 - 1)
WORDS = st.integers(0, 2**64 - 1)
INT, IP = GsqlType.INT, GsqlType.IP


@given(SEEDS, st.lists(st.tuples(st.integers(0, 2**128 - 1), WORDS), min_size=1, max_size=20))
def test_columns_hash_as_each_row(seed: int, rows: list[tuple[int, int]]) -> None:
    key = HashKey.of_seed(seed)
    high, low, ports = (
        np.array(column, np.uint64)
        for column in zip(
            *((ip >> 64, ip & FULL_THRESHOLD, port) for ip, port in rows), strict=True
        )
    )
    hashed = hash_words([address_words(high, low, key), ports], key)
    assert [int(h) for h in hashed] == [hash_terms(row, (IP, INT), key) for row in rows]


@settings(max_examples=20)
@given(SEEDS)
def test_mixing_is_a_bijection_whose_high_bits_depend_on_every_bit(seed: int) -> None:
    key = HashKey.of_seed(seed)
    inverses = [pow(factor, -1, WORD) for factor in (key.first, key.second)]
    chance = random.Random(seed)
    flips = np.zeros((64, 64))
    for bit in range(64):
        for _ in range(40):
            word = chance.getrandbits(64)
            mixed = mix(word, key)
            back = (mixed ^ mixed >> 29 ^ mixed >> 58) * inverses[1] % WORD
            assert (back ^ back >> 32) * inverses[0] % WORD == word
            changed = mix(word ^ 1 << bit, key) ^ mixed
            flips[bit] += [changed >> other & 1 for other in range(64)]
    # Thresholds of rates down to 1e-6 compare these bits. Of 40 trials, 20 by chance.
    high = flips[:, 44:].mean(axis=1)
    assert high.min() > 8
    assert flips[:, 63].sum() < 64 * 32
    assert flips[:, 0].sum() > 64 * 4


def test_a_negative_number_and_null_have_words_of_their_own() -> None:
    key = HashKey.of_seed(7)
    hashes = {hash_terms((value,), (INT,), key) for value in (0, 1, -1, 2**63 - 1, -(2**63), None)}
    assert len(hashes) == 6
    assert hash_terms((None,), (INT,), key) == mix(key.start ^ NULL_WORD, key)
    assert hash_terms((None,), (IP,), key) == mix(key.start ^ NULL_WORD, key)


def test_the_order_of_terms_counts() -> None:
    key = HashKey.of_seed(7)
    assert hash_terms((1, 2), (INT, INT), key) != hash_terms((2, 1), (INT, INT), key)


@pytest.mark.parametrize("rate", [0.5, 0.1, 0.01])
def test_the_share_of_addresses_that_is_kept_is_the_rate(rate: float) -> None:
    chance = random.Random(3)
    low = np.arange(200_000, dtype=np.uint64) + np.uint64(0xFFFF_0A00_0000)
    for _ in range(5):
        key = HashKey.of_seed(chance.getrandbits(64))
        hashed = hash_words([address_words(np.zeros_like(low), low, key)], key)
        kept = int((hashed <= np.uint64(threshold_of(rate))).sum())
        deviation = math.sqrt(len(low) * rate * (1 - rate))
        assert abs(kept - len(low) * rate) < 5 * deviation


def test_samples_of_two_seeds_are_independent() -> None:
    numbers = np.arange(100_000, dtype=np.uint64)
    half = np.uint64(threshold_of(0.5))
    kept = [hash_words([numbers], HashKey.of_seed(seed)) <= half for seed in (1, 2)]
    both = int((kept[0] & kept[1]).sum())
    assert abs(both - 25_000) < 5 * math.sqrt(100_000 * 0.25 * 0.75)


def test_a_sample_does_not_depend_on_the_hashes_of_the_language() -> None:
    key = HashKey.of_seed(11)
    low_hashes = 0
    kept = 0
    for number in range(4000):
        if hash_terms((number,), (INT,), key) <= threshold_of(0.5):
            kept += 1
            hashed = evaluate(call("hash_int", Literal(number, INT)), lambda _: None)
            assert isinstance(hashed, int)
            low_hashes += hashed < 0
    assert abs(low_hashes - kept / 2) < 5 * math.sqrt(kept / 4)


@given(SEEDS)
def test_keys_have_good_multipliers(seed: int) -> None:
    key = HashKey.of_seed(seed)
    for factor in (key.first, key.second):
        assert factor % 2 == 1
        assert 24 <= factor.bit_count() <= 40
    assert len({key.start, key.address, key.packet, key.first, key.second}) == 5


def test_interfaces_number_their_packets_independently() -> None:
    key = HashKey.of_seed(5)
    one, two = key.of_interface("eth0"), key.of_interface("eth1")
    half = threshold_of(0.5)
    both = sum(
        hash_packet(n, one, key) <= half and hash_packet(n, two, key) <= half for n in range(10_000)
    )
    assert abs(both - 2500) < 5 * math.sqrt(10_000 * 0.25 * 0.75)


@given(st.floats(1e-12, 1.0))
def test_a_threshold_keeps_its_rate(rate: float) -> None:
    threshold = threshold_of(rate)
    assert 0 <= threshold <= FULL_THRESHOLD
    assert math.isclose(rate_of(threshold), rate, rel_tol=1e-6)


def test_the_rate_one_keeps_everything() -> None:
    assert threshold_of(1.0) == FULL_THRESHOLD
    assert rate_of(FULL_THRESHOLD) == 1.0
    assert threshold_of(0.5) == 2**63 - 1
    assert threshold_of(1e-300) == 0


@given(st.floats(1e-9, 1.0), st.floats(1e-9, 1.0))
def test_thresholds_rise_with_rates(one: float, two: float) -> None:
    low, high = sorted((one, two))
    assert threshold_of(low) <= threshold_of(high)


def test_sums_of_sampled_groups_are_unbiased_with_the_variance_of_the_theory() -> None:
    """Groups with a heavy tail, as flows have.

    Y/p has the mean Y and the variance (1 - p)/p ΣY².
    """
    rate, seeds = 0.2, 400
    chance = np.random.default_rng(9)
    sizes = np.floor(chance.pareto(1.3, 3000) * 10) + 1
    sizes = np.minimum(sizes, 5000)
    low = np.arange(len(sizes), dtype=np.uint64) + np.uint64(0xFFFF_0A00_0000)
    ports = chance.integers(0, 65536, len(sizes)).astype(np.uint64)
    threshold = np.uint64(threshold_of(rate))
    estimates = []
    for seed in range(seeds):
        key = HashKey.of_seed(seed)
        hashed = hash_words([address_words(np.zeros_like(low), low, key), ports], key)
        estimates.append(float(sizes[hashed <= threshold].sum()) / rate)
    variance = (1 - rate) / rate * float((sizes**2).sum())
    mean = sum(estimates) / seeds
    assert abs(mean - sizes.sum()) < 4 * math.sqrt(variance / seeds)
    found = sum((each - mean) ** 2 for each in estimates) / (seeds - 1)
    # A variance over 400 samples has a standard deviation of 7 % for a normal distribution.
    assert 0.7 < found / variance < 1.3
