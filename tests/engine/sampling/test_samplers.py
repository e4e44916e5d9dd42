"""Each sampler of the library equals its plain reference over 200 random streams.

Streams are cut into steps at random windows; some states go through a Parquet file in between.
"""

from __future__ import annotations

import random
from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, Any, cast

import pyarrow.parquet as pq
import pytest
from tests.engine.sampling.references import (
    FlowSampler,
    ThresholdSampler,
    least_values,
    lossy_counts,
    seed_of,
    splitmix,
)
from tests.engine.sampling.sampled import BASE_S, Packet, Row, Sampled, ip, packet

from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

STREAMS = 200

SUBSET_SUM = """
SELECT tb, uts, srcIP, destIP, UMAX(sum(len), ssthreshold()) FROM PKTS WHERE ssample(len,{size})=TRUE
GROUP BY time/20 as tb, srcIP, destIP, uts HAVING ssfinal_clean(sum(len))=TRUE
CLEANING WHEN ssdo_clean()=TRUE CLEANING BY ssclean_with(sum(len))=TRUE
"""  # noqa: E501
BY_SOURCE = """
SELECT tb, srcIP, uts, UMAX(sum(len), ssthreshold()) FROM IP WHERE ssample(len, {size}) = TRUE
GROUP BY time/20 AS tb, srcIP, uts SUPERGROUP BY srcIP
HAVING ssfinal_clean(sum(len), count_distinct$(*)) = TRUE
CLEANING_WHEN ssdo_clean(count_distinct$(*)) = TRUE CLEANING_BY ssclean_with(sum(len)) = TRUE
"""
HEAVY = """
SELECT tb, srcIP, sum(len), count(*) FROM IP GROUP BY time/20 AS tb, srcIP
CLEANING_WHEN local_count({size}) = TRUE
CLEANING_BY count(*) >= current_bucket() - first(current_bucket())
"""
MIN_HASH = """
SELECT tb, srcIP, HX FROM IP WHERE HX <= Kth_smallest_value$(HX, {size})
GROUP BY time/20 AS tb, srcIP, H(destIP) AS HX SUPERGROUP BY tb, srcIP
HAVING HX <= Kth_smallest_value$(HX, {size})
CLEANING WHEN count_distinct$(*) >= {size} CLEANING BY HX <= Kth_smallest_value$(HX, {size})
"""
RESERVOIR = """
DEFINE {{ query_name 'drawn'; sampler_seed 5; }}
SELECT tb, srcIP, uts, len FROM IP WHERE rsample({size}) = TRUE
GROUP BY time/20 AS tb, srcIP, uts, len SUPERGROUP srcIP HAVING rsfinal_clean() = TRUE
CLEANING_WHEN rsdo_clean() = TRUE CLEANING_BY rsclean_with() = TRUE
"""
FLOWS = """
SELECT tb, srcIP, srcPort, UMAX(sum(len), ssthreshold()) FROM TCP WHERE flow_ssample({size}) = TRUE
GROUP BY time/20 AS tb, srcIP, srcPort
HAVING flow_ssfinal_clean(or_flag(FIN), 2, max(time), sum(len)) = TRUE
CLEANING_WHEN flow_ssdo_clean(max$(time)) = TRUE
CLEANING_BY flow_ssclean_with(or_flag(FIN), 2, max(time), sum(len)) = TRUE
""".replace("or_flag(FIN)", "max(FIN) = 1")


@lru_cache
def sampled(text: str) -> Sampled:
    return Sampled(text)


def stream(chance: random.Random, packets: int) -> list[Packet]:
    """Packets of some windows, with gaps, equal times, and a few that are much larger."""
    times = sorted(
        chance.randrange(0, 100 * 10**9, chance.choice((1, 10**8))) for _ in range(packets)
    )
    gap = chance.choice((0, 60 * 10**9))
    hosts = chance.choice((1, 3, 40))
    return [
        packet(
            at + (gap if at > 50 * 10**9 else 0),
            chance.choice((0, 40, 60, 1500, chance.randrange(65_000))),
            chance.randrange(hosts),
            chance.randrange(30),
            srcPort=chance.randrange(60),
            FIN=int(chance.random() < 0.2),
            protocol=6,
        )
        for at in times
    ]


def by_window(packets: list[Packet]) -> dict[int, list[Packet]]:
    windows: dict[int, list[Packet]] = defaultdict(list)
    for each in packets:
        windows[each["time"] // 20].append(each)
    return dict(sorted(windows.items()))


def in_steps(
    query: Sampled, packets: list[Packet], chance: random.Random, folder: Path
) -> list[Row]:
    """The answers of the operator, in steps of random windows.

    Some of its states are in a file between.
    """
    steps: list[list[Packet]] = [[]]
    for window in by_window(packets).values():
        if chance.random() < 0.4:
            steps.append([])
        steps[-1] += window
    rows: list[Row] = []
    states: pa.Table | None = None
    for step in steps:
        if not step:
            continue
        answers, states = query.answers(step, states)
        rows += answers
        if states is not None and chance.random() < 0.1:
            pq.write_table(states, folder / "states.parquet")
            states = pq.read_table(folder / "states.parquet")
    return rows


@pytest.mark.parametrize("text", [SUBSET_SUM, BY_SOURCE], ids=["window", "supergroup"])
def test_threshold_sampling(text: str, tmp_path: Path) -> None:
    for number in range(STREAMS):
        chance = random.Random(number)
        size = chance.choice((1, 3, 10))
        packets = stream(chance, chance.choice((5, 40, 160)))
        samplers: dict[Any, ThresholdSampler] = {}
        expected: list[Row] = []
        for tb, window in by_window(packets).items():
            before, samplers = samplers, {}
            streams: dict[Any, list[tuple[Row, float]]] = defaultdict(list)
            for each in window:
                scope = each["srcIP"] if text is BY_SOURCE else None
                dest = () if text is BY_SOURCE else (each["destIP"],)
                streams[scope].append(((each["srcIP"], *dest, each["time_ns"]), each["len"]))
            for scope, tuples in streams.items():
                sampler = samplers[scope] = before.get(scope) or ThresholdSampler(size)
                if scope in before:
                    sampler.next_window()
                for (*keys, uts), estimate in sampler.window(tuples).items():
                    order = (uts, *keys) if text is SUBSET_SUM else (*keys, uts)
                    expected.append((tb, *order, estimate))
        found = in_steps(sampled(text.format(size=size)), packets, chance, tmp_path)
        assert sorted(found) == sorted(expected), f"stream {number}"


def test_lossy_counting(tmp_path: Path) -> None:
    for number in range(STREAMS):
        chance = random.Random(number)
        width = chance.choice((1, 2, 7, 50))
        packets = stream(chance, chance.choice((5, 40, 160)))
        found = in_steps(sampled(HEAVY.format(size=width)), packets, chance, tmp_path)
        counted = {(tb, src): count for tb, src, _, count in found}
        for tb, window in by_window(packets).items():
            keys = [(each["srcIP"],) for each in window]
            held = lossy_counts(keys, width)
            assert {k: c for k, (c, _) in held.items()} == {
                (src,): count for (at, src), count in counted.items() if at == tb
            }
            # The guarantee: counts are short by at most N / width.
            for key in set(keys):
                short = keys.count(key) - counted.get((tb, *key), 0)
                assert 0 <= short <= len(keys) / width


def test_min_hash(tmp_path: Path) -> None:
    hashes = {
        dest: cast("int", evaluate(call("hash_ip", Literal(ip(dest), GsqlType.IP)), lambda _: None))
        for dest in range(30)
    }
    for number in range(STREAMS):
        chance = random.Random(number)
        size = chance.choice((1, 4, 12))
        packets = stream(chance, chance.choice((5, 40, 160)))
        expected = []
        for tb, window in by_window(packets).items():
            for src in {each["srcIP"] for each in window}:
                dests = [each["destIP"] & 0xFFFFFF for each in window if each["srcIP"] == src]
                values = [hashes[dest] for dest in dests]
                expected += [(tb, src, value) for value in least_values(values, size)]
        found = in_steps(sampled(MIN_HASH.format(size=size)), packets, chance, tmp_path)
        assert sorted(found) == sorted(expected), f"stream {number}"


def test_reservoir(tmp_path: Path) -> None:
    for number in range(STREAMS):
        chance = random.Random(number)
        size = chance.choice((1, 4, 12))
        packets = stream(chance, chance.choice((5, 40, 160)))
        packets = list({each["time_ns"]: each for each in packets}.values())
        expected: list[Row] = []
        for tb, window in by_window(packets).items():
            for src in {each["srcIP"] for each in window}:
                own = [each for each in window if each["srcIP"] == src]
                seed = seed_of("5|drawn|", [tb, src.to_bytes(16)])
                drawn = sorted(range(len(own)), key=lambda place: splitmix(seed, place) >> 1)
                expected += [(tb, src, own[n]["time_ns"], own[n]["len"]) for n in drawn[:size]]
        found = in_steps(sampled(RESERVOIR.format(size=size)), packets, chance, tmp_path)
        assert sorted(found) == sorted(expected), f"stream {number}"


def test_flow_sampling(tmp_path: Path) -> None:
    for number in range(STREAMS):
        chance = random.Random(number)
        size = chance.choice((1, 4, 12))
        packets = stream(chance, chance.choice((5, 40, 160)))
        expected: list[Row] = []
        z = 200.0
        for tb, window in by_window(packets).items():
            sampler = FlowSampler(size, 2, z)
            tuples = [
                ((e["srcIP"], e["srcPort"]), e["time"], e["len"], bool(e["FIN"])) for e in window
            ]
            estimates = sampler.window(tuples)
            ended = sampler.ended_with
            z = max(1.0, sampler.z * ended / size if ended < size else sampler.z)
            expected += [(tb, *key, estimate) for key, estimate in estimates.items()]
        found = in_steps(sampled(FLOWS.format(size=size)), packets, chance, tmp_path)
        assert sorted(found) == sorted(expected), f"stream {number}"


def test_estimates_are_near_the_truth() -> None:
    """The sum of the estimates is within the published bound of a few thresholds."""
    chance = random.Random(7)
    query = Sampled(SUBSET_SUM.format(size=100))
    packets = [packet(n * 10**6, chance.randrange(40, 1500), 1, n % 7) for n in range(20_000)]
    rows, states = query.answers(packets)
    assert states is not None
    z = states["s0"][0].as_py()
    for tb, window in by_window(packets).items():
        estimate = sum(row[-1] for row in rows if row[0] == tb)
        assert abs(estimate - sum(each["len"] for each in window)) <= 4 * z
    assert rows[0][0] >= BASE_S // 20
