"""Estimates from samples are as near to the truth as the documentation says."""

from __future__ import annotations

import math
import random
from collections import Counter
from functools import lru_cache
from statistics import fmean, stdev

import pytest
from tests.engine.sampling.sampled import Packet, Sampled, ip, packet

RUNS = 200

THRESHOLD = """
SELECT tb, uts, destIP, sum(len), UMAX(sum(len), ssthreshold()), ssthreshold() FROM PKTS
WHERE ssample(len, 50) GROUP BY time/20 AS tb, destIP, uts HAVING ssfinal_clean(sum(len))
CLEANING_WHEN ssdo_clean() CLEANING_BY ssclean_with(sum(len))
"""
LEAST_HASHES = """
SELECT tb, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, 64) GROUP BY time/20 AS tb, H(srcIP) AS HX
HAVING HX <= Kth_smallest_value$(HX, 64) CLEANING_WHEN count_distinct$(*) >= 128
CLEANING_BY HX <= Kth_smallest_value$(HX, 64)
"""
RESERVOIR = """
SELECT tb, len FROM IP WHERE rsample(3) GROUP BY time/20 AS tb, uts, len HAVING rsfinal_clean()
CLEANING_WHEN rsdo_clean() CLEANING_BY rsclean_with()
"""
WINDOW_NS = 20 * 10**9


@lru_cache
def sampled(text: str) -> Sampled:
    return Sampled(text)


def heavy_tailed(chance: random.Random, count: int) -> list[Packet]:
    """Packets of two windows, a fifth of them to host 1."""
    return [
        packet(
            window * WINDOW_NS + n * 10**6,
            int(40 * chance.paretovariate(1.2)),
            dest=int(chance.random() < 0.2),
        )
        for window in range(2)
        for n in range(count)
    ]


@pytest.mark.parametrize("count", [80, 300])
def test_threshold_samples_estimate_the_sum_of_any_part(count: int) -> None:
    """The whole is short by a few thresholds at most.

    Of a part, two standard errors cover nine in ten.
    """
    covered = 0
    for number in range(RUNS):
        packets = heavy_tailed(random.Random(number), count)
        rows, _ = sampled(THRESHOLD).answers(packets)
        # the threshold of the first window comes from its initial value
        last = max(row[0] for row in rows)
        rows = [row for row in rows if row[0] == last]
        own = [each for each in packets if each["time"] // 20 == last]
        z = rows[0][-1]
        whole = sum(each["len"] for each in own)
        assert 0 <= whole - sum(row[4] for row in rows) < 5 * z
        assert all(estimate == max(exact, z) for *_, exact, estimate, _ in rows)
        large = {each["time_ns"] for each in own if each["len"] > z}
        assert large <= {row[1] for row in rows}
        lengths = {each["time_ns"]: each["len"] for each in own if each["destIP"] == ip(1)}
        part = [row for row in rows if row[1] in lengths]
        error = sum(row[4] for row in part) - sum(lengths.values())
        estimated = sum(row[3] <= z for row in part)
        covered += abs(error) <= 2 * z * math.sqrt(estimated)
    assert covered >= 0.9 * RUNS


@pytest.mark.parametrize("sources", [40, 63, 200, 500])
def test_least_hashes_count_sources_within_the_standard_error(sources: int) -> None:
    ratios = []
    for number in range(RUNS // 4):
        chance = random.Random(number)
        hosts = chance.sample(range(1 << 24), sources)
        rows, _ = sampled(LEAST_HASHES).answers([packet(n, src=h) for n, h in enumerate(hosts)])
        hashes = [value for _, value in rows]
        assert len(hashes) == min(sources, 64)
        estimate = 63 * 2.0**64 / (max(hashes) + 2.0**63)
        ratios.append((estimate if len(hashes) == 64 else len(hashes)) / sources)
    if sources < 64:
        assert set(ratios) == {1.0}
        return
    error = 1 / math.sqrt(62)
    assert abs(fmean(ratios) - 1) < 4 * error / math.sqrt(len(ratios))
    assert 0.6 * error < stdev(ratios) < 1.5 * error


def test_each_tuple_is_drawn_with_the_same_chance() -> None:
    """Three of ten tuples in each window: of a place, 30 % of the windows draw it."""
    windows, places, size = 1000, 10, 3
    packets = [
        packet(window * WINDOW_NS + place * 10**6, place)
        for window in range(windows)
        for place in range(places)
    ]
    rows, _ = sampled(RESERVOIR).answers(packets)
    drawn = Counter(place for _, place in rows)
    assert drawn.total() == windows * size
    share = size / places
    spread = math.sqrt(windows * share * (1 - share))
    assert all(abs(drawn[place] - windows * share) < 4 * spread for place in range(places))
