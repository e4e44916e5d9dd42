"""The fold of running aggregations: Spark reduces each epoch, Arrow and numpy fold over time.

The driver folds a small step itself; Spark's tasks fold a large one, each the groups with one hash
value of their keys, which no other task has. Tasks write answers and states themselves.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.running.fold import Epochs, fold
from gscope.engine.running.reduce import part_of, reduce_epochs
from gscope.engine.running.vectors import arrow_type
from gscope.engine.spark.sql import running
from gscope.engine.spark.sql.inputs import Sources
from gscope.engine.spark.staging.frame_files import write_frame
from gscope.engine.spark.tasks.fold_input import fold_input
from gscope.engine.spark.tasks.released_rows import UNKNOWN, released_condition
from gscope.engine.spark.tasks.state_runner import StateRunner, TaskFiles
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, part_name
from gscope.engine.storage.transfer.access import read_parquet
from gscope.queries.catalog.running import DISTINCT_VALUES
from gscope.queries.catalog.user_functions.install import install
from gscope.queries.plan.program import RunningNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.tasks.fold_input import FoldInput
    from gscope.engine.spark.tasks.state_runner import FoldResult, Places, SavedState
    from gscope.engine.watermarks.trim import GroupTrim
    from gscope.queries.catalog.user_functions.files import UserFile


MAX_STATE_ROWS = 1_000_000
"""With more live groups, tasks fold a small step too."""


class FoldRunner(StateRunner):
    """The fold of the running aggregations of one program."""

    def run(
        self, work: Work, step: int, answers: Path | None = None, *, is_small: bool
    ) -> FoldResult:
        """Fold the epochs of ``work``.

        Args:
            work: the work of a ``RunningNode``.
            step: the number of the step.
            answers: as of ``StateRunner``.
            is_small: whether one task is faster than several, because there are few rows.
        """
        node = work.node
        assert isinstance(node, RunningNode)
        epochs = Epochs(work.low, work.high, work.last)

        def tasks(places: Places) -> list[TaskFiles]:
            task = _Task(
                node,
                epochs,
                places.before,
                places.answers,
                places.after,
                self._user_files,
                work.group_trim,
            )
            return self._fold(work, task, places.scratch, is_small=is_small)

        return self._run(work, step, answers, tasks)

    def _fold(self, work: Work, task: _Task, scratch: Path, *, is_small: bool) -> list[TaskFiles]:
        """Run ``task`` here, or for each part of the groups in a task of its own if that pays.

        Rows that tasks cannot read from segments go through Spark, into the folder ``scratch``.
        """
        node = task.node
        found = self._segments(work, node)
        # Each part of the groups would read all segments: not worthwhile for a few threads.
        is_alone = is_small or (found is not None and not self._spark.is_ready)
        if is_alone and (work.state is None or work.state.rows <= MAX_STATE_ROWS):
            with nullcontext() if is_small else self._here.slots.held(work.rows):
                rows, counts = self._reduced(work, node, found)
                return [task.run(0, "driver", rows, None, counts)]
        if found is not None and not found[0].calls_functions:
            tuples, files = found
            return self._attempted(
                range(running.TASKS),
                lambda part, attempt: task.run_segments(part, attempt, tuples, files),
            )
        frame = self._sql(self._lowered(work, node, is_small=False))
        written = write_frame(frame, scratch, (), partition_by="kb")
        parts = [
            (part, [str(scratch / r.name) for r in written if r.name.startswith(f"kb={part}/")])
            for part in range(running.TASKS)
        ]
        return self._attempted(
            parts, lambda part, attempt: task.run_rows(part[0], attempt, part[1])
        )

    def _reduced(
        self, work: Work, node: RunningNode, found: tuple[FoldInput, list[str]] | None
    ) -> tuple[pa.Table, Counts]:
        """Return a row for each epoch and group, and what was counted.

        Args:
            work: the work.
            node: its node.
            found: what ``_segments`` returned.
        """
        (taken,) = work.inputs
        if not taken.reads_rows:
            return no_rows(node), Counts()
        if found is None:
            return self._sql(self._lowered(work, node, is_small=True)).toArrow(), Counts()
        tuples, files = found
        table, counts = tuples.read(files)
        return reduce_epochs(tuples.node, table, running.TASKS, counts), counts

    def _segments(self, work: Work, node: RunningNode) -> tuple[FoldInput, list[str]] | None:
        """Return the segments of the log that are read without Spark, and what is read of them.

        Return None if Spark must read.
        """
        (taken,) = work.inputs
        is_plain = taken.rows <= MAX_TASK_ROWS and self._inputs.reads_segments(work)
        within = released_condition(work, taken)
        if not (is_plain and taken.batches) or within is UNKNOWN:
            return None
        tuples = fold_input(node)
        if tuples is None:
            return None
        files = self._inputs.paths(batch for _, batch in taken.batches)
        return replace(tuples, within=within), files

    def _lowered(self, work: Work, node: RunningNode, *, is_small: bool) -> str:
        return running.lower(node, Sources((self._inputs.released(work, 0, is_small=is_small),)))


def no_rows(node: RunningNode) -> pa.Table:
    """Return the table that Spark would give the fold without any tuple."""
    kinds: dict[str, pa.DataType] = {"e": pa.int64(), "kb": pa.int32()}
    others = [key for key in node.keys if key.name != node.epoch]
    kinds |= {f"k{n}": arrow_type(key.expression.type) for n, key in enumerate(others)}
    for number, aggregate in enumerate(node.aggregates):
        kind = arrow_type(aggregate.type)
        kinds[f"a{number}"] = pa.list_(kind) if aggregate.function == DISTINCT_VALUES else kind
    return pa.schema(kinds.items()).empty_table()


@dataclass(frozen=True, slots=True)
class _Task:
    """The part of a fold that one task does; it is sent to Spark's workers."""

    node: RunningNode
    epochs: Epochs
    before: SavedState | None
    answers: Path
    after: Path
    user_files: tuple[UserFile, ...]
    trim: GroupTrim | None

    def run(
        self, number: int, attempt: str, rows: pa.Table, part: int | None, counts: Counts
    ) -> TaskFiles:
        """Fold ``rows`` into the state of a ``part`` of the groups; None stands for all groups.

        ``number`` and ``attempt`` name the files that are written; ``counts`` are those of
        ``rows``.
        """
        chosen = None if part is None else [("kb", "=", part)]
        state = None if self.before is None else self.before.read(chosen)
        name = part_name(number, attempt)
        temporal = [column.name for column in self.node.schema.temporal]
        answers = FileWriter(self.answers, name, temporal)
        after, left_out = fold(
            self.node, rows, state, self.epochs, answers.write, counts, self.trim
        )
        groups = FileWriter(self.after, name)
        if after.num_rows:
            groups.write(after)
        return TaskFiles(answers.close(), groups.close(), counts, left_out)

    def run_segments(
        self, part: int, attempt: str, tuples: FoldInput, files: Sequence[str]
    ) -> TaskFiles:
        """Merge and fold a ``part`` of the groups in segments of the log."""
        table, _ = tuples.read(files)
        chosen = part_of(tuples.node, table, running.TASKS, part)
        counts = Counts()
        rows = reduce_epochs(tuples.node, chosen, running.TASKS, counts)
        return self.run(part, attempt, rows, part, counts)

    def run_rows(self, part: int, attempt: str, files: Sequence[str]) -> TaskFiles:
        """Fold the rows that Spark wrote for a ``part`` of the groups."""
        install(self.user_files)
        tables = [read_parquet(file) for file in files]
        rows = (
            pa.concat_tables(tables, promote_options="permissive")
            if tables
            else no_rows(self.node).drop_columns("kb")
        )
        task = pa.array([part] * rows.num_rows, pa.int32())
        return self.run(part, attempt, rows.append_column("kb", task), part, Counts())
