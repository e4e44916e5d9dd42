"""Windows give the rows of brute force: every tuple in every window that holds it.

Many random queries are answered in one replay, over bursts of packets with gaps up to a year
between them, late packets and disorder, in small batches, with evictions and crashes.
"""

from __future__ import annotations

from collections import Counter
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.answers.sliding import INTERFACES, QUERIES, BruteForce, bursts_of_traffic, random_sliding
from tests.golden.driver import Job, Variation, replayed
from tests.support.long_form import cases

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.windows.window_plan import WindowPlan

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

SECOND_NS = 10**9
BURSTS = 3
IN_DEFAULT_RUN = (142, WindowPlan.PAIRED, 7)
"""Seed, plan, and queries: a seed with disorder, late packets, SLICES, shared slices, rows that are
kept, and a crash between steps; the cost is that of queries times steps."""


def variation(seed: int, skew_ns: int) -> Variation:
    random = Random(seed)
    return Variation(
        f"seed {seed}",
        is_interpreted=True,
        table_slots=random.choice((4, 64, None)),
        output_rows=random.choice((1, None)),
        batch_rows=random.choice((20, 100)),
        heartbeat_interval_ns=random.choice((7_300_000_001, 60 * SECOND_NS)),
        heartbeat_every_tick=random.random() < 0.5,
        chunks=random.choice((1, 4, 12)),
        crashes=random.choice((0, 1, 3)),
        skew_ns=skew_ns,
        seed=seed,
        interprets_plans=True,
    )


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "way", cases([IN_DEFAULT_RUN], [(s, p, 12) for s in range(2, 8) for p in WindowPlan])
)
def test_windows_give_the_rows_of_brute_force(
    way: tuple[int, WindowPlan, int], spark: SparkSession, tmp_path: Path
) -> None:
    """Shared or not, from slices or from rows: whatever computes them."""
    seed, plan, count = way
    random = Random(seed)
    traffic = bursts_of_traffic(random, BURSTS)
    brute = BruteForce(traffic)
    queries = random_sliding(random, count)
    text = QUERIES + ";\n".join(query.gsql for query in queries)
    context = CompileContext(INTERFACES, window_plan=plan)
    program = compile_queries([QueryText(text, "windows")], context).program
    settings = variation(seed, traffic.skew_ns)
    messages, summary = replayed(program, traffic.write(tmp_path), settings, tmp_path / "log")
    assert {one.name: one.late for one in summary.interfaces} == brute.late
    answers = Job(program, messages, tmp_path, spark, settings).answers()
    for query in queries:
        found = answers[query.name]
        assert Counter(found) == Counter(brute.rows(query)), query.gsql
        ends = [row[0] for row in found]
        assert ends == sorted(ends), query.gsql
