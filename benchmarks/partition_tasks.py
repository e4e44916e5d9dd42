"""CPU of the tasks that share one epoch, each alone: what one core and two would take.

    python -m benchmarks.partition_tasks [--tuples 4000000] [--epochs 3] [--data FOLDER]

The queries, segments and ways are those of ``benchmarks.partitions``; tasks run one after another
in one process, without Spark, so that other work on the machine hardly changes what they take. The
sum is what one core does, the greatest what two cores wait for; where tasks read the rows of
others, the greatest of each round is added up. The first epoch is not counted.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest import mock

import pyarrow as pa

from benchmarks.partitions import PARTITIONS, QUERIES, epoch_messages, text_of
from gscope.engine.spark import task_planner
from gscope.engine.spark.sql.inputs import InputViews
from gscope.engine.spark.staging.outputs import Outputs
from gscope.engine.spark.task_planner import TaskStage
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.engine.storage.commits import CommitLog
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import QueryInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.engine.steps.steps import Step

CORES = 2


@dataclass(slots=True)
class TaskCosts:
    """The CPU of the tasks of one epoch, in seconds, by rounds that follow each other."""

    rounds: list[list[float]] = field(default_factory=list)
    left_to_sql: set[str] = field(default_factory=set)

    @property
    def total(self) -> float:
        """The CPU of all tasks."""
        return sum(map(sum, self.rounds))

    @property
    def longest(self) -> float:
        """The CPU that two cores wait for, if tasks start in their order."""
        return sum(map(_with_two_cores, self.rounds))

    def run(self, _session: object, tasks: Sequence[Any]) -> list[Any]:
        """Run tasks here instead of Spark."""
        took, results = [], []
        for task in tasks:
            began = time.process_time()
            results.append(task.run("alone"))
            took.append(time.process_time() - began)
        self.rounds.append(took)
        return results


def _with_two_cores(took: Sequence[float]) -> float:
    busy = [0.0] * CORES
    for each in took:
        busy[busy.index(min(busy))] += each
    return max(busy)


def measure(name: str, how: str, tuples: int, epochs: int, data: Path) -> list[TaskCosts]:
    """Return the costs of each epoch but the first."""
    context = CompileContext(("one", "two"), partitions=1 if how == "whole" else PARTITIONS)
    program = compile_queries([QueryText(text_of(name), name)], context).program
    folder = Path(tempfile.mkdtemp(prefix="gscope-tasks-"))
    commits, steps = CommitLog(folder), Steps(program)
    sources = [(q, s.query) for q, s in program.results if isinstance(s, QueryInput)]
    spark: Any = SimpleNamespace(cores=CORES, is_ready=True, session=None)
    inputs = InputViews(spark, program, data, commits.carry)
    outputs = Outputs(program, commits)
    stage = TaskStage(spark, program, inputs, outputs, dict(sources), TasksHere())
    found = []
    for epoch in range(epochs + 1):
        costs = TaskCosts()
        steps.on_messages(epoch_messages(program, f"{name}-{how}", tuples, epoch, data))
        with (
            mock.patch.object(task_planner, "run_tasks", costs.run),
        ):
            while (step := steps.next()) is not None:
                run = stage.run(step, _uses(step, [query for _, query in sources]))
                costs.left_to_sql |= {
                    work.node.query
                    for work in step.works
                    if work.reads_rows and work.node.query not in run.results
                }
                carries = tuple(each for kept in run.carries.values() for each in kept)
                steps.on_evaluated(Evaluation(carries=carries))
                commits.drop_carry(steps.carried())
        found.append(costs)
    shutil.rmtree(folder)
    return found[1:]


def _uses(step: Step, delivered: Sequence[str]) -> Counter[str]:
    uses = Counter(delivered)
    for work in step.works:
        for taken in work.inputs:
            uses.update([*taken.upstream, *taken.carries])
    return uses


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--tuples", type=int, default=4_000_000)
    parser.add_argument("--epochs", type=int, default=3, help="epochs that are measured")
    parser.add_argument("--data", type=Path, help="folder that keeps segments for further runs")
    arguments = parser.parse_args()
    data = arguments.data or Path(tempfile.mkdtemp(prefix="gscope-segments-"))
    pa.set_cpu_count(1)
    print("| query | rows | tasks | CPU s, all | CPU s, of two cores | left to SQL |")
    print("| --- | --- | ---: | ---: | ---: | --- |")
    for name in (*QUERIES, "flow_pairs"):
        for how in ("whole", "labelled"):
            costs = measure(name, how, arguments.tuples, arguments.epochs, data)
            tasks = sum(map(len, costs[0].rounds))
            total = statistics.median(each.total for each in costs)
            longest = statistics.median(each.longest for each in costs)
            left = ", ".join(sorted(costs[0].left_to_sql)) or "—"
            line = f"| {name} | {how} | {tasks} | {total:.2f} | {longest:.2f} | {left} |"
            print(line, flush=True)
    if arguments.data is None:
        shutil.rmtree(data)


if __name__ == "__main__":
    _main()
