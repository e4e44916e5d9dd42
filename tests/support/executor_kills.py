"""Answers of golden cases while executors are killed in the middle of steps."""

from __future__ import annotations

import threading
from functools import partial
from typing import TYPE_CHECKING

from tests.golden.driver import BACKLOG, answer
from tests.support.gscope_command import wait_for

from gscope.engine.spark import evaluation
from gscope.engine.spark.cluster.executors import executors_of
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.watermarks import release_size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import pytest
    from pyspark.sql import SparkSession
    from tests.golden.cases import Case
    from tests.golden.driver import Row

    from gscope.engine.steps.steps import Evaluation, Step


class Killer(threading.Thread):
    """Kills in the middle of steps, ``times`` times, each after the last loss was made up for."""

    def __init__(self, session: SparkSession, kill: Callable[[], object], times: int) -> None:
        super().__init__(daemon=True)
        self._session = session
        self._kill = kill
        self._left = times
        self._over = threading.Event()
        self.in_step = threading.Event()
        self.killed = 0

    def run(self) -> None:
        while self._left and not self._over.is_set():
            if self.in_step.wait(0.1) and self._has_tasks():
                known = set(executors_of(self._session))
                self._kill()
                self._left -= 1
                self.killed += 1
                wait_for(partial(self._is_made_up_for, known), "a new executor")

    def _has_tasks(self) -> bool:
        """Whether the step has sent tasks to executors, and is not over yet."""
        tracker = self._session.sparkContext.statusTracker()
        while self.in_step.is_set():
            if tracker.getActiveStageIds():
                return self.in_step.is_set()
        return False

    def _is_made_up_for(self, known: set[str]) -> bool:
        found = set(executors_of(self._session))
        return self._over.is_set() or (len(found) > 1 and not found <= known)

    def stop(self) -> None:
        self._over.set()
        self.join()


def answers_under_kills(
    case: Case,
    session: SparkSession,
    kill: Callable[[], object],
    times: int,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[dict[str, list[Row]]]:
    """Yield the answers of ``case`` as often as it takes to kill ``times`` times.

    Steps are large for their executors: what a small step leaves to the driver runs on them too.
    """
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 200)
    killed = 0
    evaluate = Evaluator.run
    while killed < times:
        killer = Killer(session, kill, times - killed)

        def watched(self: Evaluator, step: Step, killer: Killer = killer) -> Evaluation:
            killer.in_step.set()
            try:
                return evaluate(self, step)
            finally:
                killer.in_step.clear()

        monkeypatch.setattr(Evaluator, "run", watched)
        killer.start()
        try:
            rows = answer(case.program(case.files), case.files, BACKLOG, session)
        except Exception as error:
            # Java, which knows the message, is gone when the failure is reported.
            error.add_note(str(error))
            raise
        finally:
            killer.stop()
        yield rows
        assert killer.killed
        killed += killer.killed
