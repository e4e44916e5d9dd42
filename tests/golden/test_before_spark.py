"""Golden cases, answered while Spark is not ready.

By tasks in this process where that is possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import Case, all_cases
from tests.golden.driver import BACKLOG, COMPILED, Variation, answer
from tests.support.divided_steps import divided_steps
from tests.support.long_form import cases

from gscope.engine.spark import evaluation, task_planner
from gscope.engine.spark.small_steps import needs_sql
from gscope.engine.spark.tasks import fold_task
from gscope.queries.plan.program import RunningNode
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CASES = all_cases()
STEPS = Variation("steps", heartbeat_every_tick=True, batch_rows=50, chunks=6, crashes=2)


@dataclass
class UnreadySpark:
    """A Spark that is asked for its session when a step needs it, and that no task finds ready."""

    opened: SparkSession
    asked: int = 0
    cores: int = 2
    is_ready = False

    @property
    def session(self) -> SparkSession:
        self.asked += 1
        return self.opened


def named(value: Case | Variation) -> str:
    return value.name


def keeps_rows(case: Case) -> bool:
    nodes = case.program(case.files, 1).nodes
    return any(isinstance(node, RunningNode | SampleNode) for node in nodes)


@pytest.mark.spark
@pytest.mark.parametrize("case", CASES, ids=named)
def test_one_step_gives_the_same_rows_without_spark_where_no_sql_is_needed(
    case: Case, spark: SparkSession, partitions: int
) -> None:
    program = case.program(case.files, partitions)
    unready = UnreadySpark(spark)
    rows = answer(program, case.files, COMPILED, unready)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
    assert not program.needs_spark or (unready.asked > 0) == needs_sql(program)


@pytest.mark.spark
@pytest.mark.parametrize("variation", [STEPS, BACKLOG], ids=named)
@pytest.mark.parametrize("case", cases(CASES[1::2], long=CASES[::2]), ids=named)
def test_many_steps_and_crashes_give_the_same_rows(
    case: Case, variation: Variation, spark: SparkSession, partitions: int
) -> None:
    """Batches of a backlog also hold rows that a step may not read yet."""
    rows = answer(case.program(case.files, partitions), case.files, variation, UnreadySpark(spark))
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.spark
@pytest.mark.parametrize("most_state_rows", [0, fold_task.MAX_STATE_ROWS])
@pytest.mark.parametrize("case", [case for case in CASES if keeps_rows(case)], ids=named)
def test_states_of_large_steps_are_folded_here_too(
    case: Case,
    most_state_rows: int,
    spark: SparkSession,
    partitions: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In parts, each of which reads all segments, or, while states are small, in one."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", -1)
    monkeypatch.setattr(fold_task, "MAX_STATE_ROWS", most_state_rows)
    unready = UnreadySpark(spark)
    program = case.program(case.files, partitions)
    rows = answer(program, case.files, STEPS, unready)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
    assert needs_sql(program) or unready.asked == 0


@pytest.mark.spark
def test_tasks_with_more_rows_than_the_job_may_hold_wait_for_spark(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    (case,) = (each for each in CASES if each.name == "flow")
    unready = UnreadySpark(spark)
    monkeypatch.setattr(task_planner, "MOST_ROWS", 0)
    rows = answer(case.program(case.files, 1), case.files, COMPILED, unready)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()
    assert unready.asked


def test_there_are_cases_that_keep_rows() -> None:
    assert {"dup_seq", "talkers"} <= {case.name for case in CASES if keeps_rows(case)}


@pytest.mark.spark
@pytest.mark.parametrize(
    "case", [case for case in CASES if case.name in ("flow", "flow_pairs", "heaviest")], ids=named
)
def test_epochs_that_threads_share_by_partitions_give_the_same_rows(
    case: Case, spark: SparkSession
) -> None:
    with divided_steps():
        rows = answer(case.program(case.files, 3), case.files, BACKLOG, UnreadySpark(spark))
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


def test_many_cases_need_no_sql() -> None:
    plain = [case.name for case in CASES if not needs_sql(case.program(case.files, 64))]
    assert {"flow", "flow_pairs", "full_flow", "jitter", "per_source", "heaviest"} <= set(plain)
