"""Random queries over random traffic give the answers of a reference that shares no code with gscope.

More of the same: ``python -m tests.differential --queries 2000 --seed 1``; with ``--captures FOLDER`` the
packets are those of captures, and with ``--joins N`` it goes on until N joins were answered.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.differential.harness import Outcome, compare, random_scenario
from tests.differential.minimise import minimised, report

if TYPE_CHECKING:
    from tests.support.shared_spark import SharedSpark

IS_CI = bool(os.environ.get("CI"))
QUERIES = 12
"""Queries of one scenario; about half as many come with them to be read."""
SCENARIOS = 12 if IS_CI else 3
COMPILED_SCENARIOS = 2 if IS_CI else 1
MINIMISING_S = 120.0

SEEDS = st.integers(0, 2**32 - 1)
# Seeds do not shrink: what disagrees is made small by minimise.py.
_once = settings(
    phases=(Phase.generate,), suppress_health_check=list(HealthCheck), deadline=None, database=None
)


def check(seed: int, queries: int, shared: SharedSpark, *, is_interpreted: bool) -> Outcome:
    scenario = random_scenario(seed, queries, is_interpreted=is_interpreted)
    outcome = compare(scenario, shared.session())
    for found in outcome.disagreements[:1]:
        smaller = minimised(scenario, found, shared.session(), MINIMISING_S)
        message = f"seed {seed}: {report(*smaller)}"
        raise AssertionError(message)
    return outcome


@pytest.mark.spark
@pytest.mark.slow
@settings(_once, max_examples=SCENARIOS)
@given(seed=SEEDS)
def test_random_queries_give_the_answers_of_the_reference(
    seed: int, shared_spark: SharedSpark
) -> None:
    check(seed, QUERIES, shared_spark, is_interpreted=True)


@pytest.mark.spark
@pytest.mark.slow
@settings(_once, max_examples=COMPILED_SCENARIOS)
@given(seed=SEEDS)
def test_compiled_they_give_the_same(seed: int, shared_spark: SharedSpark) -> None:
    check(seed, QUERIES // 2, shared_spark, is_interpreted=False)
