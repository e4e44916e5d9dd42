"""The operators that keep rows of their own: running aggregations, windows, and samples."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.steps.node_counts import NodeRun
from gscope.engine.storage.commits import Output
from gscope.engine.storage.counts import Counts
from gscope.queries.plan.program import RunningNode
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.spark import Spark
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.staging.outputs import Outputs
    from gscope.engine.spark.tasks.fold_task import FoldRunner
    from gscope.engine.spark.tasks.here import TasksHere
    from gscope.engine.spark.tasks.sample_task import SampleRunner
    from gscope.engine.spark.tasks.state_runner import FoldResult, StateRunner
    from gscope.engine.spark.tasks.window_task import WindowRunner
    from gscope.engine.storage.commits import CommitLog
    from gscope.queries.plan.program import HftaNode, Program


def has_own_rows(node: HftaNode) -> bool:
    """Return whether an operator keeps rows of its own from step to step."""
    return isinstance(node, RunningNode | SampleNode) or (
        isinstance(node, WindowNode) and node.slices is not None
    )


class _Texts(threading.local):
    """The number of texts of Spark SQL that a thread has evaluated so far."""

    number = 0


class OwnRows:
    """The evaluation of the operators of one program that keep rows.

    Args:
        spark: runs their tasks.
        here: runs them while Spark is not ready.
        program: the program.
        sql: returns the rows of a text of Spark SQL.
        inputs: the rows that operators read.
        outputs: where answers are staged.
        commits: the commits, which determine where states are kept.
    """

    def __init__(
        self,
        spark: Spark,
        here: TasksHere,
        program: Program,
        sql: Callable[[str], DataFrame],
        inputs: InputViews,
        outputs: Outputs,
        commits: CommitLog,
    ) -> None:
        self._spark_sql = sql
        self._outputs = outputs
        self._here = _Texts()
        common = (spark, here, self._sql, inputs, commits.carry)
        self._folds: FoldRunner | None = None
        self._windows: WindowRunner | None = None
        self._samples: SampleRunner | None = None
        # Few programs have such operators, and a small replay has no time for forty modules.
        kinds = {type(node) for node in program.nodes if has_own_rows(node)}
        if RunningNode in kinds:
            from gscope.engine.spark.tasks.fold_task import FoldRunner

            self._folds = FoldRunner(*common, program.user_files)
        if WindowNode in kinds:
            from gscope.engine.spark.tasks.window_task import WindowRunner

            self._windows = WindowRunner(*common)
        if SampleNode in kinds:
            from gscope.engine.spark.tasks.sample_task import SampleRunner

            self._samples = SampleRunner(*common, program.user_files)

    @property
    def counts(self) -> Counts:
        """The counts of all steps so far besides rows."""
        return sum((runner.counts for runner in self._runners), Counts())

    @property
    def _runners(self) -> list[StateRunner]:
        runners = (self._folds, self._windows, self._samples)
        return [runner for runner in runners if runner is not None]

    def run(
        self, work: Work, step: int, result: str | None, *, is_small: bool
    ) -> tuple[FoldResult, NodeRun]:
        """Fold a running aggregation, assemble windows or sample; return also what that took.

        Args:
            work: the work of the operator.
            step: the number of the step.
            result: the result whose answers to stage; None for an operator that no result names,
                or that other operators read in the same step.
            is_small: whether Spark reads with one task.
        """
        folded = self._measured(lambda: self._staged(work, step, result, is_small=is_small))
        is_left = self._leaves_rest_to_spark(work.node)
        tuples = None if is_left else folded.rows
        return folded, NodeRun(work.node.query, tuples, folded.cpu_ns, is_left or folded.is_sql)

    def fold(self, work: Work, step: int, answers: Path, *, is_small: bool) -> FoldResult:
        """Fold a running aggregation, which writes its answers to a folder; for any thread."""
        folds = self._folds
        assert folds is not None
        return self._measured(lambda: folds.run(work, step, answers, is_small=is_small))

    def _staged(self, work: Work, step: int, result: str | None, *, is_small: bool) -> FoldResult:
        runner: FoldRunner | WindowRunner | SampleRunner | None = self._folds
        if isinstance(work.node, WindowNode):
            runner = self._windows
        elif isinstance(work.node, SampleNode):
            runner = self._samples
        assert runner is not None
        run = runner.run
        if result is None or self._leaves_rest_to_spark(work.node):
            return run(work, step, is_small=is_small)
        path, staged = self._outputs.stage(result, step, ".parquet")
        folded = run(work, step, staged, is_small=is_small)
        if not folded.rows:
            return folded
        return replace(folded, output=Output.of_files(result, path, folded.files))

    def _measured(self, work: Callable[[], FoldResult]) -> FoldResult:
        """Return a result with the CPU time of this thread, and of the tasks that it runs."""
        texts, cpu_ns = self._here.number, self._cpu_ns()
        folded = work()
        return replace(folded, cpu_ns=self._cpu_ns() - cpu_ns, is_sql=self._here.number > texts)

    def _leaves_rest_to_spark(self, node: HftaNode) -> bool:
        windows = self._windows
        return isinstance(node, WindowNode) and windows is not None and not windows.finishes(node)

    def _sql(self, text: str) -> DataFrame:
        self._here.number += 1
        return self._spark_sql(text)

    def _cpu_ns(self) -> int:
        """Return the CPU time so far of this thread and of the tasks that it has run, in ns."""
        return time.thread_time_ns() + sum(runner.task_cpu_ns for runner in self._runners)
