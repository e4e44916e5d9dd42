"""Trimming: files without the rows above the thresholds of their epochs (data plane).

A step that reads epochs in which a threshold fell reads copies of its segments. So everything after
this, SQL and tasks alike, works on the same plans as ever; and a step without such epochs, which is
every step while nothing is overloaded, costs nothing. Rows that another query gives in the same
step, and that its reader has to trim, are written to a file for it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.running.vectors import compute, from_arrow
from gscope.engine.storage.parquet_files import FileWriter
from gscope.engine.watermarks.bounds import ENDED
from gscope.engine.watermarks.ports import batch_span
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.plan.partitioning.row_hashes import row_hashes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.operators.base import Work
    from gscope.engine.running.vectors import Vector
    from gscope.engine.steps.steps import Step
    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.engine.watermarks.trim import Trim
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.streams.messages import Batch

_LAST = (1 << 63) - 1


class Trimming:
    """Makes the copies that steps read.

    Args:
        log_folder: the folder to which the paths of segments are relative.
        folder: the folder of carried rows; copies are written there, and deleted by the next
            commit.
    """

    def __init__(self, log_folder: Path, folder: Path) -> None:
        self._log_folder = log_folder
        self._folder = folder

    def applied(self, step: Step) -> tuple[Step, dict[str, int]]:
        """Return ``step`` with the copies that it reads, and the rows left out, by query.

        What is left out of the rows of other queries in the same step is known only once they are
        there: such a side keeps its ``trim``; see ``of_queries``.
        """
        if all(taken.trim is None for work in step.works for taken in work.inputs):
            return step, {}
        counts: dict[str, int] = {}
        works = []
        for number, work in enumerate(step.works):
            trimmed, rows = self._applied(work, f"trimmed-{step.number:012d}-{number}")
            works.append(trimmed)
            if rows:
                counts[work.node.query] = rows
        return replace(step, works=tuple(works)), counts

    def of_queries(
        self, work: Work, step: int, written: Callable[[str, int], Batch | None]
    ) -> tuple[Work, int]:
        """Return ``work`` with files in place of rows of this step, and how many were left out.

        Args:
            work: the work of an operator.
            step: the number of the step.
            written: writes the rows of a query, for a side, to a file among the carried rows; None
                if there are none.
        """
        inputs = list(work.inputs)
        for side, taken in enumerate(work.inputs):
            if taken.trim is None:
                continue
            found = [(query, written(query, side)) for query in taken.upstream]
            files = tuple((query, batch) for query, batch in found if batch is not None)
            in_time = work.low + taken.epoch_range.last
            late = tuple((each, in_time) for each in files if each[0] in taken.overdue)
            inputs[side] = replace(
                taken,
                batches=(*taken.batches, *files),
                late_below=(*taken.late_below, *late),
                straddles=taken.straddles or bool(late) or bool(taken.carries),
                upstream=(),
            )
        read = replace(work, inputs=tuple(inputs))
        return self._applied(read, f"trimmed-{step:012d}-{work.node.query}-queries")

    def _applied(self, work: Work, name: str) -> tuple[Work, int]:
        inputs, total = [], 0
        for side, taken in enumerate(work.inputs):
            if taken.trim is None or taken.upstream:
                inputs.append(taken)
                continue
            copied, rows = self._copied(work, taken, taken.trim, f"{name}-{side}")
            inputs.append(replace(copied, trim=None))
            total += rows
        return replace(work, inputs=tuple(inputs)), total

    def _copied(
        self, work: Work, taken: ReleasedInput, trim: Trim, name: str
    ) -> tuple[ReleasedInput, int]:
        """Return a side that reads copies of the files with rows to leave out."""
        copies: dict[tuple[str, int], Batch] = {}
        total = 0
        for number, (port, batch) in enumerate(taken.batches):
            if (port, batch.sequence) in copies or not _may_cut(trim, batch):
                continue
            folder = self._log_folder if trim.is_logged else self._folder
            made = self._copy(folder / batch.path, trim, (work.low, work.high), f"{name}-{number}")
            if made is None:
                continue
            file, rows = made
            copies[port, batch.sequence] = replace(
                batch, path=file.name, rows=file.rows, size_bytes=file.size_bytes, row_groups=()
            )
            total += rows

        def copy(each: tuple[str, Batch]) -> tuple[str, Batch]:
            port, batch = each
            return port, copies.get((port, batch.sequence), batch)

        read = replace(
            taken,
            batches=tuple(map(copy, taken.batches)),
            partially_read=tuple(map(copy, taken.partially_read)),
            late_below=tuple((copy(each), below) for each, below in taken.late_below),
        )
        return read, total

    def _copy(
        self, path: Path, trim: Trim, epochs: tuple[Bound, Bound], name: str
    ) -> tuple[WrittenFile, int] | None:
        """Copy a file without the rows to leave out, row group by row group.

        Returns:
            The copy, under an absolute path, and the number of rows left out; None if that is 0.
        """
        with pq.ParquetFile(path) as file:
            groups = range(file.num_row_groups)
            names = _columns((trim.epoch, *trim.terms))
            cut = [_cut(file.read_row_group(g, columns=names), trim, epochs) for g in groups]
            rows = sum(int(np.count_nonzero(each)) for each in cut)
            if not rows:
                return None
            writer = FileWriter(self._folder, f"{name}.parquet")
            for group, left_out in zip(groups, cut, strict=True):
                writer.write(file.read_row_group(group).filter(pa.array(~left_out)))
        written = writer.close()
        assert written is not None, path
        return replace(written, name=str((self._folder / written.name).absolute())), rows


def _may_cut(trim: Trim, batch: Batch) -> bool:
    """Return whether a batch may have rows of epochs of which some are left out."""
    least, greatest = batch_span(batch, trim.epoch)
    cut = (each for each in trim.ranges if not each.is_whole)
    return any(each.first <= greatest and least < each.end for each in cut)


def _cut(table: pa.Table, trim: Trim, released: tuple[Bound, Bound]) -> NDArray[np.bool_]:
    """Return which rows are left out: only rows of epochs that the step answers."""
    low, high = (max(-_LAST - 1, min(bound, _LAST)) for bound in released)
    epochs = _numbers(_computed(trim.epoch, table))
    begins = np.array([int(each.first) for each in trim.ranges[1:]], np.int64)
    places = np.searchsorted(begins, epochs, side="right")
    limits = np.array([each.threshold for each in trim.ranges], np.uint64)[places]
    ceilings = np.array([each.ceiling for each in trim.ranges], np.uint64)[places]
    doubtful: NDArray[np.bool_] = (limits < ceilings) & (epochs >= low)
    if released[1] != ENDED:
        doubtful &= epochs < high
    if doubtful.any():
        doubtful &= row_hashes(table, trim.terms, trim.key) > limits
    return doubtful


def _computed(expression: Expression, table: pa.Table) -> Vector:
    kinds = {part.name: part.type for part in walk(expression) if isinstance(part, Column)}
    columns = {name: from_arrow(table[name], kind) for name, kind in kinds.items()}
    return compute(expression, columns.__getitem__, table.num_rows)


def _columns(expressions: Sequence[Expression]) -> list[str]:
    """Return the names of the columns that some expressions read."""
    parts = (part for expression in expressions for part in walk(expression))
    return list(dict.fromkeys(part.name for part in parts if isinstance(part, Column)))


def _numbers(vector: Vector) -> NDArray[np.int64]:
    return np.ascontiguousarray(vector.values.astype(np.int64))
