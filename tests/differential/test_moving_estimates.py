"""Thresholds that move below estimates: each is scaled by the rate of its epoch, with its interval.

Plain loops over rows of the full answer choose those whose hash is below the threshold of the epoch
that counts them, and compute estimates and intervals from them. Over many seeds, estimates are
right on average.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.differential.moving import PLAIN, moved
from tests.support.long_form import cases

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.differential.moving import Moved
    from tests.golden.driver import Row, Variation
    from tests.support.shared_spark import SharedSpark

QUERIES = """
DEFINE { query_name flows; }
SELECT tb, srcIP, srcPort, count(*) as c, sum(len) as l
FROM TCP GROUP BY time/3 as tb, srcIP, srcPort SAMPLE BY srcIP, srcPort;
DEFINE { query_name of_flows; } SELECT tb, srcIP, srcPort, c, l FROM flows;

DEFINE { query_name totals; }
SELECT tb, count(*) as n, n_low, n_high, sum(c) as packets, packets_low, packets_high,
sum(l) / sum(c) as size, sample_groups, sample_rate FROM flows GROUP BY tb;
DEFINE { query_name coarse; }
SELECT tm, count(*) as n, sum(l) as bytes FROM flows GROUP BY tb/4 as tm;
DEFINE { query_name ports; }
SELECT tb, srcPort, count(*) as n, sum(c) as c FROM flows GROUP BY tb, srcPort;
DEFINE { query_name numbers; } SELECT tb, count(*) as n FROM flows WHERE c > 1 GROUP BY tb;
DEFINE { query_name summed; } SELECT tm, sum(n) FROM numbers GROUP BY tb/5 as tm;
"""
LFTA = "flows"
EPOCH_S = 3
Z2 = 1.959963984540054 * 1.959963984540054


def _scaled(value: int, rate: float) -> int:
    return value if rate == 1 else math.floor(value * (1 / rate) + 0.5)


def _epochs(run: Moved, seconds: int) -> Iterator[tuple[int, int, list[tuple[int, int, str, str]]]]:
    """Each epoch of some seconds, its threshold, and its flows below.

    Packets, bytes, port, host.
    """
    flows = defaultdict(list)
    for tb, source, port, packets, size in run.full["of_flows"]:
        flows[int(tb) * EPOCH_S // seconds].append((source, port, int(packets), int(size)))
    for epoch, rows in sorted(flows.items()):
        limit = run.threshold(LFTA, epoch * seconds, (epoch + 1) * seconds)
        yield (
            epoch,
            limit,
            [
                (packets, size, port, source)
                for source, port, packets, size in rows
                if run.hashed(LFTA, {"srcIP": source, "srcPort": port}) <= limit
            ],
        )


def _interval(value: int, squares: int, rate: float, least: float = -math.inf) -> tuple[int, int]:
    """The ends around an estimate.

    Rounded outwards, the low one of a count not below what was seen.
    """
    if rate == 1:
        return value, value
    half = math.sqrt(Z2 * ((1 - rate) / (rate * rate)) * squares)
    return int(max(math.floor(value - half), least)), math.ceil(value + half)


def _totals(run: Moved) -> Iterator[Row]:
    for epoch, limit, rows in _epochs(run, EPOCH_S):
        if not rows:
            continue
        rate = (limit + 1) / 2**64
        packets, size = sum(row[0] for row in rows), sum(row[1] for row in rows)
        n, total = _scaled(len(rows), rate), _scaled(packets, rate)
        ends = _interval(n, len(rows), rate, len(rows))
        of_packets = _interval(total, sum(row[0] ** 2 for row in rows), rate)
        mean = _scaled(size, rate) / total
        values = (epoch, n, *ends, total, *of_packets, mean, len(rows), rate)
        yield tuple(map(repr, values))


def _coarse(run: Moved) -> Iterator[Row]:
    for epoch, limit, rows in _epochs(run, 4 * EPOCH_S):
        rate = (limit + 1) / 2**64
        if rows:
            values = epoch, _scaled(len(rows), rate), _scaled(sum(row[1] for row in rows), rate)
            yield tuple(map(str, values))


def _ports(run: Moved) -> Iterator[Row]:
    for epoch, limit, rows in _epochs(run, EPOCH_S):
        rate = (limit + 1) / 2**64
        for port in {row[2] for row in rows}:
            own = [row for row in rows if row[2] == port]
            counts = len(own), sum(row[0] for row in own)
            yield (str(epoch), port, *(str(_scaled(each, rate)) for each in counts))


def _summed(run: Moved) -> Iterator[Row]:
    sums: Counter[int] = Counter()
    seen = set()
    for epoch, limit, rows in _epochs(run, EPOCH_S):
        if number := sum(row[0] > 1 for row in rows):
            sums[epoch // 5] += _scaled(number, (limit + 1) / 2**64)
            seen.add(epoch // 5)
    return ((str(epoch), str(sums[epoch])) for epoch in seen)


EXPECTED = {"totals": _totals, "coarse": _coarse, "ports": _ports, "summed": _summed}


def check(
    seed: int, shared: SharedSpark, variation: Variation, packets: int, *, thins: bool = False
) -> Moved:
    run = moved(QUERIES, seed, shared, variation, packets, thins=thins)
    for query, expected in EXPECTED.items():
        assert Counter(run.answers[query]) == Counter(expected(run)), query
    return run


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((5,), (1, 2, 3, 4, *range(6, 12))))
def test_an_estimate_is_scaled_by_the_rate_of_its_epoch(
    seed: int, shared_spark: SharedSpark
) -> None:
    variation = replace(
        PLAIN,
        seed=seed,
        crashes=(seed + 1) % 3,
        table_slots=4 if seed % 2 else None,
        heartbeat_every_tick=seed % 2 == 1,
        chunks=(15, 5)[seed % 2],
        batch_rows=(20, 7)[seed % 2],
    )
    run = check(seed, shared_spark, variation, 600)
    rates = {row[9] for row in run.answers["totals"]}
    assert seed != 5 or len(rates) > 1


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((2,), (1, *range(3, 9))))
def test_an_estimate_is_scaled_by_the_rate_to_which_a_full_log_was_thinned(
    seed: int, shared_spark: SharedSpark
) -> None:
    variation = replace(PLAIN, seed=seed, crashes=seed % 3, chunks=15, batch_rows=7)
    run = check(seed, shared_spark, variation, 400, thins=True)
    assert run.thinned
    assert seed != 2 or len({row[9] for row in run.answers["totals"]}) > 1
