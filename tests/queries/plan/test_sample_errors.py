"""The standard errors that the documentation states for estimates, with the hash of samples."""

from __future__ import annotations

import math
import random

import pytest

from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_packet, hash_terms, threshold_of

RUNS = 400
GROUPS = 4000


@pytest.mark.parametrize(("rate", "tail"), [(0.02, 2.5), (0.1, 1.5), (0.2, 1.5)])
def test_the_standard_error_of_a_sum_of_groups_follows_from_the_sample(
    rate: float, tail: float
) -> None:
    """sqrt((1 - R) Σ x²) / R over the kept groups; twice that covers most sums."""
    chance = random.Random(1)
    sizes = [math.ceil(chance.paretovariate(tail)) for _ in range(GROUPS)]
    whole, threshold = sum(sizes), threshold_of(rate)
    covered, total = 0, 0.0
    for seed in range(RUNS):
        key = HashKey.of_seed(seed)
        kept = [
            size
            for group, size in enumerate(sizes)
            if hash_terms([group], [GsqlType.INT], key) <= threshold
        ]
        estimate = sum(kept) / rate
        error = math.sqrt((1 - rate) * sum(size * size for size in kept)) / rate
        covered += abs(estimate - whole) <= 2 * error
        total += estimate
    true_error = math.sqrt((1 - rate) / rate * sum(size * size for size in sizes))
    assert abs(total / RUNS - whole) < 4 * true_error / math.sqrt(RUNS)
    assert covered >= 0.85 * RUNS


@pytest.mark.parametrize("rate", [0.02, 0.2])
def test_the_standard_error_of_a_count_of_packets_follows_from_the_sample(rate: float) -> None:
    """sqrt((1 - R) n) / R, where n packets are kept; twice that covers nine in ten counts."""
    threshold, covered = threshold_of(rate), 0
    for seed in range(RUNS):
        key = HashKey.of_seed(seed)
        start = key.of_interface("main")
        kept = sum(hash_packet(number, start, key) <= threshold for number in range(GROUPS))
        covered += abs(kept / rate - GROUPS) <= 2 * math.sqrt((1 - rate) * kept) / rate
    assert covered >= 0.9 * RUNS
