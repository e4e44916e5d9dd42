"""The stage of a step that tasks do without SQL: its operators, their order, their results.

Operators that read segments of the log are one Spark job, with the longest tasks first, so that
none runs alone at the end. Operators that read only the rows of these are the next job, and so on.
All others are left to Spark SQL, which reads the files that tasks have written.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import field, replace
from typing import TYPE_CHECKING, Protocol

from gscope.engine.spark.partitions import limits
from gscope.engine.spark.tasks.aggregate_task import MergeTask, plain_merge
from gscope.engine.spark.tasks.here import MOST_ROWS, TasksHere
from gscope.engine.spark.tasks.join_task import JoinTask, is_plain_join, of_one_side
from gscope.engine.spark.tasks.released_rows import (
    UNKNOWN,
    homes,
    released_condition,
    released_rows_condition,
)
from gscope.engine.spark.tasks.select_task import SelectTask, is_plain_selection
from gscope.engine.spark.tasks.task import (
    MAX_TASK_ROWS,
    TASK_ROWS,
    FileTask,
    TaskResult,
    run_tasks,
    texts_of,
)
from gscope.engine.spark.tasks.top_task import TopTask
from gscope.engine.spark.tasks.union_task import UnionTask
from gscope.engine.steps.steps import Carry
from gscope.engine.storage.commits import Output
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import accept
from gscope.engine.watermarks.release_size import group_by_epochs, pack_groups, weight
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    SelectionNode,
    TopNode,
)
from gscope.queries.streams.messages import Batch
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.partitions.chain_operators import SuperNode
    from gscope.engine.spark.partitions.chain_planner import (
        Carried,
        ChainPlanner,
        StepChain,
    )
    from gscope.engine.spark.partitions.chain_task import ChainResult, ChainTask
    from gscope.engine.spark.spark import Spark
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.staging.outputs import Outputs
    from gscope.engine.spark.tasks.task import Task
    from gscope.engine.steps.steps import Step
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode, Program
    from gscope.queries.streams.messages import RowGroup


@dataclass(frozen=True, slots=True)
class StageResult:
    """The rows of one query that tasks have written.

    Attributes:
        folder: the folder of the Parquet files; None if nothing reads them.
        path: the path of the folder as a staged output; None if the query is not delivered.
        parts: the files as tasks reported them, in the order of their epochs.
    """

    folder: Path | None
    path: str | None
    parts: tuple[WrittenFile, ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows in all files."""
        return sum(part.rows for part in self.parts)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the files, in the order of their epochs."""
        assert self.folder is not None
        return tuple(str(self.folder / part.name) for part in self.parts)

    def output(self, result: str) -> Output | None:
        """Return the files as the output of ``result``; None if they are not delivered."""
        if self.path is None:
            return None
        return Output.of_files(result, self.path, self.parts)


@dataclass(slots=True)
class StageRun:
    """What tasks have done of a step.

    Attributes:
        results: the rows of operators, by query.
        carries: for each side whose waiting rows tasks have written, these rows.
        sub_files: the files of folders that hold no result.
        row_groups: the partitions of the row groups of files that chains have written.
        chained: the rows of the operators of chains, in files or not, by query.
        cpu_ns: the CPU time of tasks and folds in ns, by query.
        in_sql: the queries of which Spark SQL evaluated a part.
    """

    results: dict[str, StageResult] = field(default_factory=dict)
    carries: dict[Carried, tuple[Carry, ...]] = field(default_factory=dict)
    sub_files: dict[Path, list[WrittenFile]] = field(default_factory=dict)
    row_groups: dict[Path, tuple[RowGroup, ...]] = field(default_factory=dict)
    chained: Counter[str] = field(default_factory=Counter)
    cpu_ns: Counter[str] = field(default_factory=Counter)
    in_sql: set[str] = field(default_factory=set)

    def tuples(self, query: str) -> int:
        """Return the number of rows of an operator."""
        result = self.results[query]
        return self.chained[query] if result.folder is None else result.rows

    def folder(self, query: str) -> Path:
        """Return the folder of the rows of an operator, which are written."""
        folder = self.results[query].folder
        assert folder is not None
        return folder

    def carried(self, upstream: str, step: int, folder: Path, file: WrittenFile) -> Batch:
        """Return a file of rows that wait, as a batch of the port where they do."""
        groups = self.row_groups[folder / file.name]
        path = f"{folder.name}/{file.name}"
        return Batch(upstream, step, path, file.rows, file.size_bytes, file.extents, groups)


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


_Planned = tuple[int, str, FileTask]
"""The most rows that a task reads, its query, and the task."""

_Chained = tuple[int, "StepChain", "ChainTask"]

Plan = Callable[[_Part], "Task"]
"""Returns the task for a part."""


class Beside(Protocol):
    """What evaluates other operators of a step while tasks run."""

    def start(self, run: StageRun) -> bool:
        """Start what can read the results in ``run``; return whether there is anything."""

    def finish(self, run: StageRun) -> None:
        """Wait for what was started, and add its results to ``run``."""


class TaskStage:
    """The stage of each step in which tasks evaluate operators.

    Args:
        spark: runs the tasks of large steps, and all tasks once it is ready.
        program: the program of all operators.
        inputs: the rows that operators read.
        outputs: the places where rows are written.
        results: for each result, the query whose rows it consists of.
        here: runs the tasks of small steps while Spark is not ready.

    Attributes:
        counts: the counts of all tasks so far.
    """

    def __init__(
        self,
        spark: Spark,
        program: Program,
        inputs: InputViews,
        outputs: Outputs,
        results: Mapping[str, str],
        here: TasksHere,
    ) -> None:
        self._spark = spark
        self._here = here
        self._program = program
        self._inputs = inputs
        self._outputs = outputs
        self._results = results
        self._plans = {node.query: self._plan(node) for node in program.nodes}
        self.counts = Counts()
        self._planner: ChainPlanner | None = None

    def run(self, step: Step, uses: Mapping[str, int], beside: Beside | None = None) -> StageRun:
        """Run the operators of ``step`` that tasks can do, and return their results.

        Args:
            step: the works of all operators, inputs first.
            uses: how often the rows of each query are read.
            beside: what runs beside tasks, which may read its results; None for nothing.
        """
        run = StageRun()
        chains = self._chains(step)
        supers = [each for chain in chains for each in chain.supers]
        fused = {query for chain in chains for query in chain.queries}
        fused |= {each.work.node.query for each in supers}
        waiting = [work for work in step.works if work.reads_rows and work.node.query not in fused]
        while True:
            done = run.results
            # Before tasks of this round are planned, which have no rows until they have run.
            is_started = beside is not None and beside.start(run)
            ready = [work for work in waiting if all(each in done for each in work.upstream)]
            waiting = [work for work in waiting if work not in ready]
            tasks = [task for work in ready for task in self._tasks(work, step, run, uses)]
            if not chains:
                tasks += [self._super_task(each, step, run) for each in supers]
                supers = []
            chained = [(chain.rows, chain, task) for chain in chains for task in chain.tasks]
            if not tasks and not chained and not is_started:
                return run
            self._run(sorted([*tasks, *chained], key=lambda task: -task[0]), run)
            if beside is not None:
                beside.finish(run)
            for chain in chains:
                self._accept_chain(chain, step, run)
            chains = []

    def _chains(self, step: Step) -> list[StepChain]:
        """Return the chains of ``step``, which only a large step has."""
        rows = sum(work.rows for work in step.works)
        if self._program.partitioning is None or rows < limits.SPLIT_ROWS:
            return []
        if self._planner is None:
            from gscope.engine.spark.partitions.chain_planner import ChainPlanner

            self._planner = ChainPlanner(
                self._program, self._inputs, self._outputs, self._results, lambda: self._spark.cores
            )
        return self._planner.chains(step)

    def _tasks(
        self, work: Work, step: Step, run: StageRun, uses: Mapping[str, int]
    ) -> Iterator[_Planned]:
        """Yield the tasks of an operator, and note where its results will be; nothing for SQL."""
        query, plan = work.node.query, self._plan_of(work)
        parts = [] if plan is None else self._parts(work, run.results)
        if plan is None or not parts:
            return
        run.results[query] = self._new_result(query, step.number)
        is_read = uses.get(query, 0) > len(self._delivered(work.node))
        texts = texts_of(work.node.schema) if is_read else ()
        for number, part in enumerate(parts):
            yield part.rows, query, self._file_task(work, plan(part), run, number, texts)

    def _super_task(self, node: SuperNode, step: Step, run: StageRun) -> _Planned:
        query = node.work.node.query
        run.results[query] = self._new_result(query, step.number)
        files = run.sub_files.pop(node.folder)
        task = node.task(tuple(str(node.folder / file.name) for file in files))
        return sum(file.rows for file in files), query, self._file_task(node.work, task, run, 0)

    def _delivered(self, node: HftaNode) -> list[str]:
        """Return the results that consist of the rows of ``node``."""
        return [result for result, query in self._results.items() if query == node.query]

    def _file_task(
        self, work: Work, task: Task, run: StageRun, number: int, texts: tuple[str, ...] = ()
    ) -> FileTask:
        temporal = tuple(column.name for column in work.node.schema.temporal)
        return FileTask(task, run.folder(work.node.query), number, temporal, texts)

    def _run(self, tasks: Sequence[_Planned | _Chained], run: StageRun) -> None:
        """Run tasks, largest first, as one Spark job, or here; check what they have written."""
        reports: list[TaskResult | ChainResult]
        asked = [task for *_, task in tasks]
        at_once = [rows for rows, *_ in tasks][: self._here.cores]
        is_here = not self._spark.is_ready and sum(at_once) <= MOST_ROWS
        if is_here:
            reports = self._here.run(asked, [rows for rows, *_ in tasks])
        else:
            reports = run_tasks(self._spark.session, asked)
        found: dict[Path, list[WrittenFile]] = {}
        for (_, of, _), report in zip(tasks, reports, strict=True):
            self.counts += report.counts
            if isinstance(report, TaskResult):
                assert isinstance(of, str)
                run.cpu_ns[of] += report.cpu_ns
                found.setdefault(run.folder(of), []).append(report.file)
                continue
            run.chained += report.tuples
            run.cpu_ns += report.cpu_ns
            for folder, file, groups in report.files:
                found.setdefault(folder, []).append(file)
                run.row_groups[folder / file.name] = groups
        for folder, files in found.items():
            files.sort(key=lambda file: file.name)
            accept(folder, files, is_own=is_here)
        for query, result in run.results.items():
            if result.folder in found:
                run.results[query] = replace(result, parts=tuple(found.pop(result.folder)))
        run.sub_files.update(found)

    def _accept_chain(self, chain: StepChain, step: Step, run: StageRun) -> None:
        """Note the results of a chain, and the rows that wait for a later step."""
        for query in chain.queries:
            folder = chain.folders.get(query)
            files = run.sub_files.pop(folder, []) if folder is not None else []
            run.results[query] = StageResult(folder, chain.paths.get(query), tuple(files))
        for (query, side, upstream), folder in chain.carries.items():
            files = run.sub_files.pop(folder, [])
            run.carries[query, side, upstream] = tuple(
                Carry(query, side, run.carried(upstream, step.number, folder, file))
                for file in files
                if file.rows
            )

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
            case AggregationNode() if merge := plain_merge(
                node, self._program.input_schema(node.input)
            ):
                return lambda part: MergeTask(merge, part.files[0], part.within[0])
            case JoinNode() if is_plain_join(node):
                return lambda part: JoinTask(
                    node,
                    (part.files[0], part.files[1]),
                    (part.within[0], part.within[1]),
                    part.homes,
                )
            case MergeNode():
                return lambda part: UnionTask(
                    node.schema, part.files, tuple(c and of_one_side(c) for c in part.within)
                )
            case TopNode():
                return lambda part: TopTask(node, part.files[0], part.within[0])
            case SelectionNode() if is_plain_selection(node):
                return lambda part: SelectTask(node, part.files[0])
            case _:
                return None

    def _parts(self, work: Work, done: Mapping[str, StageResult]) -> list[_Part]:
        """Return what the tasks of ``work`` read; nothing if ``work`` is left to SQL."""
        node = work.node
        if work.state is not None:
            return []
        if len(self._delivered(node)) > 1:
            return []
        is_logged = self._inputs.reads_segments(work)
        parts = self._of_segments(work) if is_logged else self._of_queries(work, done)
        return parts if all(part.rows <= MAX_TASK_ROWS for part in parts) else []

    def _of_queries(self, work: Work, done: Mapping[str, StageResult]) -> list[_Part]:
        """Return one part: rows of other queries, of this step and those that waited for it.

        Sides of a join or a merge may also read segments of the log.
        """
        at_home = homes(work)
        if self._inputs.reads_only(work):
            within: tuple[Expression | None, ...] = (None,) * len(work.inputs)
        elif isinstance(work.node, AggregationNode | JoinNode | MergeNode | TopNode):
            within = tuple(released_rows_condition(work, taken) for taken in work.inputs)
        else:
            return []
        waited = [taken.batches for taken in work.inputs]
        sides = [[done[name] for name in taken.upstream] for taken in work.inputs]
        stored: list[Batch | WrittenFile]
        stored = [part for side in sides for each in side for part in each.parts]
        stored += [batch for side in waited for _, batch in side]
        if UNKNOWN in (*within, *at_home) or _are_long(stored):
            return []
        files = tuple(
            (*self._inputs.stored_paths(batches), *(file for each in side for file in each.files))
            for batches, side in zip(waited, sides, strict=True)
        )
        return [_Part(sum(part.rows for part in stored), files, within, at_home)]

    def _of_segments(self, work: Work) -> list[_Part]:
        within = tuple(released_condition(work, taken) for taken in work.inputs)
        at_home = homes(work)
        if not self._inputs.reads_segments(work) or UNKNOWN in (*within, *at_home):
            return []
        parts: Iterable[tuple[list[Batch], ...]]
        match work.node:
            case SelectionNode():
                (taken,) = work.inputs
                parts = pack_groups((([batch],) for _, batch in taken.batches), TASK_ROWS)
            case AggregationNode() | TopNode():
                parts = pack_groups(group_by_epochs(work.inputs), TASK_ROWS)
            case MergeNode():
                parts = [tuple([batch for _, batch in taken.batches] for taken in work.inputs)]
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
                at_home,
            )
            for part in parts
        ]

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
