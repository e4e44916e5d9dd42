"""The assembly of sliding windows: slices are read and folded, windows are answered with numpy.

The rows of windows whose aggregates numpy cannot finish are written to files, and Spark aggregates
them as those of any other aggregation.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.engine.running.row_hashes import KeptGroups
from gscope.engine.spark.sql import aggregation, slices
from gscope.engine.spark.sql.inputs import Sources
from gscope.engine.spark.tasks.columns import TaskRows, columns_of, flat, is_column, is_computable
from gscope.engine.spark.tasks.released_rows import UNKNOWN, released_condition
from gscope.engine.spark.tasks.state_runner import FoldResult, StateRunner
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS, read_files
from gscope.engine.spark.tasks.window_answers import (
    AnswerPlan,
    WindowAnswers,
    stored_type,
    window_schema,
)
from gscope.engine.storage.parquet_files import FileWriter, State, WrittenFile, part_name
from gscope.engine.storage.payload_counts import payload_counts
from gscope.engine.windows.assembly import Assembly
from gscope.engine.windows.pieces import NUMBER
from gscope.engine.windows.saved import WindowStates
from gscope.engine.windows.timeline import Timeline
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import SLICE, WINDOW_END
from gscope.queries.streams.messages import Extent
from gscope.queries.streams.texts import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.spark import Spark
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.spark.tasks.here import TasksHere
    from gscope.engine.windows.assembly import WindowEnd
    from gscope.engine.windows.saved import SavedWindow
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Partial

_LIVE = "live.arrow"


class WindowRunner(StateRunner):
    """The assembly of the windows of one program."""

    def __init__(
        self,
        spark: Spark,
        here: TasksHere,
        sql: Callable[[str], DataFrame],
        inputs: InputViews,
        carry_folder: Path,
    ) -> None:
        super().__init__(spark, here, sql, inputs, carry_folder)
        self._plans: dict[str, tuple[WindowNode, AnswerPlan]] = {}
        self._states: dict[str, WindowStates] = {}

    def run(
        self, work: Work, step: int, answers: Path | None = None, *, is_small: bool
    ) -> FoldResult:
        """Answer the windows of ``work``.

        Args:
            work: the work of a ``WindowNode`` that has slices.
            step: the number of the step.
            answers: a folder to create for Parquet files with the node's rows; None if they are
                only read in the same step. It stays uncreated if Spark must finish the answers,
                which then are the frame of the result.
            is_small: whether Spark reads with one task.
        """
        node = work.node
        assert isinstance(node, WindowNode)
        plan = self._plan(node)
        name = self._name(work, step)
        is_finished = plan.merge is not None
        folder = self._carry / f"{name}-rows"
        if answers is not None and is_finished:
            folder = answers
        folder.mkdir()
        temporal = [column.name for column in node.schema.temporal] if is_finished else []
        writer = FileWriter(folder, part_name(0, "driver"), temporal)
        state, left_out = self._assemble(
            work, plan, f"{name}-state", step, writer.write, is_small=is_small
        )
        file = writer.close()
        files = () if file is None else (file,)
        if not is_finished:
            frame = self._finished(plan, folder, files)
            return FoldResult(files, state, frame, left_out=left_out)
        if answers is None:
            frame = self._frame(node.schema, folder, files)
            return FoldResult(files, state, frame, left_out=left_out)
        if not files:
            folder.rmdir()
        return FoldResult(files, state, left_out=left_out)

    def finishes(self, node: WindowNode) -> bool:
        """Return whether answers are finished without Spark."""
        return self._plan(node).merge is not None

    def _plan(self, node: WindowNode) -> AnswerPlan:
        known = self._plans.get(node.query)
        if known is not None and known[0] is node:
            return known[1]
        # The rates of a sample are constants of a node, which change from step to step.
        plan = AnswerPlan.of(node)
        self._plans[node.query] = node, plan
        if known is None:
            self._states[node.query] = WindowStates(self._carry, plan.layout)
        return plan

    def _assemble(
        self,
        work: Work,
        plan: AnswerPlan,
        folder: str,
        step: int,
        write: Callable[[pa.Table], None],
        *,
        is_small: bool,
    ) -> tuple[State | None, int]:
        """Answer the windows of ``work``.

        Returns:
            What the next step needs, and the number of groups left out of windows.
        """
        node, before = plan.node, None
        assert node.slices is not None
        states = self._states[node.query]
        if work.state is None:
            states.forget()
        else:
            place = f"{work.state.path}/{work.state.files[0]}"
            before = states.read(place, work.state.live_rows)
        (self._carry / folder).mkdir()
        rows = self._slices(work, plan, is_small=is_small)
        assembly = Assembly(
            Timeline(node.window, node.slices.slicing),
            plan.layout,
            plan.key_names,
            rows,
            before,
            states.opened,
            f"{folder}/",
            plan.counted,
        )
        answers = WindowAnswers(plan, write)
        trim = work.group_trim
        kept = None if trim is None else KeptGroups(trim, assembly.keys)
        left_out = 0

        def answer(end: WindowEnd) -> None:
            nonlocal left_out
            epoch = node.edge(WINDOW_END, end.window)
            if kept is not None and not kept.is_whole(epoch):
                above = kept.left_out(epoch, end.places)
                if above is not None:
                    left_out += int(np.count_nonzero(above))
                    end = end.take(np.flatnonzero(~above))
            if len(end.places):
                answers.add(end, assembly.keys)

        saved = assembly.run(work.high, answer)
        answers.flush(assembly.keys)
        self.counts += answers.counts
        if saved is None:
            states.forget()
            shutil.rmtree(self._carry / folder)
            return None, left_out
        size = states.write(f"{folder}/{_LIVE}", saved)
        return _state(node.query, step, folder, saved, size), left_out

    def _slices(self, work: Work, plan: AnswerPlan, *, is_small: bool) -> pa.Table:
        """Return a row for each slice and group that ``work`` reads, or several."""
        node = plan.node
        (taken,) = work.inputs
        if not taken.reads_rows:
            return _no_rows(plan)
        within = released_condition(work, taken)
        is_logged = self._inputs.reads_segments(work) and taken.rows <= MAX_TASK_ROWS
        if is_logged and within is not UNKNOWN and is_readable(plan):
            files = self._inputs.paths(batch for _, batch in taken.batches)
            return self._read(plan, files, within)
        source = Sources((self._inputs.released(work, 0, is_small=is_small),))
        table = self._sql(slices.lower(node, source)).toArrow()
        return table.cast(_no_rows(plan).schema)

    def _read(self, plan: AnswerPlan, files: Sequence[str], within: Expression | None) -> pa.Table:
        """Return the rows in segments of the log, each as a slice of its own."""
        node = plan.node
        assert node.slices is not None
        terms = [node.slices.number, *(key.expression for key in node.slices.keys)]
        arguments = [p.argument for p in plan.layout.partials if p.argument is not None]
        needed = columns_of(within, node.predicate, *terms, *arguments)
        rows = TaskRows.of_table(read_files(files, needed)).where(within).where(node.predicate)
        columns = {
            NUMBER: rows.column(node.slices.number),
            **{key.name: rows.column(key.expression) for key in node.slices.keys},
        }
        for key in node.slices.keys:
            if key.expression.type is GsqlType.STRING:
                columns[key.name] = as_text(columns[key.name])
        for partial in plan.layout.partials:
            columns[partial.name] = _value(partial, rows, is_merged=node.slices.is_merged)
        self.counts += payload_counts(rows.outcomes)
        made = pa.table({name: flat(column) for name, column in columns.items()})
        if node.slices.number.is_nullable:
            made = made.filter(made[NUMBER].is_valid())
        return made.cast(_no_rows(plan).schema)

    def _finished(self, plan: AnswerPlan, folder: Path, files: Sequence[WrittenFile]) -> DataFrame:
        """Return the answers that Spark makes of the rows of windows."""
        node = plan.node
        view = f"window_{self._inputs.view(node.query)}"
        schema = window_schema(node)
        self._frame(schema, folder, files).createOrReplaceTempView(view)
        return self._sql(aggregation.lower(node.aggregation, Sources((view,))))


def is_readable(plan: AnswerPlan) -> bool:
    """Return whether slices are made of the log's segments without Spark."""
    slices = plan.node.slices
    assert slices is not None
    keys = [key.expression for key in slices.keys]
    arguments = [p.argument for p in plan.layout.partials if p.argument is not None]
    predicate = plan.node.predicate
    return (
        all(map(is_column, [*keys, *arguments]))
        and is_computable(slices.number)
        and (predicate is None or is_computable(predicate))
    )


def _value(partial: Partial, rows: TaskRows, *, is_merged: bool) -> pa.Array | pa.ChunkedArray:
    """Return a partial of each row alone."""
    if partial.argument is None:
        return pa.array(np.ones(rows.count, np.int64))
    column = rows.column(partial.argument)
    if partial.op is PartialOp.COUNT and not is_merged:
        return flat(column).is_valid().cast(pa.int64())
    return column


def _no_rows(plan: AnswerPlan) -> pa.Table:
    """Return the table of slices without a row."""
    slices = plan.node.slices
    assert slices is not None
    kinds = {NUMBER: pa.int64()}
    kinds |= {key.name: stored_type(key.expression.type) for key in slices.keys}
    kinds |= {each.name: stored_type(each.type) for each in plan.layout.partials}
    return pa.schema(kinds.items()).empty_table()


def _state(query: str, step: int, folder: str, saved: SavedWindow, size: int) -> State:
    """Return the description of what a step left."""
    least, greatest = saved.span
    extent = Extent(SLICE, least, greatest)
    kept = tuple(
        WrittenFile(file.name, file.rows, file.size_bytes, (Extent(SLICE, least, file.last),))
        for file in saved.files
    )
    rows = len(saved.ids) + sum(file.rows for file in kept)
    size += sum(file.size_bytes for file in kept)
    return State(query, step, folder, rows, size, (extent,), files=(_LIVE,), kept=kept)
