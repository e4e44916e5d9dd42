"""What a sample answers is a part of the full answer, and what it leaves out is the rest.

LFTAs run twice: once they keep the packets in the sample, once those that are not. Rows of results
that the analysis calls whole are in one of the two answers exactly, so that both together are the
answer of the reference, which knows nothing of samples. A query that is not sampled answers twice
in full.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from tests.differential.evaluate import Reference
from tests.differential.harness import (
    Outcome,
    accepted_queries,
    answers_of,
    compiled_set,
    is_small,
    plain_zeros,
    random_scenario,
)
from tests.differential.shown import shown
from tests.differential.syntax import HIDDEN
from tests.support.long_form import cases

from gscope.capture.shedding.settings import SheddingMode, SheddingSettings
from gscope.queries.plan.program import QueryInput
from gscope.queries.plan.program_sampling import SamplingMethod

if TYPE_CHECKING:
    from tests.support.shared_spark import SharedSpark

    from gscope.queries.plan.program import Input, Program

QUERIES = 5
SEEDS = (4003, 4051)
"""Small scenarios with several queries that are sampled by groups."""
MORE_SEEDS = (4000, 4007, 4008, 4031, 4053)
COMPILED_SEEDS = (4031, 4003)


@dataclass(slots=True)
class Seen:
    """What a scenario has shown: results that are whole, those of groups, those in part."""

    whole: int = 0
    in_groups: int = 0
    in_part: int = 0
    unsampled: int = 0


def scheme(program: Program, source: Input) -> tuple[set[SamplingMethod], bool]:
    """How a result is sampled, by which methods, and whether its rows are of the full answer."""
    if isinstance(source, QueryInput):
        for component in program.sampling:
            for node in component.nodes:
                if node.query == source.query:
                    sampled = [program.lfta(name).sampling for name in component.lftas]
                    return {each.method for each in sampled if each is not None}, node.is_whole
        return set(), True
    lfta = program.lfta(source.lfta)
    return {lfta.sampling.method} if lfta.sampling is not None else set(), not lfta.is_aggregation


def check(seed: int, shared: SharedSpark, *, is_interpreted: bool = True) -> Seen:
    scenario = random_scenario(seed, QUERIES, is_interpreted=is_interpreted)
    packets, _ = scenario.traffic.decoded()
    reference = Reference(packets)
    queries = [q for q in accepted_queries(scenario, Outcome()) if is_small(reference, q)]
    program = compiled_set(queries, scenario.traffic, samples=True).program
    random = Random(seed)
    shedding = SheddingSettings(
        SheddingMode.FIXED, random.choice((0.3, 0.5, 0.7)), random.getrandbits(64)
    )
    variation = replace(scenario.variation, shedding=shedding)
    kept, _ = answers_of(program, replace(scenario, variation=variation), shared.session())
    variation = replace(variation, is_interpreted=True, keeps_rest=True)
    # The rest is scaled as if it were the sample; rows that are whole are not scaled at all.
    rest, _ = answers_of(program, replace(scenario, variation=variation), shared.session())
    seen = Seen()
    results = dict(program.results)
    for query in queries:
        if query.name not in kept or query.name.startswith(HIDDEN):
            continue
        methods, is_whole = scheme(program, results[query.name])
        expected = Counter(shown(reference.rows(query), query.fields))
        rows, others = (Counter(plain_zeros(each[query.name])) for each in (kept, rest))
        if not methods:
            seen.unsampled += 1
            assert (rows, others) == (expected, expected), query.text
        elif is_whole:
            seen.whole += 1
            seen.in_part += bool(rows) and bool(others)
            seen.in_groups += SamplingMethod.GROUPS in methods and bool(expected)
            assert rows + others == expected, (seed, query.text)
    return seen


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases(SEEDS, long=MORE_SEEDS))
def test_a_sample_and_its_rest_are_the_answer_of_the_reference(
    seed: int, shared_spark: SharedSpark
) -> None:
    seen = check(seed, shared_spark)
    assert seen.whole
    if seed in SEEDS:
        assert seen.in_groups
        assert seen.in_part


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases((), long=COMPILED_SEEDS))
def test_compiled_they_are_as_well(seed: int, shared_spark: SharedSpark) -> None:
    assert check(seed, shared_spark, is_interpreted=False).whole
