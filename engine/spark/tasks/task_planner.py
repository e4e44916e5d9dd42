"""The stage of a step that tasks do without SQL: its operators, their order, their results.

Operators that read segments of the log are one Spark job, with the longest tasks first, so that
none runs alone at the end. Operators that read only the rows of these are the next job, and so on.
All others are left to Spark SQL, which reads the files that tasks have written.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gscope.engine.spark.sql.interval_join import home_of
from gscope.engine.spark.tasks.aggregate_task import MergeTask, plain_merge
from gscope.engine.spark.tasks.columns import is_computable
from gscope.engine.spark.tasks.join_task import JoinTask, is_plain_join
from gscope.engine.spark.tasks.select_task import SelectTask, is_plain_selection
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS, TASK_ROWS, FileTask, run_tasks
from gscope.engine.spark.tasks.top_task import TopTask
from gscope.engine.storage.commits import Output
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import accept
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release_size import group_by_epochs, pack_groups, weight
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    SelectionNode,
    StreamInput,
    TopNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.staging.outputs import Outputs
    from gscope.engine.spark.tasks.task import Task, TaskResult
    from gscope.engine.steps.steps import Step
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import HftaNode, Program
    from gscope.queries.streams.messages import Batch


@dataclass(frozen=True, slots=True)
class StageResult:
    """The rows of one query that tasks have written.

    Attributes:
        folder: the folder of the Parquet files.
        path: the path of the folder as a staged output; None if the query is not delivered.
        parts: the files as tasks reported them, in the order of their epochs.
    """

    folder: Path
    path: str | None
    parts: tuple[WrittenFile, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(part.rows for part in self.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files, in the order of their epochs."""
        return tuple(str(self.folder / part.name) for part in self.parts)

    def output(self, result: str) -> Output | None:
        """Return the files as the output of ``result``; None if they are not delivered."""
        if self.path is None:
            return None
        return Output.of_files(result, self.path, self.parts)


@dataclass(frozen=True, slots=True)
class _Part:
    """What one task reads.

    Attributes:
        rows: the most rows that it can read.
        files: the paths of the files of each side.
        within: for each side, the condition that released rows satisfy; None if all are released.
        homes: see ``JoinTask``.
    """

    rows: int
    files: tuple[tuple[str, ...], ...]
    within: tuple[Expression | None, ...]
    homes: tuple[Expression | None, Expression | None] = (None, None)


Plan = Callable[[_Part], "Task"]
"""Returns the task for a part."""


class TaskStage:
    """The stage of each step in which tasks evaluate operators.

    Args:
        session: the session that runs the tasks.
        program: the program of all operators.
        inputs: the rows that operators read.
        outputs: the places where rows are written.
        results: for each result, the query whose rows it consists of.

    Attributes:
        counts: the counts of all tasks so far.
    """

    def __init__(
        self,
        session: SparkSession,
        program: Program,
        inputs: InputViews,
        outputs: Outputs,
        results: Mapping[str, str],
    ) -> None:
        self._session = session
        self._program = program
        self._inputs = inputs
        self._outputs = outputs
        self._results = results
        self._plans = {node.query: self._plan(node) for node in program.nodes}
        self.counts = Counts()

    def run(self, step: Step, uses: Mapping[str, int]) -> dict[str, StageResult]:
        """Run the operators of ``step`` that tasks can do, and return their results by query.

        Args:
            step: the works of all operators, inputs first.
            uses: how often the rows of each query are read.
        """
        done: dict[str, StageResult] = {}
        waiting = [work for work in step.works if work.reads_rows]
        while True:
            ready = [work for work in waiting if all(each in done for each in work.upstream)]
            waiting = [work for work in waiting if work not in ready]
            tasks: list[tuple[int, str, FileTask]] = []
            for work in ready:
                query, plan = work.node.query, self._plan_of(work)
                parts = [] if plan is None else self._parts(work, done, uses)
                if plan is not None and parts:
                    done[query] = self._new_result(query, step.number)
                    temporal = tuple(column.name for column in work.node.schema.temporal)
                    for number, part in enumerate(parts):
                        task = FileTask(plan(part), done[query].folder, number, temporal)
                        tasks.append((part.rows, query, task))
            if not tasks:
                return done
            tasks.sort(key=lambda task: -task[0])
            reports = run_tasks(self._session, [task for *_, task in tasks])
            for query in dict.fromkeys(query for _, query, _ in tasks):
                reported = [r for (_, q, _), r in zip(tasks, reports, strict=True) if q == query]
                done[query] = self._accept(done[query], reported)

    def _accept(self, result: StageResult, reported: Sequence[TaskResult]) -> StageResult:
        """Return ``result`` with the files that tasks report, once the driver has found them too.

        Raises:
            EngineError: a file is missing here, or is not as reported.
        """
        parts = sorted((task.file for task in reported), key=lambda file: file.name)
        accept(result.folder, parts)
        for task in reported:
            self.counts += task.counts
        return replace(result, parts=tuple(parts))

    def _plan_of(self, work: Work) -> Plan | None:
        """Return how tasks evaluate a work; its node is another one where it has rates bound."""
        node = work.node
        if any(taken.trim is not None for taken in work.inputs):
            return None
        is_bound = node is not self._program.node(node.query)
        return self._plan(node) if is_bound else self._plans[node.query]

    def _plan(self, node: HftaNode) -> Plan | None:
        """Return how tasks evaluate ``node``; None if they cannot."""
        match node:
            case AggregationNode() if merge := plain_merge(node, self._schema(node)):
                return lambda part: MergeTask(merge, part.files[0], part.within[0])
            case JoinNode() if is_plain_join(node):
                return lambda part: JoinTask(
                    node,
                    (part.files[0], part.files[1]),
                    (part.within[0], part.within[1]),
                    part.homes,
                )
            case TopNode():
                return lambda part: TopTask(node, part.files[0], part.within[0])
            case SelectionNode() if is_plain_selection(node):
                return lambda part: SelectTask(node, part.files[0])
            case _:
                return None

    def _parts(
        self, work: Work, done: Mapping[str, StageResult], uses: Mapping[str, int]
    ) -> list[_Part]:
        """Return what the tasks of ``work`` read; nothing if ``work`` is left to SQL."""
        node = work.node
        if work.state is not None:
            return []
        delivered = [result for result, query in self._results.items() if query == node.query]
        is_read = uses.get(node.query, 0) > len(delivered)
        has_text = any(column.type is GsqlType.STRING for column in node.schema.columns)
        if len(delivered) > 1 or (is_read and has_text):
            return []
        parts = self._of_queries(work, done) if work.upstream else self._of_segments(work)
        return parts if all(part.rows <= MAX_TASK_ROWS for part in parts) else []

    def _of_queries(self, work: Work, done: Mapping[str, StageResult]) -> list[_Part]:
        if not self._inputs.reads_only(work):
            return []
        sides = [done[taken.upstream[0]] for taken in work.inputs]
        if _are_long([part for side in sides for part in side.parts]):
            return []
        files = tuple(each.files for each in sides)
        return [_Part(sum(each.rows for each in sides), files, (None,) * len(sides))]

    def _of_segments(self, work: Work) -> list[_Part]:
        within = tuple(released_condition(work, taken) for taken in work.inputs)
        homes = _homes(work)
        if not self._inputs.reads_segments(work) or UNKNOWN in (*within, *homes):
            return []
        parts: Iterable[tuple[list[Batch], ...]]
        match work.node:
            case SelectionNode():
                (taken,) = work.inputs
                parts = pack_groups((([batch],) for _, batch in taken.batches), TASK_ROWS)
            case AggregationNode() | TopNode():
                parts = pack_groups(group_by_epochs(work.inputs), TASK_ROWS)
            case _:
                parts = group_by_epochs(work.inputs)
        parts = list(parts)
        if any(_are_long([batch for side in part for batch in side]) for part in parts):
            return []
        return [
            _Part(
                sum(batch.rows for side in part for batch in side),
                tuple(tuple(self._inputs.paths(side)) for side in part),
                within,
                homes,
            )
            for part in parts
        ]

    def _schema(self, node: AggregationNode) -> Schema:
        if isinstance(node.input, StreamInput):
            return self._program.lfta(node.input.lfta).stream_schema
        return self._program.schema(node.input.query)

    def _new_result(self, query: str, step: int) -> StageResult:
        result = next((r for r, q in self._results.items() if q == query), None)
        folder, path = self._outputs.groups(query, step), None
        if result is not None:
            path, folder = self._outputs.stage(result, step, ".parquet")
        folder.mkdir()
        return StageResult(folder, path)


def _are_long(parts: Sequence[Batch | WrittenFile]) -> bool:
    """Return whether the rows are too long for one task, which holds all of its rows in memory."""
    total = sum(map(weight, parts))
    return total > max(TASK_ROWS, sum(part.rows for part in parts))


UNKNOWN = Literal(None, GsqlType.NULL)
"""Stands for a condition that tasks cannot test."""


def released_condition(work: Work, taken: ReleasedInput) -> Expression | None:
    """Return the condition that released rows of a side satisfy; None if all are released."""
    if not taken.straddles:
        return None
    epoch = taken.epoch
    if epoch is None or work.low != work.read_below or taken.late_below:
        return UNKNOWN
    return _between(epoch, work.low + taken.epoch_range.first, work.high + taken.epoch_range.last)


def _homes(work: Work) -> tuple[Expression | None, Expression | None]:
    """Return ``JoinTask.homes``; None for a side whose rows are all at home."""
    node = work.node
    if not isinstance(node, JoinNode) or node.interval is None or node.kind is not JoinKind.OUTER:
        return None, None
    if (work.low, work.high) == (NOTHING, ENDED):
        return None, None
    left, right = (
        _between(epoch, work.low + home_of(node, side), work.high + home_of(node, side))
        for side, epoch in enumerate(node.epochs)
    )
    return left, right


def _between(epoch: Expression, low: Bound, high: Bound) -> Expression:
    """Return ``low <= epoch < high``; ``UNKNOWN`` if tasks cannot test it."""
    if epoch.is_nullable or not is_computable(epoch) or low == ENDED or high == NOTHING:
        return UNKNOWN
    tests = [
        call(test, epoch, Literal(int(bound), epoch.type))
        for test, bound in (("ge", low), ("lt", high))
        if bound not in (NOTHING, ENDED)
    ]
    return tests[0] if len(tests) == 1 else call("and", *tests)
