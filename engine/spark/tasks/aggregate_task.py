"""Final aggregations with Arrow's kernels inside Spark's tasks.

The final half of most aggregations over an LFTA is a plain merge: group by the same keys, add up,
count distinct values; HAVING and the columns are then arithmetic over few rows. The same holds for
most aggregations of rows, whether an LFTA selected them or another query of the step gives them.
Each task reads all files of some epochs, which no other task reads, and writes the answer itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.spark.tasks.aggregate_parts import (
    DISTINCT,
    LIST,
    REPEATED,
    Fold,
    MergedAggregate,
    MergeParts,
    fold_name,
    merge_parts,
)
from gscope.engine.spark.tasks.columns import (
    TaskRows,
    columns_of,
    flat,
    is_column,
    is_computable,
)
from gscope.engine.spark.tasks.group_folds import BITS, OWN_FOLDS, fold_groups
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.spark.tasks.top_task import FirstRows
from gscope.engine.storage.payload_counts import payload_counts
from gscope.queries.catalog.aggregates import of_no_tuples
from gscope.queries.expressions.expressions import Column, Expression, Literal, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.plan.whole_input import is_global
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.engine.storage.counts import Counts
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import AggregationNode

_AGAIN = {"count": "sum", "count_all": "sum"}
"""The fold of folded values, where it is not the same fold."""

_SAME_AGAIN = frozenset({"sum", "min", "max", *BITS})
"""Folds that fold their own results."""


@dataclass(frozen=True, slots=True)
class PartialMerge:
    """A final aggregation that is a plain merge.

    Attributes:
        query: the name of the node.
        predicate: the condition on rows of the input; None for all rows.
        keys: the keys, over the input.
        folds: the expressions to merge, each with its fold.
        distinct: the expression whose distinct values are counted; None if none are.
        counted: the partial count of tuples with a value of ``distinct``; None if it is not needed.
        aggregates: how each aggregate follows from the merged columns.
        having: the condition on groups, over the names of keys and aggregates.
        columns: the columns of the output, over the same names.
        of_no_rows: the keys and aggregates of the group that exists even without rows; () if no
            such group exists.
        top: the first rows of each epoch, which are kept; None to keep all.
    """

    query: str
    predicate: Expression | None
    keys: tuple[NamedExpression, ...]
    folds: tuple[Fold, ...]
    distinct: Expression | None
    counted: Expression | None
    aggregates: tuple[MergedAggregate, ...]
    having: Expression | None
    columns: tuple[NamedExpression, ...]
    of_no_rows: tuple[NamedExpression, ...] = ()
    top: FirstRows | None = None


@dataclass(frozen=True, slots=True)
class MergeTask:
    """The merge of the rows of some files by one task.

    Attributes:
        merge: the aggregation.
        files: the paths of the files.
        within: the condition that released rows satisfy; None if all rows are released.
    """

    merge: PartialMerge
    files: tuple[str, ...]
    within: Expression | None = None

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the answers; see ``Task``."""
        merge = self.merge
        columns = (*columns_of(self.within), *columns_read(merge))
        rows = TaskRows.of_table(read_files(self.files, columns))
        rows = rows.where(self.within).where(merge.predicate)
        counts = payload_counts(rows.outcomes)
        groups = TaskRows.of_table(merged_groups(merge, rows, counts))
        table, read = answers_of(merge, groups)
        write(table)
        return counts + read


def merged_groups(merge: PartialMerge, rows: TaskRows, counts: Counts) -> pa.Table:
    """Return the keys and aggregates of each group of ``rows``; count sums that exceed 64 bits."""
    return _aggregated(merge, _grouped(merge, rows), counts)


def groups_of_parts(merge: PartialMerge, partials: pa.Table, counts: Counts) -> pa.Table:
    """Return what ``merged_groups`` does, of rows of ``partial_groups`` of parts of the rows."""
    return _aggregated(merge, groups_of_partials(merge, partials), counts)


def columns_read(merge: PartialMerge) -> tuple[Column, ...]:
    """Return the columns that a merge reads."""
    values = [value for value, fold in merge.folds if fold != "count_all"]
    keys = [key.expression for key in merge.keys]
    return tuple(columns_of(merge.predicate, *keys, *values, merge.distinct, merge.counted))


def answers_of(merge: PartialMerge, groups: TaskRows) -> tuple[pa.Table, Counts]:
    """Return the answers of groups, given keys and aggregates by name, and what was counted."""
    answers = groups.where(merge.having)
    table = answers.table(merge.columns)
    counts = payload_counts(answers.outcomes)
    return table if merge.top is None else merge.top.of(table), counts


def plain_merge(node: AggregationNode, schema: Schema) -> PartialMerge | None:
    """Return ``node`` over rows of ``schema`` as a plain merge; None if it is more than that.

    It is one if tasks compute every aggregate, and if nothing but a payload's reader computes with
    addresses and texts.
    """
    return merge_of(node, schema) if node.aggregates else None


def merge_of(node: AggregationNode, schema: Schema) -> PartialMerge | None:
    """Return ``node`` as a plain merge as ``plain_merge`` does, also if it has no aggregates."""
    parts = _parts_of(node, schema)
    if parts is None:
        return None
    distinct = {part.distinct for part in parts} - {None}
    counted = {part.counted for part in parts} - {None}
    keys = [key.expression for key in node.keys]
    conditions = [each for each in (node.predicate, node.having) if each is not None]
    if (
        not all(map(is_column, [*keys, *(c.expression for c in node.columns)]))
        or any(key.type is GsqlType.FLOAT and not _is_rate(key) for key in keys)
        or not all(map(is_computable, conditions))
    ):
        return None
    return PartialMerge(
        query=node.query,
        predicate=node.predicate,
        keys=node.keys,
        folds=tuple(dict.fromkeys(fold for part in parts for fold in part.folds)),
        distinct=next(iter(distinct), None),
        counted=next(iter(counted), None),
        aggregates=tuple(
            part.merged(aggregate.name)
            for aggregate, part in zip(node.aggregates, parts, strict=True)
        ),
        having=node.having,
        columns=node.columns,
        of_no_rows=_of_no_rows(node) if is_global(node.keys, node.epoch) else (),
        top=FirstRows.kept_by(node.top, node.schema),
    )


def _parts_of(node: AggregationNode, schema: Schema) -> list[MergeParts] | None:
    """Return what the aggregates of ``node`` need of one merge; None if it is more than that."""
    for lists_values in (False, True):
        found = [merge_parts(a, schema, lists_values=lists_values) for a in node.aggregates]
        parts = [part for part in found if part is not None]
        if len(parts) == len(found) and _fit_together(parts, node):
            return parts
    return None


def _fit_together(parts: Sequence[MergeParts], node: AggregationNode) -> bool:
    """Return whether one merge can fold what several aggregates need.

    The different values of one expression, which must not be a key, may be counted beside folds
    that are folded again. Values that are added in their order are of one expression.
    """
    distinct = {part.distinct for part in parts} - {None}
    folds = [fold for part in parts for fold in part.folds]
    has_whole = any(fold == LIST or (fold in OWN_FOLDS and fold not in BITS) for _, fold in folds)
    return (
        len(distinct) <= 1
        and len({part.counted for part in parts} - {None}) <= 1
        and not (distinct and has_whole)
        and not distinct & {key.expression for key in node.keys}
        and len({value for value, fold in folds if fold == "float_sum"}) <= 1
    )


def _is_rate(key: Expression) -> bool:
    """Return whether a key is the rate of a sample, which is neither NaN nor 0."""
    return isinstance(key, Column) and key.name == RATE_COLUMN


def _of_no_rows(node: AggregationNode) -> tuple[NamedExpression, ...]:
    """Return the keys and aggregates of a group without keys if there are no rows."""
    aggregates = (
        NamedExpression(each.name, Literal(of_no_tuples(each.function), each.type))
        for each in node.aggregates
    )
    return (*node.keys, *aggregates)


def partial_groups(merge: PartialMerge, rows: TaskRows) -> pa.Table:
    """Return folds that ``groups_of_partials`` folds again: one row for each group.

    Where distinct values are counted, there is one for each group and value.
    """
    keys = {key.name: rows.column(key.expression) for key in merge.keys}
    folds = _folds(merge)
    values = {str(v): _values(rows, v, fold) for v, fold in folds if fold != "count_all"}
    named = {fold_name(fold): (str(fold[0]), fold[1]) for fold in folds}
    table = pa.table({f"#{name}": column for name, column in keys.items()} | values)
    names = list(table.column_names[: len(keys)])
    if merge.distinct is None:
        return fold_groups(table, names, named)
    # First each value once, however often its group was evicted; then values are counted.
    table = table.append_column(DISTINCT, rows.column(merge.distinct))
    return fold_groups(table, [*names, DISTINCT], named)


def _values(rows: TaskRows, value: Expression, fold: str) -> pa.Array | pa.ChunkedArray:
    """Return a column to fold; lists hold integers of 64 bits, and texts themselves."""
    column = rows.column(value)
    if fold == LIST and pa.types.is_dictionary(column.type):
        return flat(column).dictionary_decode()
    return column.cast(pa.int64()) if fold == LIST and pa.types.is_integer(column.type) else column


def groups_of_partials(merge: PartialMerge, partials: pa.Table) -> pa.Table:
    """Return one row for each group: its keys by name, and the merged columns.

    Args:
        merge: the aggregation; its folds can be folded again.
        partials: what ``partial_groups`` returned for parts of the rows, one after the other.
    """
    names = [f"#{key.name}" for key in merge.keys]
    again = {
        fold_name(fold): (fold_name(fold), _AGAIN.get(fold[1], fold[1])) for fold in _folds(merge)
    }
    within = names if merge.distinct is None else [*names, DISTINCT]
    folded = fold_groups(partials, within, again)
    return folded if merge.distinct is None else _counted(merge, folded)


def is_folded_again(merge: PartialMerge) -> bool:
    """Return whether folds of parts of the rows of a group can be folded to those of all."""
    return all(fold in _AGAIN or fold in _SAME_AGAIN for _, fold in merge.folds)


def _grouped(merge: PartialMerge, rows: TaskRows) -> pa.Table:
    """Return one row for each group: its keys by name, and the merged columns."""
    groups = partial_groups(merge, rows)
    return groups if merge.distinct is None else _counted(merge, groups)


def _counted(merge: PartialMerge, values: pa.Table) -> pa.Table:
    """Return groups with the number of their distinct values, each of which is in one row."""
    names = [f"#{key.name}" for key in merge.keys]
    again = {
        fold_name(fold): (fold_name(fold), _AGAIN.get(fold[1], fold[1])) for fold in _folds(merge)
    }
    if merge.counted is not None:
        is_there = values[DISTINCT].is_valid()
        repeated = values[fold_name((merge.counted, "sum"))]
        present = pc.if_else(is_there, repeated, pa.scalar(None, pa.int64()))
        values = values.append_column(REPEATED, present)
        again[REPEATED] = (REPEATED, "sum")
    return fold_groups(values, names, {**again, DISTINCT: (DISTINCT, "count")})


def _folds(merge: PartialMerge) -> tuple[Fold, ...]:
    return merge.folds if merge.counted is None else (*merge.folds, (merge.counted, "sum"))


def _aggregated(merge: PartialMerge, groups: pa.Table, counts: Counts) -> pa.Table:
    """Return keys and aggregates of the groups by name; add sums that exceed 64 bits to ``counts``.

    A group without keys exists even without rows.
    """
    if merge.of_no_rows and not groups.num_rows:
        nothing = TaskRows.of_table(pa.table({"": [None]}))
        return pa.table({each.name: nothing.column(each.expression) for each in merge.of_no_rows})
    columns = {key.name: groups[f"#{key.name}"] for key in merge.keys}
    return pa.table(columns | aggregates_of(merge, groups.column, counts))


def aggregates_of(
    merge: PartialMerge, folded: Callable[[str], pa.ChunkedArray], counts: Counts
) -> dict[str, pa.ChunkedArray]:
    """Return the aggregates of groups by name; add sums that exceed 64 bits to ``counts``.

    Args:
        merge: the aggregation.
        folded: returns a column that is folded for each group, by ``fold_name``.
        counts: receives the counts.
    """
    columns = {}
    for each in merge.aggregates:
        columns[each.name], wrapped = each.of([folded(source) for source in each.sources])
        counts.add_wrapped_sums(merge.query, wrapped)
    return columns
