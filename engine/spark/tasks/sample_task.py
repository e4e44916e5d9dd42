"""Sampling operators in steps: the driver folds small steps, Spark's tasks fold large ones.

Each task folds the supergroups of one hash value of their keys, which no other task has; an
operator without SUPERGROUP is one task. Tasks write answers and states themselves.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.running.groups import number_groups
from gscope.engine.sampling.fold import fold_parts, windows_of
from gscope.engine.sampling.random_numbers import key_hashes
from gscope.engine.sampling.tuples import (
    Segment,
    in_order,
    is_divisible,
    read_parts,
    read_tuples,
)
from gscope.engine.sampling.values import SampleRows
from gscope.engine.spark.sql import sample
from gscope.engine.spark.sql.inputs import Sources, portions
from gscope.engine.spark.staging.frame_files import write_frame
from gscope.engine.spark.tasks.state_runner import StateRunner, TaskFiles
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, part_name
from gscope.engine.storage.payload_counts import payload_counts
from gscope.engine.watermarks.bounds import ENDED
from gscope.errors import EngineError
from gscope.queries.catalog.user_functions.install import install
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.operators.base import Work
    from gscope.engine.spark.tasks.state_runner import FoldResult, Places, SavedState
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.streams.messages import Batch

TASKS = 4
"""The number of parts into which supergroups are dealt."""

MAX_TUPLES = 20_000_000
"""The most tuples of one window where a task must hold all of them in memory."""


class SampleRunner(StateRunner):
    """The sampling operators of one program."""

    def run(
        self, work: Work, step: int, answers: Path | None = None, *, is_small: bool
    ) -> FoldResult:
        """Sample the windows of ``work``.

        Args:
            work: the work of a ``SampleNode``.
            step: the number of the step.
            answers: as of ``StateRunner``.
            is_small: whether one task is faster than several, because there are few rows.
        """
        node = work.node
        assert isinstance(node, SampleNode)

        def tasks(places: Places) -> list[TaskFiles]:
            task = SampleTask(node, places.before, places.answers, places.after, self._user_files)
            return self._fold(work, task, places.scratch, is_small=is_small)

        result = self._run(work, step, answers, tasks)
        return replace(result, state=None) if work.high == ENDED else result

    def _fold(
        self, work: Work, task: SampleTask, scratch: Path, *, is_small: bool
    ) -> list[TaskFiles]:
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
                return [task.run(0, "driver", [in_order(node, frame.toArrow())])]
            files = write_frame(frame, scratch, ())
            segments = [Segment(str(scratch / file.name)) for file in files]
        _check_memory(node, segments)
        return self._attempted(
            range(parts),
            lambda part, attempt: task.run_part(part, parts, attempt, segments),
        )

    def _segments(self, work: Work, node: SampleNode) -> list[Segment]:
        """Return the segments of the log that ``work`` reads.

        They are ordered by stream, then as they were written.
        """
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
            f"a window of {node.query} has {tuples:,} tuples, expected at most {MAX_TUPLES:,} where"
            " the sampling operator reads another query, or folds addresses or texts; group by a"
            " shorter window, or test more in WHERE"
        )
        raise EngineError(message)


@dataclass(frozen=True, slots=True)
class SampleTask:
    """The part of a fold that one task does; it is sent to Spark's workers.

    Attributes:
        node: the operator.
        before: the states that the step before left; None if it left none.
        answers: the folder of answers.
        after: the folder of states.
        user_files: the user code that a worker installs first.
    """

    node: SampleNode
    before: SavedState | None
    answers: Path
    after: Path
    user_files: tuple[UserFile, ...]

    def run(
        self, number: int, attempt: str, rows: Iterable[SampleRows], parts: int = 1
    ) -> TaskFiles:
        """Fold the supergroups of part ``number`` of ``parts``, given all tuples of the step.

        ``rows`` are the tuples in order, some at a time.
        """
        name = part_name(number, attempt)
        temporal = [column.name for column in self.node.schema.temporal]
        answers = FileWriter(self.answers, name, temporal)
        before = None if self.before is None else self.before.read()
        if before is not None and parts > 1:
            keys = before.select([n for n in before.column_names if n.startswith("k")])
            before = before.filter(pa.array(parts_of(keys, parts) == number))
        payloads = Counts()

        def chosen() -> Iterator[tuple[SampleRows, NDArray[np.int64]]]:
            nonlocal payloads
            for each in rows:
                payloads += payload_counts(each.outcomes)
                yield _part(each, number, parts), windows_of(each)

        folded = fold_parts(self.node, chosen(), before, answers.write)
        states = FileWriter(self.after, name)
        if folded.states is not None and folded.states.num_rows:
            states.write(folded.states)
        # Every part has read all payloads.
        counts = payloads if number == 0 else Counts()
        counts.add_crowded_out(self.node.query, folded.left_out)
        counts.add_wrapped_sums(self.node.query, folded.wrapped)
        return TaskFiles(answers.close(), states.close(), counts)

    def run_part(
        self, part: int, parts: int, attempt: str, segments: Sequence[Segment]
    ) -> TaskFiles:
        """Fold a part of the supergroups in ``segments``, which hold all tuples of the step."""
        install(self.user_files)
        return self.run(part, attempt, read_parts(self.node, segments), parts)


def _part(rows: SampleRows, number: int, parts: int) -> SampleRows:
    """Return the tuples of the supergroups of a part."""
    if parts == 1:
        return rows
    chosen = parts_of(rows.supergroup_keys(), parts) == number
    return SampleRows(rows.node, rows.table.filter(pa.array(chosen)))


def parts_of(keys: pa.Table, parts: int) -> NDArray[np.int64]:
    """Return the part to which each row of keys belongs: equal keys belong to the same."""
    places, count = number_groups(keys.columns, keys.num_rows)
    first = np.zeros(count, np.int64)
    first[places[::-1]] = np.arange(len(places))[::-1]
    hashed = key_hashes(keys.take(pa.array(first)), "part|")
    return (hashed % np.uint64(parts)).astype(np.int64)[places]
