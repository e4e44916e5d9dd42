"""Answers from a sample: those of the packets that it keeps, scaled where they are estimates.

The expected answers are of runs that do not sample, over captures without the packets that the hash
leaves out, multiplied here.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import ipv4, tcp
from tests.capture.lfta.lfta_strategies import START_NS
from tests.capture.replay.test_replay_capture import write_pcap
from tests.golden.driver import Variation, answer

from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_packet, hash_terms, threshold_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import Program

QUERIES = """
DEFINE { query_name 'totals'; }
SELECT tb, count(*) as cnt, sum(srcPort) as ports, avg(srcPort) as mean, sample_rate
FROM TCP GROUP BY time/60 as tb;
DEFINE { query_name 'moving'; }
SELECT window_end, count(*) as cnt FROM TCP [RANGE 60 SLIDE 30];
DEFINE { query_name 'flows'; }
SELECT tb, srcIP, srcPort, count(*) as cnt, max(sequence_number) as newest
FROM TCP GROUP BY time/60 as tb, srcIP, srcPort;
DEFINE { query_name 'flow_counts'; }
SELECT tb, count(*) as flows, sum(cnt) as packets FROM flows GROUP BY tb
"""
SETS = {"packets": ("totals", "moving"), "groups": ("flows", "flow_counts")}
SHEDDING = SheddingSettings(SheddingMode.FIXED, 0.25, seed=41)
FACTOR = 4
PACKETS = 3000
KEY = HashKey.of_seed(SHEDDING.seed)
LOW = threshold_of(SHEDDING.rate)

Packet = tuple[int, bytes]


def source(number: int) -> int:
    return 0x0A000000 + number % 97


def packets() -> list[Packet]:
    """TCP packets of 97 sources, 20 a second."""
    return [
        (
            START_NS + n * 50_000_000,
            ipv4(source(n), 0xC0A80001, tcp(1024 + n % 97, 80, n, 16), 6),
        )
        for n in range(PACKETS)
    ]


def program(delivered: tuple[str, ...], *, samples: bool) -> Program:
    context = CompileContext(("main",), only=delivered, samples=samples)
    return compile_queries([QueryText(QUERIES, "set.gsql")], context).program


def is_in_sample_of_packets(number: int) -> bool:
    return hash_packet(number, KEY.of_interface("main"), KEY) <= LOW


def of_groups(sampled: Program) -> Callable[[int], bool]:
    """Whether the packet with a number is kept by the terms that the program chose."""
    (terms,) = {lfta.sampling.terms for lfta in sampled.lftas if lfta.sampling is not None}
    values: dict[str, Callable[[int], int]] = {
        "srcIP": lambda n: 0xFFFF << 32 | source(n),
        "srcPort": lambda n: 1024 + n % 97,
    }
    names = [term.name for term in terms if isinstance(term, PacketField)]
    assert names
    assert len(names) == len(terms)

    def is_kept(number: int) -> bool:
        row = [values[name](number) for name in names]
        return hash_terms(row, [term.type for term in terms], KEY) <= LOW

    return is_kept


def rows(
    folder: Path, compiled: Program, kept: list[Packet], variation: Variation, spark: SparkSession
) -> dict[str, list[tuple[str, ...]]]:
    write_pcap(folder / "main.pcap", kept)
    found = answer(compiled, {"main": [folder / "main.pcap"]}, variation, spark)
    return {name: sorted(each) for name, each in found.items()}


def scaled(row: tuple[str, ...], *columns: int) -> tuple[str, ...]:
    return tuple(str(int(value) * FACTOR) if n in columns else value for n, value in enumerate(row))


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    made = tmp_path / "whole", tmp_path / "kept"
    for folder in made:
        folder.mkdir()
    return made


VARIATION = Variation("sampled", interprets_plans=True)


@pytest.mark.spark
@pytest.mark.slow
def test_counts_and_sums_of_sampled_packets_are_scaled(
    folders: tuple[Path, Path], spark: SparkSession
) -> None:
    whole, kept = folders
    sampled = program(SETS["packets"], samples=True)
    methods = {lfta.sampling.method for lfta in sampled.lftas if lfta.sampling is not None}
    assert methods == {SamplingMethod.TUPLES}
    variation = replace(VARIATION, shedding=SHEDDING)
    found = rows(whole, sampled, packets(), variation, spark)
    some = [each for n, each in enumerate(packets()) if is_in_sample_of_packets(n)]
    plain = program(SETS["packets"], samples=False)
    expected = rows(kept, plain, some, VARIATION, spark)
    rate = repr(SHEDDING.rate)
    assert found["totals"] == [(*scaled(row, 1, 2)[:-1], rate) for row in expected["totals"]]
    assert found["moving"] == [scaled(row, 1) for row in expected["moving"]]
    assert len(found["totals"]) > 2


@pytest.mark.spark
@pytest.mark.slow
def test_sampled_groups_are_exact_and_counts_of_them_are_scaled(
    folders: tuple[Path, Path], spark: SparkSession
) -> None:
    whole, kept = folders
    sampled = program(SETS["groups"], samples=True)
    variation = replace(VARIATION, shedding=SHEDDING)
    found = rows(whole, sampled, packets(), variation, spark)
    is_kept = of_groups(sampled)
    some = [each for n, each in enumerate(packets()) if is_kept(n)]
    assert 0 < len(some) < PACKETS
    plain = program(SETS["groups"], samples=False)
    expected = rows(kept, plain, some, VARIATION, spark)
    assert found["flows"] == expected["flows"]
    assert found["flow_counts"] == [scaled(row, 1, 2) for row in expected["flow_counts"]]
