"""Folds of running aggregations that run beside the tasks of a step, each in a thread."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from gscope.engine.spark.task_planner import StageResult
from gscope.queries.plan.program import RunningNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.task_planner import StageRun
    from gscope.engine.spark.tasks.state_runner import FoldResult

Staged = tuple[str | None, "Path"]
"""The path of the answers as a staged output, None if they are not delivered, and their folder."""


class StepFolds:
    """The folds of one step; see ``task_planner.Beside``.

    Args:
        works: the works of all operators, of which it takes those of running aggregations.
        place: returns where the answers of a query are written.
        fold: folds a work, reading the results of others, into a folder; for any thread.
        most: the most folds at a time.

    Attributes:
        results: what each fold has left, by its query.
    """

    def __init__(
        self,
        works: Iterable[Work],
        place: Callable[[str], Staged],
        fold: Callable[[Work, StageRun, Path], FoldResult],
        most: int,
    ) -> None:
        self._waiting = [work for work in works if _is_fold(work)]
        self._place = place
        self._fold = fold
        self._pool = ThreadPoolExecutor(most)
        self._started: list[tuple[str, Staged, Future[FoldResult]]] = []
        self.results: dict[str, FoldResult] = {}

    def start(self, run: StageRun) -> bool:
        """Start the folds whose inputs are in ``run``; return whether there are any."""
        ready = [
            work for work in self._waiting if all(each in run.results for each in work.upstream)
        ]
        self._waiting = [work for work in self._waiting if work not in ready]
        for work in sorted(ready, key=lambda work: -work.rows):
            query = work.node.query
            place = self._place(query)
            future = self._pool.submit(self._fold, work, run, place[1])
            self._started.append((query, place, future))
        return bool(ready)

    def finish(self, run: StageRun) -> None:
        """Wait for the folds that were started, and add their results to ``run``."""
        started, self._started = self._started, []
        for query, (path, folder), future in started:
            folded = self.results[query] = future.result()
            run.results[query] = StageResult(folder, path if folded.rows else None, folded.files)
            run.cpu_ns[query] += folded.cpu_ns
            if folded.is_sql:
                run.in_sql.add(query)

    def close(self) -> None:
        """Wait for threads, if a task has failed, and end them."""
        self._pool.shutdown()


def _is_fold(work: Work) -> bool:
    """Return whether ``work`` is a fold that reads what the step has, without leaving rows out."""
    is_whole = all(taken.trim is None for taken in work.inputs)
    return work.reads_rows and is_whole and isinstance(work.node, RunningNode)
