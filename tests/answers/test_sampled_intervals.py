"""A sampled replay with intervals, bit for bit against loops over the packets that the hash keeps.

The loops know packets, flows and hosts. They share with the product the hash by which packets are
kept, which tests of its own check, and the order of operations on FLOAT.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from tests.answers.test_sampled_answers import (
    SHEDDING,
    VARIATION,
    is_in_sample_of_packets,
    source,
)
from tests.capture.lfta.lfta_builders import ipv4, tcp
from tests.capture.lfta.lfta_strategies import START_NS
from tests.capture.replay.test_replay_capture import write_pcap
from tests.golden.driver import RESTLESS, Row, Variation, answer

from gscope.queries.catalog.scalar.hashes import xxh64
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms, threshold_of

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

PACKETS = """
DEFINE { query_name 'totals'; }
SELECT tb, count(*) AS cnt, cnt_low, cnt_high, sum(srcPort) AS ports, ports_low, ports_high,
    avg(srcPort) AS mean, mean_low, mean_high, sample_groups
FROM TCP GROUP BY time/60 AS tb;
DEFINE { query_name 'moving'; }
SELECT window_end, sum(srcPort) AS ports, ports_low, ports_high, sample_groups
FROM TCP [RANGE 60 SLIDE 30]
"""
FLOWS = """
DEFINE { query_name 'flows'; }
SELECT tb, srcIP, srcPort, count(*) AS cnt FROM TCP GROUP BY time/60 AS tb, srcIP, srcPort
SAMPLE BY %s;
DEFINE { query_name 'answer'; }
SELECT tb, count(*) AS flows, flows_low, flows_high, sum(cnt) AS packets, packets_low, packets_high,
    sum(cnt) / count(*) AS size, size_low, size_high, sample_groups
FROM flows GROUP BY tb
"""
BESIDE = """
DEFINE { query_name 'hosts'; }
SELECT tb, srcIP, max(srcPort) AS most FROM TCP GROUP BY time/60 AS tb, srcIP;
DEFINE { query_name 'all'; }
SELECT tb, count(*) AS cnt, cnt_low, cnt_high, sample_groups FROM TCP GROUP BY time/60 AS tb;
DEFINE { query_name 'answer'; }
SELECT H.tb, H.srcIP, A.cnt, A.cnt_low, A.cnt_high, A.sample_groups
FROM hosts H, all A WHERE H.tb = A.tb
"""
RATE = SHEDDING.rate
KEY = HashKey.of_seed(SHEDDING.seed)
Z2 = 1.959963984540054 * 1.959963984540054
FACTOR = Z2 * ((1 - RATE) / (RATE * RATE))
COUNT = 3000


def second(number: int) -> int:
    return (START_NS + number * 50_000_000) // 1_000_000_000


def port(number: int) -> int:
    """Of each of the 97 sources one to four ports."""
    return 1024 + number % (97 * (1 + source(number) % 4))


def address(number: int) -> int:
    return 0xFFFF << 32 | source(number)


def keeps(number: int, *, by_port: bool) -> bool:
    values, types = [address(number)], [GsqlType.IP]
    if by_port:
        values, types = [*values, port(number)], [*types, GsqlType.INT]
    return hash_terms(values, types, KEY) <= threshold_of(RATE)


def estimate(total: float, squares: float, least: float = -math.inf) -> tuple[str, str, str]:
    """An estimated whole number with its interval."""
    value = math.floor(total / RATE + 0.5)
    half = math.sqrt(squares * FACTOR)
    return str(value), str(max(math.floor(value - half), least)), str(math.ceil(value + half))


def ratio(above: float, below: float, yy: float, xy: float, xx: float) -> tuple[str, str, str]:
    """An estimated ratio with its interval, from sums of squares and products."""
    value = above / below
    residual = yy - 2.0 * value * xy + value * value * xx
    half = math.sqrt(residual / (below * below) * (Z2 * (1.0 - RATE)))
    return repr(value), repr(value - half), repr(value + half)


def in_buckets(values: Iterable[tuple[int, float, float]]) -> float:
    """32/31·Σ(y_b - ȳ)(z_b - z̄) of y and z by address, as one division into 32 buckets."""
    ys, zs = [0.0] * 32, [0.0] * 32
    for host, y, z in values:
        bucket = xxh64(host.to_bytes(16)) & 31
        ys[bucket] += y
        zs[bucket] += z
    both = sum(y * z for y, z in zip(ys, zs, strict=True))
    return 32 / 31 * (both - sum(ys) * sum(zs) * (1 / 32))


def answers(
    folder: Path, text: str, spark: SparkSession, variation: Variation, *only: str
) -> dict[str, list[Row]]:
    packets = [
        (START_NS + n * 50_000_000, ipv4(source(n), 0xC0A80001, tcp(port(n), 80, n, 16), 6))
        for n in range(COUNT)
    ]
    write_pcap(folder / "main.pcap", packets)
    context = CompileContext(("main",), only=only, samples=True)
    program = compile_queries([QueryText(text, "set.gsql")], context).program
    found = answer(program, {"main": [folder / "main.pcap"]}, variation, spark)
    return {name: sorted(rows) for name, rows in found.items()}


VARIATIONS = (replace(VARIATION, shedding=SHEDDING), replace(RESTLESS, shedding=SHEDDING))


def of_packets(rows: list[int]) -> tuple[str, ...]:
    ports = sum(map(port, rows))
    squares = sum(port(n) ** 2 for n in rows)
    size = len(rows)
    return (
        *estimate(size, size, size),
        *estimate(ports, squares, ports),
        *ratio(ports, size, squares, ports, size),
        str(size),
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("variation", VARIATIONS, ids=lambda each: each.name)
def test_intervals_of_single_packets(
    tmp_path: Path, spark: SparkSession, variation: Variation
) -> None:
    kept = [n for n in range(COUNT) if is_in_sample_of_packets(n)]
    minutes: dict[int, list[int]] = defaultdict(list)
    for number in kept:
        minutes[second(number) // 60].append(number)
    found = answers(tmp_path, PACKETS, spark, variation, "totals", "moving")
    assert found["totals"] == [(str(tb), *of_packets(rows)) for tb, rows in sorted(minutes.items())]
    windows: dict[int, list[int]] = defaultdict(list)
    for number in kept:
        first = second(number) // 30 * 30 + 30
        for end in (first, first + 30):
            windows[end].append(number)
    expected = [of_packets(rows) for _, rows in sorted(windows.items())]
    assert [row[1:] for row in found["moving"]] == [(*row[3:6], row[-1]) for row in expected]
    assert len(minutes) > 2


def of_flows(flows: dict[tuple[int, int], int], *, is_bucketed: bool) -> tuple[str, ...]:
    """The answer of the flows of a minute, by address and port."""
    rows = [(host, count) for (host, _), count in flows.items()]
    hosts = {host for host, _ in rows}
    packets, size = sum(flows.values()), len(flows)
    if is_bucketed:
        xx = in_buckets((host, 1, 1) for host, _ in rows)
        xy = in_buckets((host, count, 1) for host, count in rows)
        yy = in_buckets((host, count, count) for host, count in rows)
    else:
        xx, xy, yy = size, packets, sum(count**2 for _, count in rows)
    return (
        *estimate(size, xx, size),
        *estimate(packets, yy),
        *ratio(packets, size, yy, xy, xx),
        str(len(hosts) if is_bucketed else size),
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("variation", VARIATIONS, ids=lambda each: each.name)
@pytest.mark.parametrize("terms", ["srcIP, srcPort", "srcIP"])
def test_intervals_of_groups(
    tmp_path: Path, spark: SparkSession, variation: Variation, terms: str
) -> None:
    by_port = terms == "srcIP, srcPort"
    minutes: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for number in range(COUNT):
        if keeps(number, by_port=by_port):
            minutes[second(number) // 60][address(number), port(number)] += 1
    found = answers(tmp_path, FLOWS % terms, spark, variation, "answer")
    assert found["answer"] == [
        (str(tb), *of_flows(flows, is_bucketed=not by_port))
        for tb, flows in sorted(minutes.items())
    ]
    assert len(minutes) > 2


@pytest.mark.spark
@pytest.mark.slow
def test_intervals_of_packets_that_are_kept_with_their_hosts(
    tmp_path: Path, spark: SparkSession
) -> None:
    """Here the LFTA sums by bucket."""
    minutes: dict[int, list[int]] = defaultdict(list)
    for number in range(COUNT):
        if keeps(number, by_port=False):
            minutes[second(number) // 60].append(address(number))
    expected: dict[str, tuple[Any, ...]] = {}
    for tb, rows in minutes.items():
        squares = in_buckets((host, 1, 1) for host in rows)
        expected[str(tb)] = (*estimate(len(rows), squares, len(rows)), str(len(set(rows))))
    found = answers(tmp_path, BESIDE, spark, VARIATIONS[0], "answer")
    assert {row[0]: row[2:] for row in found["answer"]} == expected
