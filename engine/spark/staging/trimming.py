"""Trimming: segments without the rows above the thresholds of their epochs (data plane).

A step that reads epochs in which a threshold fell reads copies of its segments. So everything after
this, SQL and tasks alike, works on the same plans as ever; and a step without such epochs, which is
every step while nothing is overloaded, costs nothing.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.running.vectors import compute, from_arrow
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.sampling_hash import NULL_WORD, address_words, hash_words

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.operators.base import Work
    from gscope.engine.running.vectors import Vector
    from gscope.engine.steps.steps import Step
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.engine.watermarks.trim import ThresholdRange, Trim
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.sampling_hash import HashKey
    from gscope.queries.streams.messages import Batch


class Trimming:
    """Makes the copies that steps read.

    Args:
        log_folder: the folder to which the paths of segments are relative.
        folder: where copies are written; the next commit deletes them.
    """

    def __init__(self, log_folder: Path, folder: Path) -> None:
        self._log_folder = log_folder
        self._folder = folder

    def applied(self, step: Step) -> tuple[Step, dict[str, int]]:
        """Return ``step`` with the copies that it reads, and the rows left out, by query."""
        if all(taken.trim is None for work in step.works for taken in work.inputs):
            return step, {}
        counts: dict[str, int] = {}
        works = []
        for number, work in enumerate(step.works):
            inputs = []
            for side, taken in enumerate(work.inputs):
                if taken.trim is None:
                    inputs.append(taken)
                    continue
                name = f"trimmed-{step.number:012d}-{number}-{side}"
                copied, rows = self._copied(work, taken, taken.trim, name)
                inputs.append(copied)
                counts[work.node.query] = counts.get(work.node.query, 0) + rows
            works.append(replace(work, inputs=tuple(inputs)))
        return replace(step, works=tuple(works)), counts

    def _copied(
        self, work: Work, taken: ReleasedInput, trim: Trim, name: str
    ) -> tuple[ReleasedInput, int]:
        copies: dict[tuple[str, int], Batch] = {}
        trimmed = 0
        low, high = work.low + taken.epoch_range.first, work.high + taken.epoch_range.last
        for number, (port, batch) in enumerate(taken.batches):
            table = pq.read_table(self._log_folder / batch.path)
            epochs = _numbers(_computed(trim.epoch, table))
            kept = hashes(table, trim.terms, trim.key) <= _limits(epochs, trim.ranges)
            if kept.all():
                continue
            trimmed += int(np.count_nonzero(~kept & _inside(epochs, low, high)))
            path = self._folder / f"{name}-{number}.parquet"
            table = table.filter(pa.array(kept))
            pq.write_table(table, path, compression="NONE")
            copies[port, batch.sequence] = replace(
                batch,
                path=str(path.absolute()),
                rows=table.num_rows,
                size_bytes=path.stat().st_size,
            )

        def copy(each: tuple[str, Batch]) -> tuple[str, Batch]:
            port, batch = each
            return port, copies.get((port, batch.sequence), batch)

        read = replace(
            taken,
            batches=tuple(map(copy, taken.batches)),
            partially_read=tuple(map(copy, taken.partially_read)),
            late_below=tuple((copy(each), below) for each, below in taken.late_below),
        )
        return read, trimmed


def hashes(table: pa.Table, terms: Sequence[Expression], key: HashKey) -> NDArray[np.uint64]:
    """Return the hash of each row of a segment."""
    return hash_words([_words(term, table, key) for term in terms], key)


def _words(term: Expression, table: pa.Table, key: HashKey) -> NDArray[np.uint64]:
    """Return the word of a term in each row, as ``sampling_hash`` defines it."""
    if isinstance(term, Column) and term.type is GsqlType.IP:
        column = table[term.name].combine_chunks()
        valid = column.is_valid().to_numpy(zero_copy_only=False)
        texts = column.fill_null(bytes(16)).cast(pa.binary(16))
        words = np.frombuffer(texts.buffers()[1], ">u8", 2 * len(texts), 16 * texts.offset)
        halves = words.reshape(-1, 2).astype(np.uint64)
    else:
        vector = _computed(term, table)
        valid = vector.valid
        if term.type is not GsqlType.IP:
            words = _numbers(vector).view(np.uint64)
            return np.where(valid, words, np.uint64(NULL_WORD))
        pairs = [divmod(int(value or 0), 1 << 64) for value in vector.values.tolist()]
        halves = np.array(pairs, np.uint64).reshape(-1, 2)
    words = address_words(halves[:, 0], halves[:, 1], key)
    return np.where(valid, words, np.uint64(NULL_WORD))


def _computed(expression: Expression, table: pa.Table) -> Vector:
    kinds = {part.name: part.type for part in walk(expression) if isinstance(part, Column)}
    columns = {name: from_arrow(table[name], kind) for name, kind in kinds.items()}
    return compute(expression, columns.__getitem__, table.num_rows)


def _numbers(vector: Vector) -> NDArray[np.int64]:
    return np.ascontiguousarray(vector.values.astype(np.int64))


def _limits(epochs: NDArray[np.int64], ranges: Iterable[ThresholdRange]) -> NDArray[np.uint64]:
    """Return the threshold of each row, given its epoch."""
    limits = np.zeros(len(epochs), np.uint64)
    for each in ranges:
        limits[_inside(epochs, each.first, each.end)] = each.threshold
    return limits


def _inside(epochs: NDArray[np.int64], first: float, end: float) -> NDArray[np.bool_]:
    inside = np.ones(len(epochs), np.bool_)
    if math.isfinite(first):
        inside &= epochs >= math.ceil(first)
    if math.isfinite(end):
        inside &= epochs < math.ceil(end)
    return inside
