"""The data plane of a step: released rows become DataFrames, answers become files.

Each result of the step is one plan. A query that is read in several places is cached for the step.
"""

from __future__ import annotations

import itertools
import math
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Self, TypeVar

from gscope.engine.spark.cluster.traffic import TrafficMeter
from gscope.engine.spark.jvm.heap import heap_bytes, joined_rows
from gscope.engine.spark.own_rows import OwnRows, has_own_rows
from gscope.engine.spark.sql.inputs import InputViews, Sources
from gscope.engine.spark.sql_reads import read_by_sql
from gscope.engine.spark.staging.outputs import Outputs
from gscope.engine.spark.staging.trimming import Trimming
from gscope.engine.spark.step_folds import StepFolds
from gscope.engine.spark.task_planner import StageResult, TaskStage
from gscope.engine.spark.tasks.carry_task import kept_rows
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS
from gscope.engine.steps.node_counts import NodeRun
from gscope.engine.steps.steps import Carry, Evaluation
from gscope.engine.storage.counts import Counts
from gscope.engine.watermarks.release_size import group_by_epochs, pack_groups, weight
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    Program,
    QueryInput,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.whole_input import is_whole_input
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.partitions.chain_planner import Carried
    from gscope.engine.spark.spark import Spark
    from gscope.engine.spark.sql.attempt_counts import AttemptCounts
    from gscope.engine.spark.sql.lookups import Lookups
    from gscope.engine.spark.sql.watchlists import Watchlists
    from gscope.engine.spark.step_folds import Staged
    from gscope.engine.spark.task_planner import StageRun
    from gscope.engine.spark.tasks.state_runner import FoldResult
    from gscope.engine.steps.steps import Step
    from gscope.engine.storage.commits import CommitLog, Output
    from gscope.engine.storage.parquet_files import State, WrittenFile
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.streams.messages import Batch

SMALL_STEP_ROWS = 200_000
"""Up to this many rows one partition without an exchange is faster than two with one."""

MAX_BRANCHES = 32
"""The most branches of one union: the depth of its plan, on which Spark recurses, and the time of
planning grow with them."""

SMALL_STEP_BYTES = 32 << 20
"""The most bytes of a small step, whose rows are in the heap as a whole, several times."""

BRANCH_ROWS = 25_000
"""Fewer rows are not worth a branch, which costs some 20 ms of planning."""

_JOBS_AT_ONCE = 4
_BY_EPOCHS = (AggregationNode, JoinNode, TopNode)
_T = TypeVar("_T")


class Evaluator:
    """The evaluator of the steps of one program, on one Spark session.

    Args:
        spark: evaluates what tasks in this process cannot.
        program: the program.
        log_folder: the folder to which the paths of segments are relative.
        commits: the commits, which determine where outputs are staged and carries are kept.
        here: runs the tasks of small steps while Spark is not ready.
    """

    def __init__(
        self,
        spark: Spark,
        program: Program,
        log_folder: Path,
        commits: CommitLog,
        here: TasksHere | None = None,
    ) -> None:
        self._spark = spark
        self._program = program
        self._inputs = InputViews(spark, program, log_folder, commits.carry)
        self._outputs = Outputs(program, commits)
        self._trimming = Trimming(log_folder, commits.carry)
        self._tables = list(_tables(spark, program))
        self._results = {
            query: source.query
            for query, source in program.results
            if isinstance(source, QueryInput)
        }
        here = here or TasksHere()
        self._own_rows = OwnRows(
            spark, here, program, self._sql, self._inputs, self._outputs, commits
        )
        self._tasks = TaskStage(spark, program, self._inputs, self._outputs, self._results, here)
        self._counted_in_sql: AttemptCounts | None = None
        self._registering = threading.Lock()
        self._traffic = TrafficMeter.of(spark.session) if spark.is_ready else None

    @cached_property
    def _heap_bytes(self) -> int:
        return heap_bytes(self._spark.session)

    def counts(self) -> Counts:
        """Return the counts so far besides rows; call it between steps."""
        counts = self._tasks.counts + self._own_rows.counts
        if self._traffic is not None:
            counts += Counts(transferred_bytes=self._traffic.bytes_by_kind())
        return counts if self._counted_in_sql is None else counts + self._counted_in_sql.total()

    def run(self, step: Step) -> Evaluation:
        """Evaluate ``step``: stage its outputs and write its carries and states."""
        step, trimmed = self._trimming.applied(step)
        uses = self._uses(step)
        for table in self._tables:
            table.refresh()
        rows = self._rows(step, uses)
        rows.trimmed.update(trimmed)
        try:
            return self._write(step, rows)
        finally:
            for query, frame in rows.frames.items():
                if uses.get(query, 0) > 1:
                    frame.unpersist()

    def _rows(self, step: Step, uses: Mapping[str, int]) -> _StepRows:
        """Return the rows that the operators of ``step`` give, by tasks where these can do it."""
        rows = _StepRows()
        stage = self._stage(step, uses, rows)
        by_tasks = stage.results
        needed = read_by_sql(step.works, by_tasks, rows.carried)
        for work in step.works:
            if not work.reads_rows:
                continue
            query = work.node.query
            if query not in by_tasks:
                self._add(self._trimmed(work, step.number, rows), step.number, uses, rows)
                continue
            rows.sizes[query] = _Size.of(by_tasks[query].parts)
            is_sql = query in stage.in_sql
            rows.runs.append(NodeRun(query, stage.tuples(query), stage.cpu_ns[query], is_sql))
            rows.outputs += self._delivered(query, by_tasks[query])
            if query in needed:
                rows.frames[query] = self._inputs.register(query, by_tasks[query].files)
        return rows

    def _stage(self, step: Step, uses: Mapping[str, int], rows: _StepRows) -> StageRun:
        """Run what tasks can do, and the folds of running aggregations beside them."""

        def place(query: str) -> Staged:
            result = next((r for r, q in self._results.items() if q == query), None)
            if result is None:
                return None, self._outputs.groups(query, step.number, "answers")
            return self._outputs.stage(result, step.number, ".parquet")

        def fold(work: Work, run: StageRun, folder: Path) -> FoldResult:
            sizes = {name: _Size.of(run.results[name].parts) for name in work.upstream}
            for name in sizes:
                self._inputs.register(name, run.results[name].files)
            is_small = _is_small(_read(work, sizes))
            return self._own_rows.fold(work, step.number, folder, is_small=is_small)

        folds = StepFolds(step.works, place, fold, _JOBS_AT_ONCE)
        try:
            stage = self._tasks.run(step, uses, folds)
        finally:
            folds.close()
        for query, folded in folds.results.items():
            rows.states.append((query, folded.state))
            rows.trimmed[query] += folded.left_out
        rows.by_tasks = frozenset(stage.results)
        rows.carried = self._carried(step, stage)
        return stage

    def _carried(self, step: Step, stage: StageRun) -> dict[Carried, tuple[Carry, ...]]:
        """Return the rows kept of what tasks have written, as far as SQL need not write them."""
        carried = dict(stage.carries)
        for work in step.works:
            for side, taken in enumerate(work.inputs):
                for upstream in taken.carries:
                    key = work.node.query, side, upstream
                    result = stage.results.get(upstream)
                    if key in carried or result is None or not _is_small(_Size.of(result.parts)):
                        continue
                    kept = kept_rows(work, taken, upstream, self._program.schema(upstream))
                    if kept is not None:
                        file = self._outputs.carry_file(*key, step.number)
                        batch = kept.written(result.files, file, step.number)
                        carried[key] = () if batch is None else (Carry(key[0], side, batch),)
        return carried

    def _trimmed(self, work: Work, step: int, rows: _StepRows) -> Work:
        """Return ``work`` without the rows of other queries that it has to leave out."""
        if all(taken.trim is None for taken in work.inputs):
            return work

        def written(query: str, side: int) -> Batch | None:
            frame, is_small = rows.frames[query], _is_small(rows.sizes[query])
            return self._outputs.read_again(work, side, query, step, frame, is_small=is_small)

        read, left_out = self._trimming.of_queries(work, step, written)
        rows.trimmed[work.node.query] += left_out
        return read

    def _add(self, work: Work, step: int, uses: Mapping[str, int], rows: _StepRows) -> None:
        """Add the rows of an operator that tasks have not evaluated.

        Running aggregations are folded, windows assembled.
        """
        query = work.node.query
        size = rows.sizes[query] = _read(work, rows.sizes)
        frame: DataFrame | None
        if has_own_rows(work.node):
            result = next((r for r, q in self._results.items() if q == query), None)
            staged = result if uses[query] == 1 else None
            folded, run = self._own_rows.run(work, step, staged, is_small=_is_small(size))
            rows.runs.append(run)
            rows.sizes[query] = _Size.of(folded.files)
            rows.states.append((query, folded.state))
            rows.trimmed[query] += folded.left_out
            if folded.output is not None:
                rows.outputs.append(folded.output)
            frame = folded.frame
        else:
            frame = self._sql(self._lower(work, size))
            rows.runs.append(NodeRun(query, None, is_sql=True))
        if frame is None:
            return
        if uses.get(query, 0) > 1:
            frame = frame.cache()
        frame.createOrReplaceTempView(self._inputs.view(query))
        rows.frames[query] = frame

    def _write(self, step: Step, rows: _StepRows) -> Evaluation:
        """Write what is not written yet, side by side: outputs, carries and counts of late rows."""
        with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool:
            outputs = [
                pool.submit(
                    self._outputs.write,
                    result,
                    step.number,
                    rows.frames[query],
                    is_small=_is_small(rows.sizes[query]),
                )
                for result, query in self._results.items()
                if query in rows.frames and query not in rows.by_tasks
            ]
            carries = list(self._carry(pool, step, rows))
            late = [pool.submit(self._count_late, work) for work in step.works]
            answered = (*rows.outputs, *_results(outputs))
            return Evaluation(
                outputs=answered,
                carries=(*itertools.chain(*rows.carried.values()), *_results(carries)),
                states=tuple(rows.states),
                late=tuple(_results(late)),
                trimmed=tuple((query, count) for query, count in rows.trimmed.items() if count),
                runs=tuple(self._counted(run, answered) for run in rows.runs),
            )

    def _counted(self, run: NodeRun, outputs: Iterable[Output]) -> NodeRun:
        """Return ``run`` with the rows of its node, if these are delivered."""
        result = next((r for r, query in self._results.items() if query == run.query), None)
        if run.tuples is not None or result is None:
            return run
        return replace(run, tuples=sum(each.rows for each in outputs if each.query == result))

    def _delivered(self, query: str, rows: StageResult) -> Iterator[Output]:
        """Yield what tasks made of ``query`` as an output, if it is one."""
        for result, source in self._results.items():
            if source == query and (output := rows.output(result)) is not None:
                yield output

    def _carry(
        self, pool: ThreadPoolExecutor, step: Step, rows: _StepRows
    ) -> Iterator[Future[Carry | None]]:
        """Start to write the rows that sides may not read yet."""
        for work in step.works:
            for side, taken in enumerate(work.inputs):
                for upstream in taken.carries:
                    if (work.node.query, side, upstream) in rows.carried:
                        continue
                    yield pool.submit(
                        self._outputs.carry,
                        work,
                        side,
                        upstream,
                        step.number,
                        rows.frames[upstream],
                        is_small=_is_small(rows.sizes[upstream]),
                    )

    def _count_late(self, work: Work) -> tuple[str, int] | None:
        """Return how many rows reached ``work`` below its watermark; None without such batches."""
        sides = range(len(work.inputs))
        late = [rows for side in sides if (rows := self._inputs.late(work, side)) is not None]
        if not late:
            return None
        counts = (
            self._spark.session.sql(f"SELECT count(*) FROM {rows}").toArrow() for rows in late
        )
        return work.node.query, sum(count.column(0)[0].as_py() for count in counts)

    def _sql(self, text: str) -> DataFrame:
        """Return the rows of a text; the first text registers all functions."""
        with self._registering:
            if self._counted_in_sql is None:
                self._counted_in_sql = self._register()
        return self._spark.session.sql(text)

    def _register(self) -> AttemptCounts:
        # Loaded with Spark only: most replays need no SQL.
        from gscope.engine.spark.lowering import expressions
        from gscope.engine.spark.sql.finishers import register_finishers
        from gscope.engine.spark.sql.udf import register_functions
        from gscope.engine.spark.sql.user_folds import register_folds

        nodes = self._program.nodes
        counts = register_functions(self._spark.session, (e for n in nodes for e in expressions(n)))
        aggregates = (a for node in nodes for a in getattr(node, "aggregates", ()))
        register_finishers(self._spark.session, aggregates, counts)
        if self._program.user_files:
            register_folds(self._spark.session)
        return counts

    def _uses(self, step: Step) -> dict[str, int]:
        """Return how often the rows of each query are read in the step."""
        uses: dict[str, int] = {}
        taken = [each for work in step.works for each in work.inputs]
        readers = [name for each in taken for name in (*each.upstream, *each.carries)]
        for query in [*readers, *self._results.values()]:
            uses[query] = uses.get(query, 0) + 1
        return uses

    def _lower(self, work: Work, size: _Size) -> str:
        """Return the SQL text of an operator over what it reads, at most ``size``.

        Rows of different epochs never meet, in an aggregation as in a join. A large input is
        therefore a union of at most ``MAX_BRANCHES`` texts, one for each range of epochs: no range
        needs an exchange, and the ranges are tasks that run side by side. A join holds its smaller
        side in memory, as long as that fits.
        """
        from gscope.engine.spark.lowering import lower

        node, rows, is_small = work.node, size.rows, _is_small(size)
        in_memory = joined_rows(self._heap_bytes, size.row_bytes)
        epochs = (work.low, work.high)
        is_by_epochs = isinstance(node, _BY_EPOCHS) and not _is_one_epoch(node)
        if is_by_epochs and not is_small and self._inputs.are_whole_segments(work):
            total = sum(weight(batch) for taken in work.inputs for _, batch in taken.batches)
            parts = pack_groups(
                group_by_epochs(work.inputs), max(BRANCH_ROWS, 2 * total // MAX_BRANCHES)
            )
            largest = max(sum(batch.rows for side in part for batch in side) for part in parts)
            if not isinstance(node, JoinNode) or largest <= MAX_TASK_ROWS:
                sources = [
                    tuple(self._inputs.whole(work, side, number, b) for side, b in enumerate(part))
                    for number, part in enumerate(parts)
                ]
                fits = largest <= in_memory
                return " UNION ALL ".join(
                    lower(node, Sources(each, epochs, fits_in_memory=fits)) for each in sources
                )
        sides = [
            side
            for side, taken in enumerate(work.inputs)
            if taken.reads_rows or not isinstance(node, MergeNode)
        ]
        released = tuple(self._inputs.released(work, side, is_small=is_small) for side in sides)
        return lower(node, Sources(released, epochs, fits_in_memory=rows <= in_memory))


def _tables(spark: Spark, program: Program) -> Iterator[Watchlists | Lookups]:
    """Yield the tables of files that the program reads, which Spark holds."""
    if any(isinstance(node, WatchlistJoinNode) for node in program.nodes):
        from gscope.engine.spark.sql.watchlists import Watchlists

        yield Watchlists(spark.session, program)
    if program.lookups:
        from gscope.engine.spark.sql.lookups import Lookups

        yield Lookups(spark.session, program)


def _is_one_epoch(node: HftaNode) -> bool:
    """Return whether all rows of ``node`` are of one epoch, so that epochs give no ranges."""
    return isinstance(node, AggregationNode | TopNode) and is_whole_input(node.epoch_expression)


@dataclass(frozen=True, slots=True)
class _Size:
    """The most that an operator reads or gives in a step; STRING values make rows of any length."""

    rows: int = 0
    size_bytes: int = 0

    @classmethod
    def of(cls, parts: Iterable[Batch | WrittenFile]) -> Self:
        """Return the size of ``parts`` together."""
        held = list(parts)
        return cls(sum(part.rows for part in held), sum(part.size_bytes for part in held))

    @property
    def row_bytes(self) -> int:
        """The average bytes of a row."""
        return self.size_bytes // max(1, self.rows)


@dataclass(slots=True)
class _StepRows:
    """The rows that the operators of a step give.

    Attributes:
        by_tasks: the queries that tasks have evaluated, whose outputs are staged.
        carried: the rows that tasks have kept for later steps, by the side that they wait at.
        frames: the rows of a query, if an operator, a carry or an output reads them.
        sizes: the size of the rows of each query, at most.
        outputs: the outputs that are staged already.
        states: for each running aggregation, the groups that it left; None if no group lives.
        trimmed: for each query, the number of rows above the threshold of their epoch.
        runs: what was done for each operator, without the rows that Spark has yet to write.
    """

    by_tasks: frozenset[str] = frozenset()
    carried: Mapping[Carried, tuple[Carry, ...]] = field(default_factory=dict)
    frames: dict[str, DataFrame] = field(default_factory=dict)
    sizes: dict[str, _Size] = field(default_factory=dict)
    outputs: list[Output] = field(default_factory=list)
    states: list[tuple[str, State | None]] = field(default_factory=list)
    trimmed: Counter[str] = field(default_factory=Counter)
    runs: list[NodeRun] = field(default_factory=list)


def _read(work: Work, sizes: Mapping[str, _Size]) -> _Size:
    """Return the size of the batches and of the rows of other queries that ``work`` reads.

    A row that is put into several windows counts as often.
    """
    read = [_Size.of(batch for taken in work.inputs for _, batch in taken.batches)]
    read += [sizes[name] for name in work.upstream]
    copies = _copies(work)
    return _Size(
        copies * sum(each.rows for each in read), copies * sum(each.size_bytes for each in read)
    )


def _copies(work: Work) -> int:
    """Return into how many windows a row of ``work`` is put at most."""
    node = work.node
    if not isinstance(node, WindowNode) or node.slices is not None:
        return 1
    if not (math.isfinite(work.low) and math.isfinite(work.high)):
        return node.window.overlap
    low, high = (node.windows.last_complete(int(bound)) for bound in (work.low, work.high))
    return max(1, min(node.window.overlap, high - low))


def _is_small(size: _Size) -> bool:
    return size.rows <= SMALL_STEP_ROWS and size.size_bytes <= SMALL_STEP_BYTES


def _results(futures: Sequence[Future[_T | None]]) -> list[_T]:
    """Return the results of futures that are not None."""
    return [result for future in futures if (result := future.result()) is not None]
