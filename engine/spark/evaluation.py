"""The data plane of a step: released rows become DataFrames, answers become files.

One plan for each result of the step. A query read in several places is cached for the step.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from gscope.engine.commits import Output
from gscope.engine.release import by_epochs
from gscope.engine.spark.finishers import register_finishers
from gscope.engine.spark.inputs import Inputs
from gscope.engine.spark.lowering import expressions, lower
from gscope.engine.spark.merge_partials import (
    MAX_TASK_ROWS,
    PartialMerge,
    for_tasks,
    merge_tasks,
    plain_merge,
    run_merges,
)
from gscope.engine.spark.outputs import Outputs
from gscope.engine.spark.run_fold import Folded, FoldRunner
from gscope.engine.spark.udf import register_functions
from gscope.engine.spark.user_folds import register_folds
from gscope.engine.spark.watchlists import Watchlists
from gscope.engine.steps import Evaluation
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    Program,
    QueryInput,
    RunningNode,
    StreamInput,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Future
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gscope.engine.commits import CommitLog
    from gscope.engine.operators.base import Work
    from gscope.engine.spark.merge_partials import MergeTask
    from gscope.engine.steps import Carry, Step
    from gscope.queries.streams.messages import Batch

SMALL_STEP_ROWS = 200_000
"""Up to here one partition without an exchange is faster than two with one."""

_JOBS_AT_ONCE = 4
_T = TypeVar("_T")


class Evaluator:
    """Evaluates steps of one program on one Spark session.

    Args:
        log_folder: where the batches' segment paths start.
        commits: says where outputs are staged and carries are kept.
    """

    def __init__(
        self, session: SparkSession, program: Program, log_folder: Path, commits: CommitLog
    ) -> None:
        self._session = session
        self._program = program
        self._inputs = Inputs(session, program, log_folder, commits.carry)
        self._outputs = Outputs(program, commits)
        self._folds = FoldRunner(session, self._inputs, commits.carry, program.user_files)
        self._watchlists = Watchlists(session, program)
        self._results = {
            query: source.query
            for query, source in program.results
            if isinstance(source, QueryInput)
        }
        register_finishers(
            session, (a for node in program.nodes for a in getattr(node, "aggregates", ()))
        )
        if program.user_files:
            register_folds(session)
        self._functions = register_functions(
            session, (e for node in program.nodes for e in expressions(node))
        )

    def undecodable(self) -> dict[str, int]:
        """Payloads that a function could not read so far, by function."""
        return self._functions.undecodable()

    def run(self, step: Step) -> Evaluation:
        """Evaluate ``step``; its outputs are staged, its carries written."""
        frames: dict[str, DataFrame] = {}
        sizes: dict[str, int] = {}
        merged: list[Output] = []
        states: list[tuple[str, Batch | None]] = []
        uses = self._uses(step)
        self._watchlists.refresh()
        groups = self._merge(step, uses)
        for work in step.works:
            if not work.reads_rows:
                continue
            query = work.node.query
            if query in groups:
                sizes[query] = groups[query].rows
                if (output := groups[query].output) is not None:
                    merged.append(output)
                if groups[query].is_read:
                    frames[query] = self._inputs.register(query, groups[query].folder)
                continue
            sizes[query] = work.rows + sum(sizes[name] for name in work.upstream)
            if isinstance(work.node, RunningNode):
                folded = self._fold(work, step.number, rows=sizes[query], uses=uses[query])
                sizes[query] = folded.rows
                states.append((query, folded.state))
                if folded.output is not None:
                    merged.append(folded.output)
                if folded.frame is None:
                    continue
                frame = folded.frame
            else:
                frame = self._session.sql(self._lower(work, sizes[query]))
            if uses.get(query, 0) > 1:
                frame = frame.cache()
            frame.createOrReplaceTempView(self._inputs.view(query))
            frames[query] = frame
        try:
            with ThreadPoolExecutor(_JOBS_AT_ONCE) as pool:
                outputs = [
                    pool.submit(
                        self._outputs.write,
                        result,
                        step.number,
                        frames[query],
                        is_small=_is_small(sizes[query]),
                    )
                    for result, query in self._results.items()
                    if query in frames and query not in groups
                ]
                carries = list(self._carry(pool, step, frames))
                late = [pool.submit(self._count_late, work) for work in step.works]
                return Evaluation(
                    outputs=(*merged, *_results(outputs)),
                    carries=tuple(_results(carries)),
                    states=tuple(states),
                    late=tuple(_results(late)),
                )
        finally:
            for query, frame in frames.items():
                if uses.get(query, 0) > 1:
                    frame.unpersist()

    def _carry(
        self, pool: ThreadPoolExecutor, step: Step, frames: dict[str, DataFrame]
    ) -> Iterator[Future[Carry | None]]:
        for work in step.works:
            for side, taken in enumerate(work.inputs):
                for upstream in taken.carries:
                    frame = frames[upstream]
                    yield pool.submit(self._outputs.carry, work, side, upstream, step.number, frame)

    def _count_late(self, work: Work) -> tuple[str, int] | None:
        """How many rows came to ``work`` below its watermark; None if there cannot be any."""
        sides = range(len(work.inputs))
        late = [rows for side in sides if (rows := self._inputs.late(work, side)) is not None]
        if not late:
            return None
        counts = (self._session.sql(f"SELECT count(*) FROM {rows}").toArrow() for rows in late)
        return work.node.query, sum(count.column(0)[0].as_py() for count in counts)

    def _merge(self, step: Step, uses: dict[str, int]) -> dict[str, _Groups]:
        """Merge partial tuples, those of all queries for which that is enough, as one Spark job."""
        groups: dict[str, _Groups] = {}
        tasks: list[tuple[str, int, MergeTask]] = []
        for work in step.works:
            merge = self._plain_merge(work, uses) if work.reads_rows else None
            if merge is None:
                continue
            query = work.node.query
            result = next((r for r, q in self._results.items() if q == query), None)
            folder = self._outputs.groups(query, step.number)
            output = None
            if result is not None:
                path, folder = self._outputs.stage(result, step.number, ".parquet")
                output = Output(result, path, 0)
            parts = for_tasks(part for part, *_ in by_epochs(work.inputs))
            made = merge_tasks(merge, [self._inputs.paths(part) for part in parts], folder)
            groups[query] = _Groups(folder, output, uses.get(query, 0) > (output is not None))
            tasks += [
                (query, sum(b.rows for b in part), t) for part, t in zip(parts, made, strict=True)
            ]
        # The longest first, so that none is left to run alone at the end.
        tasks.sort(key=lambda task: -task[1])
        written = run_merges(self._session, [task for _, _, task in tasks])
        for (query, *_), rows in zip(tasks, written, strict=True):
            groups[query] = groups[query].with_rows(rows)
        return groups

    def _plain_merge(self, work: Work, uses: dict[str, int]) -> PartialMerge | None:
        """How to merge a release without Spark's own aggregation, None if it has to be that."""
        node = work.node
        if not isinstance(node, AggregationNode) or not isinstance(node.input, StreamInput):
            return None
        if not self._inputs.are_whole_segments(work):
            return None
        delivered = [result for result, query in self._results.items() if query == node.query]
        is_read = uses.get(node.query, 0) > len(delivered)
        has_text = any(column.type is GsqlType.STRING for column in node.schema.columns)
        if len(delivered) > 1 or (is_read and has_text):
            return None
        largest = max(sum(batch.rows for batch in part) for part, *_ in by_epochs(work.inputs))
        if largest > MAX_TASK_ROWS:
            return None
        return plain_merge(node, self._program.lfta(node.input.lfta).stream_schema)

    def _fold(self, work: Work, step: int, *, rows: int, uses: int) -> Folded:
        """Fold a running aggregation that reads about so many ``rows``."""
        result = next((r for r, q in self._results.items() if q == work.node.query), None)
        is_small = _is_small(rows)
        if result is None or uses > 1:
            return self._folds.run(work, step, is_small=is_small)
        path, staged = self._outputs.stage(result, step, ".parquet")
        folded = self._folds.run(work, step, staged, is_small=is_small)
        if not folded.rows:
            return folded
        return replace(folded, output=Output(result, path, folded.rows))

    def _uses(self, step: Step) -> dict[str, int]:
        """How often each query's rows are read in the step."""
        uses: dict[str, int] = {}
        taken = [each for work in step.works for each in work.inputs]
        readers = [name for each in taken for name in (*each.upstream, *each.carries)]
        for query in [*readers, *self._results.values()]:
            uses[query] = uses.get(query, 0) + 1
        return uses

    def _lower(self, work: Work, rows: int) -> str:
        """The SQL text of an operator over what it reads, at most ``rows`` rows.

        Rows of different epochs never meet, in an aggregation as in a join. So where much is read, it
        is a union of one text for each range of epochs: no range needs an exchange, and the ranges are
        tasks that run side by side. A join holds its smaller side in memory, as long as that fits.
        """
        node, is_small = work.node, _is_small(rows)
        is_by_epochs = isinstance(node, AggregationNode | JoinNode)
        if is_by_epochs and not is_small and self._inputs.are_whole_segments(work):
            parts = by_epochs(work.inputs)
            largest = max(sum(batch.rows for side in part for batch in side) for part in parts)
            if isinstance(node, AggregationNode) or largest <= MAX_TASK_ROWS:
                sources = [
                    [self._inputs.whole(work, side, number, b) for side, b in enumerate(part)]
                    for number, part in enumerate(parts)
                ]
                return " UNION ALL ".join(lower(node, each, largest) for each in sources)
        sides = [
            side
            for side, taken in enumerate(work.inputs)
            if taken.reads_rows or not isinstance(node, MergeNode)
        ]
        released = [self._inputs.released(work, side, is_small=is_small) for side in sides]
        return lower(node, released, rows)


@dataclass(frozen=True, slots=True)
class _Groups:
    """What merging partial tuples gives for one query.

    Attributes:
        folder: of the Parquet files.
        output: them as an answer that is staged, None where nobody is to have it.
        is_read: whether operators of the step read them.
        rows: so far.
    """

    folder: Path
    output: Output | None
    is_read: bool
    rows: int = 0

    def with_rows(self, rows: int) -> _Groups:
        """The same with further rows."""
        output = self.output
        if output is not None:
            output = replace(output, rows=output.rows + rows)
        return replace(self, output=output, rows=self.rows + rows)


def _is_small(rows: int) -> bool:
    return rows <= SMALL_STEP_ROWS


def _results(futures: Sequence[Future[_T | None]]) -> list[_T]:
    """What the futures gave, without the Nones."""
    return [result for future in futures if (result := future.result()) is not None]
