"""CPU time of an interval join, against two joins of equal buckets that find the same pairs.

    python -m benchmarks.interval_join [--rows 200000] [--epochs 1 60]

Two streams have the same number of rows over ``SPAN_S`` seconds; a row has about one partner
within ``WIDTH_S`` seconds. Each epoch is one step: a batch and a heartbeat of both streams. The
interval join reads its second side again in each step. The other two joins pair rows of the same
bucket and of neighbouring buckets, and read each row at least twice.

The work of Spark's tasks is done in this process. So the CPU time is that of bookkeeping, reading,
joining and writing, without Spark's overhead for each job: both methods run the same number of
jobs.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, cast
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.segments import PLAIN
from gscope.engine.spark import task_planner
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.spark.sql.inputs import InputViews
from gscope.engine.spark.staging.outputs import Outputs
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.engine.storage.commits import CommitLog
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pyspark.sql import SparkSession

    from gscope.engine.spark.tasks.task import FileTask, TaskResult
    from gscope.queries.plan.program import Program

RUNS = 3
SPAN_S = 240
WIDTH_S = 5
_BUCKET = WIDTH_S + 1
_PAIR = "SELECT a.time, a.len, b.time, b.len FROM a.TCP a JOIN b.TCP b ON a.sequence_number ="
_PAIR += f" b.sequence_number AND b.time BETWEEN a.time AND a.time + {WIDTH_S}"
QUERIES = {
    "one interval join": f"Query pairs: {_PAIR}",
    "two joins of buckets": f"Query same: {_PAIR} AND a.time/{_BUCKET} = b.time/{_BUCKET};"
    f" Query following: {_PAIR} AND a.time/{_BUCKET} + 1 = b.time/{_BUCKET}",
}


def measure(text: str, rows: int, epoch_s: int, folder: Path) -> tuple[float, int, int]:
    """Return the CPU seconds of all steps, the rows that they read, and the pairs found."""
    program = compile_queries([QueryText(text, "q")], CompileContext(("a", "b"))).program
    (folder / "log").mkdir(parents=True)
    messages = list(_messages(program, rows, epoch_s, folder / "log"))
    commits = CommitLog(folder / "job")
    session: SparkSession = cast("SparkSession", None)
    inputs = InputViews(ReadySpark(session), program, folder / "log", commits.carry)
    queries = {query: query for query, _ in program.results}
    stage = task_planner.TaskStage(
        ReadySpark(session), program, inputs, Outputs(program, commits), queries, TasksHere()
    )
    steps = Steps(program)
    begun, read, pairs = time.process_time(), 0, 0
    for together in messages:
        steps.on_messages(together)
        while (step := steps.next()) is not None:
            made = stage.run(step, dict.fromkeys(queries, 1))
            assert len(made) == sum(work.reads_rows for work in step.works)
            read += sum(work.rows for work in step.works)
            pairs += sum(each.rows for each in made.values())
            steps.on_evaluated(Evaluation())
    spent = time.process_time() - begun
    assert steps.is_finished
    shutil.rmtree(folder)
    return spent, read, pairs


def run_here(_session: SparkSession, tasks: Sequence[FileTask]) -> list[TaskResult]:
    """Run tasks one after another in this process."""
    return [task.run("here") for task in tasks]


def _messages(program: Program, rows: int, epoch_s: int, log: Path) -> Iterator[list[Message]]:
    """Write the segments of each epoch, and yield its messages."""
    streams = [(lfta, stream) for lfta in program.lftas for stream in lfta.streams]
    per_s = rows // SPAN_S
    for number, begin in enumerate(range(0, SPAN_S, epoch_s)):
        end = min(begin + epoch_s, SPAN_S)
        together: list[Message] = []
        for lfta, stream in streams:
            random = np.random.default_rng([begin, int(stream.endswith("@b"))])
            times = np.repeat(np.arange(begin, end), per_s)
            values = {
                "time": times,
                "sequence_number": random.integers(0, _BUCKET * per_s, times.size),
                "len": random.integers(40, 1500, times.size),
            }
            names = lfta.stream_schema.names
            path = f"{stream}-{begin}.parquet"
            pq.write_table(pa.table({name: values[name] for name in names}), log / path, **PLAIN)
            size = (log / path).stat().st_size
            extents = (Extent("time", begin, end - 1),)
            together.append(Batch(stream, 2 * number, path, times.size, size, extents))
            bounds = (Punctuation("time", end),)
            together.append(Heartbeat(stream, 2 * number + 1, number, 0, bounds))
        yield together
    yield [EndOfStream(stream, 2 * number + 2) for _, stream in streams]


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", type=int, default=200_000, help="rows of each side")
    parser.add_argument(
        "--epochs", type=int, nargs="+", default=[1, 60], help="seconds of each epoch"
    )
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="gscope-interval-"))
    print("| way | epoch s | rows read | pairs | CPU s of all steps |")
    print("| --- | ---: | ---: | ---: | ---: |")
    with patch.object(task_planner, "run_tasks", run_here):
        for epoch_s in arguments.epochs:
            for way, text in QUERIES.items():
                runs = [
                    measure(text, arguments.rows, epoch_s, folder / f"run{number}")
                    for number in range(RUNS)
                ]
                spent = statistics.median(run[0] for run in runs)
                _, read, pairs = runs[0]
                line = f"| {way} | {epoch_s} | {read:,} | {pairs:,} | {spent:.2f} |"
                print(line, flush=True)
    shutil.rmtree(folder)


if __name__ == "__main__":
    _main()
