"""Merging partial aggregates with Arrow's kernels inside Spark's tasks.

The final half of most aggregations over an LFTA is a plain merge: group by the same keys, add up, count distinct
values; what is left for HAVING and the columns is arithmetic over few rows. Whether a step has a few partial tuples or hundreds of thousands, a fresh JVM spends most of its time
warming up for that; Arrow's compiled kernels need none. Each task takes all segments of some epochs,
which no other task has, and writes the answer itself: no exchange, and no row crosses into Java.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.engine.running.vectors import VECTORIZED, Vector, compute, from_arrow, to_arrow
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Call, Column, Expression, NamedExpression, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.catalog.schema import Schema
    from gscope.queries.plan.program import Aggregate, AggregationNode
    from gscope.queries.streams.messages import Batch

MAX_TASK_ROWS = 4_000_000
"""Rows one task holds in memory; Spark's own aggregation, which spills, takes more."""

_TASK_ROWS = 100_000
"""A task merges about so many rows if its epochs have fewer: starting more would cost more than it gains."""

_FOLDS = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}
_INTEGERS = (GsqlType.INT, GsqlType.TIMESTAMP, GsqlType.MAC)
_COMPUTED = (*_INTEGERS, GsqlType.BOOL, GsqlType.FLOAT, GsqlType.INTERVAL)
"""Types of what HAVING and columns compute with; others are objects to numpy, and slow."""

_DISTINCT = "#distinct"
_REPEATED = "#repeated"
"""Columns of a merge beside its folds: how many values there are, and how many tuples had one."""


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """A final aggregation that is a plain merge.

    Attributes:
        keys: (name, column of the input) of each group key.
        folds: (column of the input, Arrow's fold) of each value that is merged.
        distinct: the column of the input whose distinct values are counted, if one is.
        counted: the partial count of tuples with a value of ``distinct``, if it is asked for.
        aggregates: (name, function, merged columns) of each aggregate.
        having: over the names of keys and aggregates.
        columns: the output, over the same.
    """

    keys: tuple[tuple[str, str], ...]
    folds: tuple[tuple[str, str], ...]
    distinct: str | None
    counted: str | None
    aggregates: tuple[tuple[str, str, tuple[str, ...]], ...]
    having: Expression | None
    columns: tuple[NamedExpression, ...]


@dataclass(frozen=True, slots=True)
class MergeTask:
    """What one task does: merge the rows of segment files into the file ``target``."""

    merge: PartialMerge
    files: tuple[str, ...]
    target: Path


def plain_merge(node: AggregationNode, schema: Schema) -> PartialMerge | None:
    """``node`` over partial tuples of ``schema`` as a plain merge, None if it is more than that.

    It is one when keys are columns as they stand, every aggregate adds, compares or counts integers, at most one
    column's distinct values are counted, and what is computed of them is no address and no text.
    """
    if node.predicate is not None or not node.aggregates:
        return None
    keys = []
    for key in node.keys:
        if not isinstance(key.expression, Column):
            return None
        keys.append((key.name, key.expression.name))
    parts = [_merged(aggregate, schema) for aggregate in node.aggregates]
    wholes = [part for part in parts if part is not None]
    distinct = {part.distinct for part in wholes} - {None}
    counted = {part.counted for part in wholes} - {None}
    is_simple = len(wholes) == len(parts) and len(distinct) <= 1 and len(counted) <= 1
    is_computable = all(
        isinstance(each, Column) or _is_computable(each)
        for each in (c.expression for c in node.columns)
    ) and (node.having is None or _is_computable(node.having))
    if not is_simple or not is_computable or distinct & {column for _, column in keys}:
        return None
    return PartialMerge(
        tuple(keys),
        tuple(dict.fromkeys(fold for part in wholes for fold in part.folds)),
        next(iter(distinct), None),
        next(iter(counted), None),
        tuple(
            (aggregate.name, aggregate.function, part.sources)
            for aggregate, part in zip(node.aggregates, wholes, strict=True)
        ),
        node.having,
        node.columns,
    )


@dataclass(frozen=True, slots=True)
class _Merged:
    """What one aggregate needs of the merge."""

    sources: tuple[str, ...]
    folds: tuple[tuple[str, str], ...] = ()
    distinct: str | None = None
    counted: str | None = None


def _merged(aggregate: Aggregate, schema: Schema) -> _Merged | None:
    if any(schema[partial].type not in _INTEGERS for partial in aggregate.partials):
        return None
    fold = _FOLDS.get(aggregate.function)
    if fold is not None and len(aggregate.partials) == 1 and aggregate.type in _INTEGERS:
        (partial,) = aggregate.partials
        return _Merged((_fold_name(partial, fold),), ((partial, fold),))
    if aggregate.function == "avg" and not aggregate.arguments:
        folds = tuple((partial, "sum") for partial in aggregate.partials)
        return _Merged(tuple(_fold_name(*each) for each in folds), folds)
    if aggregate.function not in ("count_distinct", "count_dups"):
        return None
    column = aggregate.arguments[0]
    if not isinstance(column, Column) or column.type not in (*_INTEGERS, GsqlType.IP):
        return None
    if aggregate.function == "count_distinct":
        return _Merged((_DISTINCT,), distinct=column.name)
    return _Merged((_REPEATED, _DISTINCT), distinct=column.name, counted=aggregate.partials[0])


def _fold_name(column: str, fold: str) -> str:
    return f"{column}_{fold}"


def _is_computable(expression: Expression) -> bool:
    """Whether numpy computes it as Spark does, and quickly."""
    return all(
        not isinstance(part, Call | Column)
        or (part.type in _COMPUTED and (isinstance(part, Column) or part.function in VECTORIZED))
        for part in walk(expression)
    )


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


def merge_tasks(
    merge: PartialMerge, parts: Sequence[Sequence[str]], folder: Path
) -> list[MergeTask]:
    """The tasks that merge each part into a Parquet file of ``folder``, in the parts' order.

    Args:
        merge: what to do.
        parts: the segment files of each part; no epoch is in two parts.
        folder: made here.
    """
    folder.mkdir()
    return [
        MergeTask(merge, tuple(files), folder / f"part-{number:05d}.parquet")
        for number, files in enumerate(parts)
    ]


def run_merges(session: SparkSession, tasks: Sequence[MergeTask]) -> list[int]:
    """Do ``tasks`` side by side, those of all queries of a step as one Spark job; rows each has written."""
    if not tasks:
        return []
    made: list[int] = (
        session.sparkContext.parallelize(tasks, len(tasks)).map(merge_segments).collect()
    )
    return made


def merge_segments(task: MergeTask) -> int:
    """Do a task; rows written."""
    merge = task.merge
    columns = [column for _, column in merge.keys] + [column for column, _ in merge.folds]
    columns += [name for name in (merge.distinct, merge.counted) if name is not None]
    read = list(dict.fromkeys(columns))
    tables = [pq.read_table(file, columns=read, use_threads=False) for file in task.files]
    answer = _answer(merge, _grouped(merge, pa.concat_tables(tables)))
    pq.write_table(
        answer, task.target, compression="none", use_dictionary=False, write_statistics=False
    )
    return int(answer.num_rows)


def _grouped(merge: PartialMerge, table: pa.Table) -> pa.Table:
    """One row for each group: its keys by their columns' names, and what is merged."""
    keys = list(dict.fromkeys(column for _, column in merge.keys))
    folds = {_fold_name(column, fold): (column, fold) for column, fold in merge.folds}
    if merge.distinct is None:
        return _folded(table, keys, folds)
    # Each value once, however often its group was evicted; then what is left is counting.
    if merge.counted is not None:
        folds[_REPEATED] = (merge.counted, "sum")
    table = _folded(table, [*keys, merge.distinct], folds)
    if merge.counted is not None:
        is_there = table[merge.distinct].is_valid()
        present = pc.if_else(is_there, table[_REPEATED], pa.scalar(None, pa.int64()))
        table = table.set_column(table.column_names.index(_REPEATED), _REPEATED, present)
    again = {name: (name, fold) for name, (_, fold) in folds.items()}
    return _folded(table, keys, {**again, _DISTINCT: (merge.distinct, "count")})


def _folded(table: pa.Table, keys: list[str], folds: dict[str, tuple[str, str]]) -> pa.Table:
    options = {
        "count": pc.CountOptions(mode="only_valid"),
        "sum": pc.ScalarAggregateOptions(skip_nulls=True, min_count=1),
    }
    grouped = table.group_by(keys, use_threads=False).aggregate(
        [
            (column, fold, options.get(fold, options["sum"]))
            for column, fold in dict.fromkeys(folds.values())
        ]
    )
    made = {key: grouped[key] for key in keys}
    for name, (column, fold) in folds.items():
        made[name] = grouped[f"{column}_{fold}"]
    return pa.table(made)


def _answer(merge: PartialMerge, groups: pa.Table) -> pa.Table:
    columns = {name: groups[column] for name, column in merge.keys}
    for name, function, sources in merge.aggregates:
        columns[name] = _FINALS.get(function, _as_it_is)(*(groups[source] for source in sources))
    table = pa.table(columns)
    if merge.having is not None:
        table = table.filter(pa.array(_computed(merge.having, table).is_true()))
    return pa.table(
        {
            column.name: table[column.expression.name]
            if isinstance(column.expression, Column)
            else to_arrow(_computed(column.expression, table), column.expression.type)
            for column in merge.columns
        }
    )


def _computed(expression: Expression, table: pa.Table) -> Vector:
    kinds = {part.name: part.type for part in walk(expression) if isinstance(part, Column)}
    leaves = {name: from_arrow(table[name], kind) for name, kind in kinds.items()}
    return compute(expression, leaves.__getitem__, table.num_rows)


def _as_it_is(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column


def _average(total: pa.ChunkedArray, count: pa.ChunkedArray) -> pa.ChunkedArray:
    # Of nothing there is no total.
    return pc.divide(total.cast(pa.float64(), safe=False), count.cast(pa.float64(), safe=False))


def _duplicates(present: pa.ChunkedArray, distinct: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.fill_null(pc.subtract(present, distinct), 0)


_FINALS = {"avg": _average, "count_dups": _duplicates}
"""What is computed of several merged columns."""
