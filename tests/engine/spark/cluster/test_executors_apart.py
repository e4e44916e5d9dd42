"""Golden cases on workers that do not see the run's folder give the rows of the reference."""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import Case, all_cases
from tests.golden.driver import BACKLOG, COMPILED, answer
from tests.support.divided_steps import divided_steps
from tests.support.gscope_command import wait_for
from tests.support.long_form import cases
from tests.support.requirements import needs, needs_root

from gscope.engine.spark import evaluation
from gscope.engine.spark.cluster.executors import executors_of
from gscope.engine.watermarks import release_size

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.support.spark_cluster import ClusterSession

pytestmark = [pytest.mark.spark, pytest.mark.slow, needs_root, needs("unshare", "openssl")]

CASES = {case.name: case for case in all_cases()}

SHORT = ("full_flow", "max_dups", "merged_selection", "jitter", "snort_windows")
"""A join, an aggregate of aggregates, a merge, a fold, and a sliding window."""

CHOSEN = cases(
    [CASES[name] for name in SHORT],
    long=[case for name, case in CASES.items() if name not in SHORT],
)


def named(case: Case) -> str:
    return case.name


@pytest.mark.long
@pytest.mark.parametrize("case", CASES.values(), ids=named)
def test_executors_give_the_expected_rows(case: Case, apart: ClusterSession) -> None:
    rows = answer(case.program(case.files), case.files, COMPILED, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.parametrize("case", CHOSEN, ids=named)
def test_large_steps_and_crashes_give_the_expected_rows(
    case: Case, apart: ClusterSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Everything that a small step leaves to the driver runs on executors."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    rows = answer(case.program(case.files), case.files, BACKLOG, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


@pytest.mark.parametrize(
    "case",
    cases([CASES["flow_pairs"]], long=[c for n, c in CASES.items() if n != "flow_pairs"]),
    ids=named,
)
def test_operators_in_partitions_give_the_expected_rows(case: Case, apart: ClusterSession) -> None:
    """Their tasks read row groups of segments."""
    program = case.program(case.files, 3)
    with divided_steps():
        rows = answer(program, case.files, COMPILED, apart.session)
    assert {query: sorted(found) for query, found in rows.items()} == case.expected()


class Killer(threading.Thread):
    """Kills with SIGKILL while tasks run, ``times`` times, each after the last loss was made up for."""

    def __init__(self, apart: ClusterSession, kill: Callable[[], None], times: int) -> None:
        super().__init__(daemon=True)
        self._apart = apart
        self._kill = kill
        self._left = times
        self.killed = 0
        self._over = threading.Event()

    def run(self) -> None:
        tracker = self._apart.session.sparkContext.statusTracker()
        while self._left and not self._over.wait(0.005):
            stages = map(tracker.getStageInfo, tracker.getActiveStageIds())
            if any(stage is not None and stage.numActiveTasks for stage in stages):
                self._kill()
                self._left -= 1
                self.killed += 1
                self._await(2)

    def _await(self, executors: int) -> None:
        wait_for(
            lambda: self._over.is_set() or len(executors_of(self._apart.session)) >= executors,
            "a new executor",
        )

    def stop(self) -> None:
        self._over.set()
        self.join()


def kill_executor(apart: ClusterSession) -> None:
    """Kill one executor; its worker starts another."""
    (pid, *_) = [pid for worker in apart.cluster.workers for pid in worker.executors()]
    os.kill(pid, signal.SIGKILL)


def kill_worker(apart: ClusterSession) -> None:
    """Kill a worker: its executors end by themselves, and another worker comes."""
    apart.cluster.workers.pop(0).kill()
    apart.cluster.add_worker(hidden=apart.hidden)


@pytest.mark.parametrize("kill", [kill_executor, kill_worker])
@pytest.mark.parametrize("name", ["full_flow"])
def test_nothing_is_lost_or_answered_twice_when_executors_are_killed(
    name: str,
    kill: Callable[[ClusterSession], None],
    apart: ClusterSession,
    monkeypatch: pytest.MonkeyPatch,
    executor_kills: int,
) -> None:
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    case = CASES[name]
    killed = 0
    while killed < executor_kills:
        killer = Killer(apart, lambda: kill(apart), executor_kills - killed)
        killer.start()
        try:
            rows = answer(case.program(case.files), case.files, BACKLOG, apart.session)
        finally:
            killer.stop()
        assert {query: sorted(found) for query, found in rows.items()} == case.expected()
        assert killer.killed
        killed += killer.killed
