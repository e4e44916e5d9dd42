"""Samples of captures against DuckDB over what tshark reads from them.

The rows of whole queries are the full answer filtered by the hash of their terms. Scaled columns
are the sums over what the hash keeps, multiplied; their mean over many seeds is the full answer.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.answers.sample_cases import SCALED, WHOLE, text
from tests.answers.sample_oracle import WORD, add_keys, hash_of, open_packets
from tests.golden.driver import Variation, answer
from tests.support.long_form import cases
from tests.support.requirements import needs

from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.capture.sources.synthetic import source as synthetic
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    import duckdb
    from pyspark.sql import SparkSession
    from tests.answers.sample_cases import ScaledCase, WholeCase

    from gscope.queries.plan.program import Program

LINKS = ("one", "two")
PACKETS = 700
"""Packets on each link, 40 a second."""
RATES = (0.4, 0.25, 0.02)
"""The rate of a run is that of its seed modulo 3; few groups are left at the last."""
SEEDS = range(400)

pytestmark = [needs("tshark"), pytest.mark.slow]


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("samples")
    found = {}
    for seed, link in enumerate(LINKS):
        found[link] = folder / f"{link}.pcap"
        profile = synthetic.TrafficProfile(
            seed=seed,
            packets_per_second=40.0,
            flows=60,
            stable_flows=10,
            churn_s=3.0,
            clients=40,
            servers=12,
            ipv6_share=0.3,
        )
        synthetic.write_pcap(profile, found[link], PACKETS)
    return found


@pytest.fixture(scope="module")
def oracle(captures: dict[str, Path]) -> duckdb.DuckDBPyConnection:
    database = open_packets(captures)
    add_keys(database, SEEDS, LINKS)
    return database


@pytest.fixture(scope="module")
def program() -> Program:
    context = CompileContext(LINKS, samples=True)
    return compile_queries([QueryText(text(), "samples")], context).program


def sampled(
    program: Program, captures: dict[str, Path], seed: int, spark: SparkSession
) -> dict[str, list[tuple[str, ...]]]:
    shedding = SheddingSettings(SheddingMode.FIXED, RATES[seed % 3], seed)
    variation = Variation("sampled", is_interpreted=True, interprets_plans=True, shedding=shedding)
    return answer(program, {link: [path] for link, path in captures.items()}, variation, spark)


def threshold(rate: float) -> int:
    return math.floor(rate * WORD) - 1


def shown(row: Sequence[object]) -> tuple[str, ...]:
    return tuple("" if value is None else str(value) for value in row)


def whole_rows(
    oracle: duckdb.DuckDBPyConnection, case: WholeCase, seed: int, rate: float
) -> Counter[tuple[str, ...]]:
    found = oracle.execute(
        f"SELECT {case.columns} FROM ({case.sql}) f, (SELECT k FROM keys k WHERE seed = {seed}) "
        f"WHERE {hash_of(case.terms)} <= {threshold(rate)}::UBIGINT"
    )
    return Counter(map(shown, found.fetchall()))


def scaled_rows(
    oracle: duckdb.DuckDBPyConnection, case: ScaledCase, seed: int, rate: float
) -> Counter[tuple[str, ...]]:
    sums = ", ".join(f"sum({name}) AS {name}" for name in case.sums)
    columns = ", ".join(f"scaled({c})::BIGINT" if c in case.sums else c for c in case.columns)
    oracle.execute(
        f"CREATE OR REPLACE MACRO scaled(x) AS floor(x::DOUBLE * {1 / rate!r}::DOUBLE + 0.5)"
    )
    found = oracle.execute(
        f"SELECT tb, {columns} FROM (SELECT tb, {sums} FROM ({case.units}) f, "
        f"(SELECT k FROM keys k WHERE seed = {seed}) WHERE {is_kept(case, rate)} GROUP BY tb)"
    )
    return Counter(map(shown, found.fetchall()))


def is_kept(case: ScaledCase, rate: float) -> str:
    """Return the condition on a unit ``f`` that a sample by the key ``k`` keeps it, in SQL."""
    if case.terms:
        return f"{hash_of(case.terms)} <= {threshold(rate)}::UBIGINT"
    starts = " ".join(f"WHEN '{link}' THEN k.link_{link}" for link in LINKS)
    start = f"CASE f.link {starts} END"
    return f"packet_hash(f.number, {start}, k) <= {threshold(rate)}::UBIGINT"


def test_the_terms_are_those_of_the_cases(program: Program) -> None:
    found = {
        lfta.name: ", ".join(map(show, lfta.sampling.terms)) or lfta.sampling.method.value
        for lfta in program.lftas
        if lfta.sampling is not None
    }
    expected = {lfta: terms for case in WHOLE.values() for lfta, terms in case.shown.items()}
    assert expected.items() <= found.items()
    assert {found[name] for name in found.keys() - expected.keys()} == {
        case.shown for case in SCALED.values()
    }
    nodes = {node.query: node for part in program.sampling for node in part.nodes}
    assert all(nodes[name].is_whole for name in WHOLE)
    assert all(nodes[name].scaled for name in SCALED)


@pytest.mark.spark
@pytest.mark.parametrize("seed", cases((3,), range(4, 28)))
def test_a_sample_is_what_the_hash_keeps_of_the_full_answer(
    program: Program,
    captures: dict[str, Path],
    oracle: duckdb.DuckDBPyConnection,
    seed: int,
    spark: SparkSession,
) -> None:
    rate = RATES[seed % 3]
    found = sampled(program, captures, seed, spark)
    for name, case in WHOLE.items():
        full = whole_rows(oracle, case, seed, 1.0)
        expected = whole_rows(oracle, case, seed, rate)
        assert Counter(found[name]) == expected, name
        assert expected.total() < full.total(), name
        assert expected or rate < min(RATES[:2]), name
    for name, scaled in SCALED.items():
        expected = scaled_rows(oracle, scaled, seed, rate)
        assert Counter(found[name]) == expected, name
        assert expected or rate < min(RATES[:2]), name


@pytest.mark.parametrize("name", SCALED)
def test_the_mean_of_scaled_columns_over_seeds_is_the_full_answer(
    oracle: duckdb.DuckDBPyConnection, name: str
) -> None:
    """Within four standard deviations.

    The variance is (1 - R)/R · Σx² over the units of an epoch.
    """
    case, rate = SCALED[name], 0.25
    terms = ", ".join(
        f"sum(CASE WHEN {is_kept(case, rate)} THEN {x} ELSE 0 END) AS {x}" for x in case.sums
    )
    means = ", ".join(
        f"avg({x}) / {rate} - any_value(full_{x}),"
        f" sqrt({(1 - rate) / rate} * any_value(square_{x}))"
        for x in case.sums
    )
    full = ", ".join(f"sum({x}) AS full_{x}, sum({x} * {x}) AS square_{x}" for x in case.sums)
    rows = oracle.execute(
        f"SELECT {means} FROM "
        f"(SELECT tb, k.seed, {terms} FROM ({case.units}) f, (SELECT k FROM keys k) GROUP BY ALL) "
        f"JOIN (SELECT tb, {full} FROM ({case.units}) GROUP BY tb) USING (tb) GROUP BY tb"
    ).fetchall()
    assert len(rows) > 2
    for row in rows:
        for error, deviation in zip(row[::2], row[1::2], strict=True):
            assert deviation > 0
            assert abs(error) < 4 * deviation / math.sqrt(len(SEEDS))
