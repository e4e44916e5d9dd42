"""Random queries over random traffic give the answers of a reference.

It shares no code with gscope. The seeds are fixed, so that the default run is reproducible. Search
by hand for more: ``python -m tests.differential --queries 2000 --seed 1``; with ``--captures
FOLDER`` the packets are those of captures, with ``--joins N`` the search goes on until N joins were
answered, and with ``--windows`` most queries have windows. ``--partitions 3`` divides the rows of
all steps, and with ``--cluster`` these run on two workers that do not see the folders of runs; both
are options of pytest as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.differential.harness import Outcome, compare, random_scenario
from tests.differential.minimise import minimised, report
from tests.support.long_form import cases

if TYPE_CHECKING:
    from tests.support.shared_spark import SharedSpark

QUERIES = 12
"""Queries of one scenario; about half as many come with them to be read."""
SEEDS = (226360, 1001, 1002)
"""Scenarios; the first found that the reference did not know the collision of decision 24."""
COMPILED_SEEDS = (2001,)
WINDOW_SEEDS = (8,)
"""It found that a key of a window may be a constant."""
MINIMISING_S = 120.0


def check(
    seed: int,
    queries: int,
    shared: SharedSpark,
    *,
    is_interpreted: bool = True,
    has_windows: bool = False,
    partitions: int = 1,
) -> Outcome:
    scenario = random_scenario(
        seed,
        queries,
        is_interpreted=is_interpreted,
        has_windows=has_windows,
        partitions=partitions,
    )
    outcome = compare(scenario, shared.session())
    for found in outcome.disagreements[:1]:
        smaller = minimised(scenario, found, shared.session(), MINIMISING_S)
        message = f"seed {seed}: {report(*smaller)}"
        raise AssertionError(message)
    return outcome


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_random_queries_give_the_answers_of_the_reference(
    seed: int, shared_spark: SharedSpark, partitions: int
) -> None:
    assert check(seed, QUERIES, shared_spark, partitions=partitions).compared


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", COMPILED_SEEDS)
def test_compiled_they_give_the_same(seed: int, shared_spark: SharedSpark, partitions: int) -> None:
    outcome = check(seed, QUERIES // 2, shared_spark, is_interpreted=False, partitions=partitions)
    assert outcome.compared


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("seed", cases(WINDOW_SEEDS, long=range(1, 8)))
def test_windows_give_the_answers_of_the_reference(
    seed: int, shared_spark: SharedSpark, partitions: int
) -> None:
    assert check(seed, QUERIES, shared_spark, has_windows=True, partitions=partitions).compared


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "divided",
    cases([(3001, 3)], long=[(seed, count) for seed in range(3002, 3006) for count in (3, 64)]),
)
def test_in_partitions_they_give_the_same(
    divided: tuple[int, int], shared_spark: SharedSpark
) -> None:
    seed, count = divided
    assert check(seed, QUERIES // 2, shared_spark, partitions=count).compared
