"""Steps over many epochs that only Spark SQL can answer: bounded plans, several tasks."""

from __future__ import annotations

import math
import statistics
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.gscope_command import wait_for

from gscope.engine.spark import evaluation, task_planner
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.spark.tasks.task import run_tasks
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.engine.storage.outputs import read_output
from gscope.engine.storage.parquet_files import files_in
from gscope.errors import EngineError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.spark.tasks.task import TaskResult
    from gscope.engine.steps.steps import Evaluation, Step
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

pytestmark = pytest.mark.spark

QUERY = (
    "Query q: SELECT time, median(len) AS m FROM eth.IP GROUP BY time"
    " HAVING if_else(median(len) > 0, 'a', 'b') = 'a'"
)
"""Choices between texts are not for tasks: Spark SQL makes them."""


def length(epoch: int, number: int) -> int:
    return 40 + (epoch * 31 + number * 17) % 1400


def log_of_epochs(
    folder: Path, epochs: int, rows: int, query: str = QUERY
) -> tuple[Program, list[Message]]:
    """A log with a batch of ``rows`` tuples for each second."""
    program = compile_queries([QueryText(query, "q.gsql")], CompileContext(("eth",))).program
    (lfta,) = program.lftas
    (stream,) = lfta.streams
    (count,) = (n for n in lfta.stream_schema.names if n not in ("time", "len"))
    folder.mkdir()
    messages: list[Message] = []
    for epoch in range(epochs):
        columns = {
            "time": pa.array([epoch] * rows),
            "len": pa.array([length(epoch, number) for number in range(rows)]),
            count: pa.array([1] * rows),
        }
        table = pa.table({name: columns[name] for name in lfta.stream_schema.names})
        path = f"{epoch:06d}.parquet"
        pq.write_table(table, folder / path, compression="none", write_statistics=False)
        extents = (Extent("time", epoch, epoch),)
        messages.append(Batch(stream, epoch, path, rows, 1, extents))
    messages.append(EndOfStream(stream, epochs))
    return program, messages


class Life:
    """A job from its start to its end, as a process would live it.

    What it knows is in ``folder``.
    """

    def __init__(
        self, spark: SparkSession, program: Program, messages: list[Message], folder: Path
    ) -> None:
        self.commits = CommitLog(folder / "job")
        self.steps = Steps(program)
        self._evaluator = Evaluator(ReadySpark(spark), program, folder / "log", self.commits)
        done = self.commits.recover()
        if done:
            self.steps.restore(done[-1].step, done[-1].operators)
        (needed,) = self.steps.needed().values()
        self.steps.on_messages(message for message in messages if message.sequence >= needed)

    def evaluate(self) -> tuple[Step, Evaluation]:
        """Evaluate everything that has come, as one step."""
        step = self.steps.next()
        assert step is not None
        return step, self._evaluator.run(step)

    def commit(self, step: Step, evaluation: Evaluation) -> None:
        self.steps.on_evaluated(evaluation)
        self.commits.write(Commit(step.number, self.steps.snapshot(), evaluation.outputs))
        self.commits.publish(evaluation.outputs)


@pytest.mark.slow
def test_a_job_that_comes_back_after_an_hour_of_epochs_answers_them_all(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It had answered two minutes, and dies in the middle of the hour's step.

    It comes back once more.
    """
    epochs, rows, before = 3720, 60, 120
    program, messages = log_of_epochs(tmp_path / "log", epochs, rows)
    assert (epochs - before) * rows > evaluation.SMALL_STEP_ROWS
    beat = Heartbeat(messages[0].stream, before, 0, 0, (Punctuation("time", before),))
    first = Life(spark, program, [*messages[:before], beat], tmp_path)
    first.commit(*first.evaluate())
    messages = [*messages[:before], beat, *(after(message) for message in messages[before:])]
    killed = Life(spark, program, messages, tmp_path)
    with monkeypatch.context() as dying:
        dying.setattr("gscope.engine.spark.staging.outputs.write_frame", write_and_die)
        with pytest.raises(KilledError):
            killed.evaluate()
    left = tmp_path / "job" / "outputs" / "q"
    assert list(left.glob(".staged-*/*"))
    back = Life(spark, program, messages, tmp_path)
    assert not list(left.glob(".staged-*"))
    step, done = back.evaluate()
    assert (step.number, step.works[0].low, step.works[0].high) == (2, before, math.inf)
    back.commit(step, done)
    assert back.steps.is_finished
    answers: list[tuple[int, float]] = []
    for commit in back.commits.recover():
        for output in commit.outputs:
            path = back.commits.outputs / output.path
            for table in read_output(path, ["time"], output.files):
                answers += zip(table["time"].to_pylist(), table["m"].to_pylist(), strict=True)
    assert answers == [
        (epoch, statistics.median(length(epoch, number) for number in range(rows)))
        for epoch in range(epochs)
    ]


class KilledError(Exception):
    """The job ended here."""


def write_and_die(_frame: Any, folder: Path, *_: Any) -> list[WrittenFile]:
    folder.mkdir()
    (folder / "part-00000-half.parquet").write_bytes(b"PAR1")
    raise KilledError


def after(message: Message) -> Message:
    """The message behind one that was put in before it."""
    return replace(message, sequence=message.sequence + 1)


@pytest.mark.parametrize(("epochs", "branches"), [(20, 20), (100, 17)])
def test_epochs_side_by_side_are_a_bounded_number_of_tasks(
    epochs: int, branches: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 10)
    program, messages = log_of_epochs(tmp_path / "log", epochs, 10)
    evaluator = Evaluator(ReadySpark(spark), program, tmp_path / "log", CommitLog(tmp_path / "job"))
    steps = Steps(program)
    steps.on_messages(messages)
    step = steps.next()
    assert step is not None
    tracker = spark.sparkContext.statusTracker()
    before = set(tracker.getJobIdsForGroup())
    evaluator.run(step)
    jobs = wait_for(lambda: set(tracker.getJobIdsForGroup()) - before, "a job of the step")
    infos = [tracker.getJobInfo(job) for job in jobs]
    stages = [tracker.getStageInfo(number) for info in infos if info for number in info.stageIds]
    assert max(stage.numTasks for stage in stages if stage) == branches


def unlink_one(folder: Path) -> None:
    """Delete a file of the step, as if an executor had written it to a disk of its own."""
    next(iter(sorted(folder.rglob("part-*.parquet")))).unlink()


@pytest.mark.parametrize("query", [QUERY, QUERY.replace("median(len)", "count(*)")])
def test_a_step_is_refused_when_the_driver_does_not_see_all_files(
    query: str, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spark writes the files of the first query, tasks those of the second."""
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 10)
    monkeypatch.setattr(task_planner, "TASK_ROWS", 10)

    def run_and_lose(*arguments: Any) -> list[TaskResult]:
        results = run_tasks(*arguments)
        unlink_one(tmp_path / "job")
        return results

    def lose_and_list(folder: Path, *arguments: Any) -> list[WrittenFile]:
        unlink_one(folder)
        return files_in(folder, *arguments)

    monkeypatch.setattr("gscope.engine.spark.task_planner.run_tasks", run_and_lose)
    monkeypatch.setattr("gscope.engine.spark.staging.frame_files.files_in", lose_and_list)
    program, messages = log_of_epochs(tmp_path / "log", 4, 10, query)
    evaluator = Evaluator(ReadySpark(spark), program, tmp_path / "log", CommitLog(tmp_path / "job"))
    steps = Steps(program)
    steps.on_messages(messages)
    step = steps.next()
    assert step is not None
    with pytest.raises(EngineError, match="executors must share the folder of the job"):
        evaluator.run(step)
