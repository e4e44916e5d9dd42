"""Every golden case, computed in several ways, gives the rows of the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import Case, all_cases, deal
from tests.golden.driver import AWAY, BACKLOG, COMPILED, VARIATIONS, Variation, answer
from tests.support.divided_steps import divided_steps
from tests.support.long_form import cases, pairs

from gscope.engine.spark import evaluation
from gscope.engine.watermarks import release_size
from gscope.queries.plan.program import QueryInput
from gscope.queries.plan.row_order import visible

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

CASES = all_cases()


def named(value: Case | Variation) -> str:
    return value.name


@pytest.mark.parametrize("case", CASES, ids=named)
def test_the_reference_derives_the_expected_rows(case: Case) -> None:
    expected = case.expected()
    assert case.derived() == expected
    shown = all if case.is_ordered else any
    assert shown(expected.values()), "a case without rows shows nothing"


@pytest.mark.spark
@pytest.mark.parametrize(("case", "variation"), pairs(CASES, VARIATIONS, always=1, name=named))
def test_every_way_gives_the_expected_rows(
    case: Case, variation: Variation, spark: SparkSession, partitions: int
) -> None:
    program = case.program(case.files, partitions)
    rows = answer(program, case.files, variation, spark)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
    for query, source in program.results:
        first = visible(program.schema(query)).columns[0]
        assert first.ordering.is_temporal == case.is_ordered
        # Streams of LFTAs are put in order where they are delivered.
        if isinstance(source, QueryInput) and case.is_ordered:
            times = [int(row[0]) for row in rows[query]]
            assert times == sorted(times)


MERGED_CASES = ("filter_join", "full_flow", "max_dups", "merged_selection", "sizes")
"""Joins, aggregates of aggregates, a merge of selections, and an aggregate of two links."""


@pytest.mark.spark
@pytest.mark.parametrize("case", [c for c in CASES if c.name in MERGED_CASES], ids=named)
def test_batches_that_were_merged_while_they_waited_give_the_same_rows(
    case: Case, spark: SparkSession, partitions: int
) -> None:
    rows = answer(case.program(case.files, partitions), case.files, AWAY, spark)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.spark
@pytest.mark.parametrize("case", cases(CASES[::2], long=CASES[1::2]), ids=named)
def test_steps_that_count_as_large_give_the_same_rows(
    case: Case, spark: SparkSession, partitions: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Merges in tasks, a union of epochs, releases in pieces: what a backlog of millions meets."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 40)
    rows = answer(case.program(case.files, partitions), case.files, BACKLOG, spark)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


PARTITIONED_CASES = ("flow_pairs", "merged_selection", "matched_syn_ratio")
"""A chain that keeps rows for the next step, one below a merge, and an outer join."""


@pytest.mark.spark
@pytest.mark.parametrize(
    "divided",
    cases(
        [(case, 3) for case in CASES if case.name in PARTITIONED_CASES],
        long=[(case, count) for case in CASES for count in (1, 3, 64)],
    ),
    ids=lambda divided: f"{divided[0].name}-{divided[1]}",
)
def test_epochs_that_tasks_share_by_partitions_give_the_same_rows(
    divided: tuple[Case, int], spark: SparkSession
) -> None:
    case, count = divided
    program = case.program(case.files, count)
    with divided_steps():
        rows = answer(program, case.files, BACKLOG, spark)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


# Partials of every aggregate, and what is not tried with large steps.
DEALT = [c for c in CASES if c.name == "all_aggregates" or c in CASES[1::2]]


@pytest.mark.spark
@pytest.mark.parametrize(
    "case",
    cases(
        [case for case in DEALT if case.is_dealt],
        long=[case for case in CASES if case.is_dealt and case not in DEALT],
    ),
    ids=named,
)
def test_packets_dealt_over_three_interfaces_give_the_same_rows(
    case: Case, spark: SparkSession, partitions: int, tmp_path: Path
) -> None:
    files = deal(case.files, ("one", "two", "three"), tmp_path)
    rows = answer(case.program(files, partitions), files, COMPILED, spark)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
