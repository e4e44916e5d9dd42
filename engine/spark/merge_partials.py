"""Merging partial aggregates with Arrow's kernels inside Spark's tasks.

The final half of a flow-like aggregation over an LFTA is a plain merge: group by the same keys, add up.
Whether a step has a few partial tuples or hundreds of thousands, a fresh JVM spends most of its time
warming up for that; Arrow's compiled kernels need none. Each task takes all segments of some epochs,
which no other task has, and writes the answer itself: no exchange, and no row crosses into Java.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Column

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import AggregationNode
    from gscope.queries.streams.messages import Batch

MAX_TASK_ROWS = 4_000_000
"""Rows one task holds in memory; Spark's own aggregation, which spills, takes more."""

_TASK_ROWS = 100_000
"""A task merges about so many rows if its epochs have fewer: starting more would cost more than it gains."""

_FOLDS = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_INTEGERS = (GsqlType.INT, GsqlType.TIMESTAMP, GsqlType.MAC)


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """A final aggregation that is a plain merge.

    Attributes:
        keys: columns of the input to group by.
        folds: (input column, Arrow's fold) of each aggregate.
        outputs: (name, what it is a copy of: a key or ``column_fold``) of each output column.
    """

    keys: tuple[str, ...]
    folds: tuple[tuple[str, str], ...]
    outputs: tuple[tuple[str, str], ...]


def plain_merge(node: AggregationNode) -> PartialMerge | None:
    """``node`` as a plain merge, None if it is more than that.

    It is one when keys and outputs are columns as they stand, nothing is filtered, and every
    aggregate adds or compares integers.
    """
    if node.having is not None or node.predicate is not None or not node.aggregates:
        return None
    made: dict[str, str] = {}
    for key in node.keys:
        if not isinstance(key.expression, Column):
            return None
        made[key.name] = key.expression.name
    folds = []
    for aggregate in node.aggregates:
        fold = _FOLDS.get(aggregate.function)
        if fold is None or len(aggregate.partials) != 1 or aggregate.type not in _INTEGERS:
            return None
        folds.append((aggregate.partials[0], fold))
        made[aggregate.name] = f"{aggregate.partials[0]}_{fold}"
    outputs = []
    for column in node.columns:
        if not isinstance(column.expression, Column):
            return None
        outputs.append((column.name, made[column.expression.name]))
    keys = tuple(key.expression.name for key in node.keys if isinstance(key.expression, Column))
    return PartialMerge(keys, tuple(dict.fromkeys(folds)), tuple(outputs))


def for_tasks(parts: Iterable[Sequence[Batch]]) -> list[list[Batch]]:
    """Parts that have no epoch in common as those of tasks, still in order: small ones together."""
    tasks: list[list[Batch]] = []
    rows = 0
    for part in parts:
        size = sum(batch.rows for batch in part)
        if tasks and rows + size <= _TASK_ROWS:
            tasks[-1].extend(part)
            rows += size
        else:
            tasks.append(list(part))
            rows = size
    return tasks


def run_merge(
    session: SparkSession, merge: PartialMerge, parts: Sequence[Sequence[str]], folder: Path
) -> int:
    """Merge each part into a Parquet file of ``folder``, in the parts' order; rows written.

    Args:
        session: whose tasks do it, side by side.
        merge: what to do.
        parts: the segment files of each part; no epoch is in two parts.
        folder: made here.
    """
    folder.mkdir()
    tasks = [
        (list(files), str(folder / f"part-{number:05d}.parquet"))
        for number, files in enumerate(parts)
    ]

    def work(task: tuple[list[str], str]) -> int:
        return merge_segments(merge, *task)

    return sum(session.sparkContext.parallelize(tasks, len(tasks)).map(work).collect())


def merge_segments(merge: PartialMerge, files: Sequence[str], target: str) -> int:
    """Merge the rows of segment files into the file ``target``; rows written."""
    columns = list(dict.fromkeys([*merge.keys, *(column for column, _ in merge.folds)]))
    tables = [pq.read_table(file, columns=columns, use_threads=False) for file in files]
    options = pc.ScalarAggregateOptions(skip_nulls=True, min_count=1)
    grouped = (
        pa.concat_tables(tables)
        .group_by(list(merge.keys), use_threads=False)
        .aggregate([(column, fold, options) for column, fold in merge.folds])
    )
    answer = pa.table({name: grouped[source] for name, source in merge.outputs})
    pq.write_table(answer, target, compression="none", use_dictionary=False, write_statistics=False)
    return int(answer.num_rows)
