"""Sampling operators in steps: the driver folds small steps, Spark's tasks fold large ones.

Each task folds the supergroups of one hash value of their keys, which no other task has; an
operator without SUPERGROUP is one task. Tasks write answers and states themselves.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.running.groups import number_groups
from gscope.engine.sampling.fold import fold_parts, windows_of
from gscope.engine.sampling.random_numbers import key_hashes
from gscope.engine.sampling.tuples import (
    Segment,
    is_divisible,
    no_tuples,
    read_parts,
    read_tuples,
)
from gscope.engine.sampling.values import SampleRows
from gscope.engine.sinks.row_order import in_order
from gscope.engine.spark.sql import sample
from gscope.engine.spark.sql.expressions import SPARK_TYPES, quote
from gscope.engine.spark.sql.inputs import Sources, portions
from gscope.engine.spark.staging.frame_files import write_frame
from gscope.engine.spark.tasks.fold_task import FoldResult
from gscope.engine.spark.tasks.task import part_name, run_attempts
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, State, accept
from gscope.engine.watermarks.bounds import ENDED
from gscope.errors import EngineError
from gscope.queries.catalog.user_functions.install import install
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.sql.inputs import InputViews
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.streams.messages import Batch

TASKS = 4
"""The number of parts into which supergroups are dealt."""

MAX_TUPLES = 20_000_000
"""The most tuples of one window where a task must hold all of them in memory."""


class SampleRunner:
    """The sampling operators of one program.

    Args:
        session: the session that runs the tasks.
        sql: returns the rows of a text of Spark SQL.
        inputs: the rows that operators read.
        carry_folder: the folder of states; files there that no commit names are deleted in time.
        user_files: the user code that a worker installs before it folds.

    Attributes:
        counts: the counts of all steps so far.
    """

    def __init__(
        self,
        session: SparkSession,
        sql: Callable[[str], DataFrame],
        inputs: InputViews,
        carry_folder: Path,
        user_files: tuple[UserFile, ...],
    ) -> None:
        self._session = session
        self._sql = sql
        self._inputs = inputs
        self._carry = carry_folder
        self._user_files = user_files
        self.counts = Counts()

    def run(
        self, work: Work, step: int, answers: Path | None = None, *, is_small: bool
    ) -> FoldResult:
        """Sample the windows of ``work``; see ``FoldRunner.run``."""
        node = work.node
        assert isinstance(node, SampleNode)
        name = f"{step:012d}-{self._inputs.view(node.query)}"
        folder = answers or self._carry / f"{name}-answers"
        after = self._carry / f"{name}-state"
        folder.mkdir()
        after.mkdir()
        before: tuple[str, ...] = ()
        if work.state is not None:
            place = self._carry / work.state.path
            before = tuple(str(place / file) for file in work.state.files)
        scratch = self._carry / f"{name}-rows"
        task = SampleTask(node, before, folder, after, self._user_files)
        written = self._fold(work, task, scratch, is_small=is_small)
        shutil.rmtree(scratch, ignore_errors=True)
        for each in written:
            self.counts += each.counts
        answered = tuple(each.answers for each in written if each.answers is not None)
        states = [each.states for each in written if each.states is not None]
        accept(folder, answered)
        accept(after, states)
        state = _state(node.query, step, after.name, states)
        if work.high == ENDED:
            state = None
        if answers is None:
            return FoldResult(answered, state, self._frame(node, folder, answered))
        if not answered:
            folder.rmdir()
        return FoldResult(answered, state)

    def _fold(
        self, work: Work, task: SampleTask, scratch: Path, *, is_small: bool
    ) -> list[_TaskFiles]:
        """Run ``task`` here if the step is small, else for each part of the supergroups."""
        node = task.node
        parts = TASKS if node.sampling.supergroup else 1
        if self._inputs.reads_segments(work):
            segments = self._segments(work, node)
            if is_small:
                return [task.run(0, "driver", [read_tuples(node, segments)])]
        else:
            source = self._inputs.released(work, 0, is_small=is_small)
            frame = self._sql(sample.lower(node, Sources((source,))))
            if is_small:
                return [task.run(0, "driver", [ordered(node, frame.toArrow())])]
            files = write_frame(frame, scratch, ())
            segments = [Segment(str(scratch / file.name)) for file in files]
        _check_memory(node, segments)
        return run_attempts(
            self._session,
            range(parts),
            lambda part, attempt: task.run_part(part, parts, attempt, segments),
        )

    def _segments(self, work: Work, node: SampleNode) -> list[Segment]:
        """Return the segments of the log that ``work`` reads, by stream, then as they were written."""
        (taken,) = work.inputs
        found = []
        for (_, low), batches in portions(work, taken).items():
            paths = self._inputs.paths(batch for _, batch in batches)
            found += [
                (port, batch.sequence, Segment(path, low, work.high, _begins(node, batch)))
                for (port, batch), path in zip(batches, paths, strict=True)
            ]
        found.sort(key=lambda each: each[:2])
        return [segment for *_, segment in found]

    def _frame(self, node: SampleNode, answers: Path, written: Sequence[WrittenFile]) -> DataFrame:
        types = ", ".join(f"{quote(c.name)} {SPARK_TYPES[c.type]}" for c in node.schema.columns)
        files = [str(answers / file.name) for file in written]
        if not files:
            return self._session.createDataFrame([], types)
        return self._session.read.schema(types).parquet(*files)


def _begins(node: SampleNode, batch: Batch) -> int | None:
    """Return the time of the first tuple of a batch; None if the log does not know it."""
    if not isinstance(node.order, Column):
        return None
    name = node.order.name
    return next((extent.least for extent in batch.extents if extent.column == name), None)


def _check_memory(node: SampleNode, segments: Sequence[Segment]) -> None:
    """Refuse a step that no task could hold in memory; it has one window only.

    Raises:
        EngineError: it has too many tuples, and cannot be folded in parts.
    """
    if is_divisible(node) and all(segment.begins is not None for segment in segments):
        return
    tuples = sum(pq.read_metadata(segment.path).num_rows for segment in segments)
    if tuples > MAX_TUPLES:
        message = (
            f"a window of {node.query} has {tuples:,} tuples, expected at most {MAX_TUPLES:,} where the"
            " sampling operator reads another query, or folds addresses or texts; group by a shorter"
            " window, or test more in WHERE"
        )
        raise EngineError(message)


def ordered(node: SampleNode, table: pa.Table) -> SampleRows:
    """Return the rows of another query in the order in which its answer is delivered."""
    table = table.cast(no_tuples(node).schema)
    epoch = SampleRows(node, table).column(node.epoch_expression)
    placed = in_order(table.append_column("$epoch", epoch), ["$epoch"])
    return SampleRows.of(node, placed.drop_columns("$epoch"))


@dataclass(frozen=True, slots=True)
class _TaskFiles:
    """The files of a task, each None if it has no rows, and what the task counted."""

    answers: WrittenFile | None
    states: WrittenFile | None
    counts: Counts


@dataclass(frozen=True, slots=True)
class SampleTask:
    """The part of a fold that one task does; it is sent to Spark's workers.

    Attributes:
        node: the operator.
        before: the files of states that the step before left.
        answers: the folder of answers.
        after: the folder of states.
        user_files: the user code that a worker installs first.
    """

    node: SampleNode
    before: tuple[str, ...]
    answers: Path
    after: Path
    user_files: tuple[UserFile, ...]

    def run(
        self, number: int, attempt: str, rows: Iterable[SampleRows], parts: int = 1
    ) -> _TaskFiles:
        """Fold the supergroups of part ``number`` of ``parts``, given all tuples of the step.

        ``rows`` are the tuples in order, some at a time.
        """
        name = part_name(number, attempt)
        temporal = [column.name for column in self.node.schema.temporal]
        answers = FileWriter(self.answers, name, temporal)
        before = self._states()
        if before is not None and parts > 1:
            keys = before.select([n for n in before.column_names if n.startswith("k")])
            before = before.filter(pa.array(parts_of(keys, parts) == number))
        chosen = ((_part(each, number, parts), windows_of(each)) for each in rows)
        folded = fold_parts(self.node, chosen, before, answers.write)
        states = FileWriter(self.after, name)
        if folded.states is not None and folded.states.num_rows:
            states.write(folded.states)
        counts = Counts()
        counts.add_crowded_out(self.node.query, folded.left_out)
        return _TaskFiles(answers.close(), states.close(), counts)

    def run_part(
        self, part: int, parts: int, attempt: str, segments: Sequence[Segment]
    ) -> _TaskFiles:
        """Fold a part of the supergroups in ``segments``, which hold all tuples of the step."""
        install(self.user_files)
        rows = read_parts(self.node, segments)
        if self.node.order is None:
            rows = (ordered(self.node, each.table) for each in rows)
        return self.run(part, attempt, rows, parts)

    def _states(self) -> pa.Table | None:
        if not self.before:
            return None
        try:
            return pq.read_table(list(self.before), use_threads=False, partitioning=None)
        except (OSError, pa.ArrowException) as error:
            message = (
                f"cannot read the states of a sampling operator: {error}; "
                "executors must share the folder of the job"
            )
            raise EngineError(message) from error


def _part(rows: SampleRows, number: int, parts: int) -> SampleRows:
    """Return the tuples of the supergroups of a part."""
    if parts == 1:
        return rows
    chosen = parts_of(rows.supergroup_keys(), parts) == number
    return SampleRows(rows.node, rows.table.filter(pa.array(chosen)))


def parts_of(keys: pa.Table, parts: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return the part to which each row of keys belongs: equal keys belong to the same."""
    places, count = number_groups(keys.columns, keys.num_rows)
    first = np.zeros(count, np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    hashed = key_hashes(keys.take(pa.array(first)), "part|")
    return (hashed % np.uint64(parts)).astype(np.int64)[places]


def _state(query: str, step: int, path: str, files: Sequence[WrittenFile]) -> State | None:
    rows, size = sum(file.rows for file in files), sum(file.size_bytes for file in files)
    names = tuple(file.name for file in files)
    return State(query, step, path, rows, size, (), names) if rows else None
