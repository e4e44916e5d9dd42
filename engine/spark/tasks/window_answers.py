"""The answers of windows: aggregates, HAVING and columns over the rows of some windows at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import arrow_type
from gscope.engine.spark.tasks.aggregate_parts import DISTINCT, LIST, REPEATED, fold_name
from gscope.engine.spark.tasks.aggregate_task import (
    PartialMerge,
    aggregates_of,
    answers_of,
    merge_of,
    merged_groups,
)
from gscope.engine.spark.tasks.columns import TaskRows
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.payload_counts import payload_counts
from gscope.engine.windows.counted import Counted
from gscope.engine.windows.layout import Layout, Numbers
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gscope.engine.windows.assembly import WindowEnd
    from gscope.queries.plan.window_node import WindowNode

    Array = NDArray[Any]

ANSWER_ROWS = 250_000
"""Answers are computed and written in pieces of about this many rows, before HAVING."""

_END_ROWS = 10
"""The end of a window takes the memory of about this many rows besides its own."""


@dataclass(frozen=True, slots=True)
class AnswerPlan:
    """How the answers of a node are made of the rows of its windows.

    Attributes:
        node: the node, with the partials that it reads.
        layout: the numbers of these partials.
        merge: the aggregation of the rows; None if it is left to SQL.
        counted: the values that the assembly counts itself; None if there are none.
        is_single: whether the assembly gives one row for each group, so that nothing is merged.
    """

    node: WindowNode
    layout: Layout
    merge: PartialMerge | None
    counted: Counted | None
    is_single: bool

    @classmethod
    def of(cls, node: WindowNode) -> AnswerPlan:
        """Return the plan of a node that has slices."""
        slices = node.slices
        assert slices is not None
        needed = {name for aggregate in node.aggregates for name in aggregate.partials}
        # The LFTA may serve other windows too.
        partials = tuple(partial for partial in slices.partials if partial.name in needed)
        node = replace(node, slices=replace(slices, partials=partials))
        merge = merge_of(node.aggregation, window_schema(node))
        layout = Layout.of(partials)
        if merge is None:
            return cls(node, layout, None, None, is_single=False)
        low = {key.name for key in slices.keys}
        grouped = {k.expression.name for k in node.keys if isinstance(k.expression, Column)}
        if merge.distinct is None:
            return cls(node, layout, merge, None, is_single=low <= grouped)
        counted = _counted(node, merge, layout)
        return cls(node, layout, merge, counted, is_single=counted is not None)

    @property
    def key_names(self) -> tuple[str, ...]:
        """The low-level keys."""
        assert self.node.slices is not None
        return tuple(key.name for key in self.node.slices.keys)


def _counted(node: WindowNode, merge: PartialMerge, layout: Layout) -> Counted | None:
    """Return what the assembly counts itself; None if it cannot."""
    assert node.slices is not None
    low = {key.name for key in node.slices.keys}
    keys = tuple(dict.fromkeys(k.expression for k in node.keys))
    names = tuple(key.name for key in keys if isinstance(key, Column))
    value, tuples = merge.distinct, merge.counted
    if not isinstance(value, Column) or len(names) < len(keys):
        return None
    if {*names, value.name} != low or value.name in names or layout.stacked or layout.xored:
        return None
    return Counted(names, value.name, tuples.name if isinstance(tuples, Column) else None)


def window_schema(node: WindowNode) -> Schema:
    """Return the schema of the rows of windows."""
    assert node.slices is not None
    kind = GsqlType.INT if node.unit_ns is None else GsqlType.TIMESTAMP
    keys = ((k.name, k.expression.type, k.expression.is_nullable) for k in node.slices.keys)
    return Schema(
        (
            ColumnSchema(WINDOW_START, kind),
            ColumnSchema(WINDOW_END, kind),
            *(ColumnSchema(*key) for key in keys),
            *(
                ColumnSchema(each.name, each.type, each.is_nullable)
                for each in node.slices.partials
            ),
        )
    )


def stored_type(kind: GsqlType) -> pa.DataType:
    """Return the Arrow type of keys in states and answers."""
    return pa.binary(16) if kind is GsqlType.IP else arrow_type(kind)


class WindowAnswers:
    """Collects ends of windows and writes their answers, in the order of windows.

    Args:
        plan: how answers are made.
        write: receives the answers; without ``plan.merge``, the rows of the windows.

    Attributes:
        counts: the counts of all answers so far.
    """

    def __init__(self, plan: AnswerPlan, write: Callable[[pa.Table], None]) -> None:
        self._plan = plan
        self._write = write
        self._ends: list[WindowEnd] = []
        self._rows = 0
        self.counts = Counts()

    def add(self, end: WindowEnd, keys: pa.Table) -> None:
        """Add the end of a window; ``keys`` are those of all groups, by place."""
        self._ends.append(end)
        self._rows += len(end.places) + _END_ROWS
        if self._rows >= ANSWER_ROWS:
            self.flush(keys)

    def flush(self, keys: pa.Table) -> None:
        """Write all answers so far."""
        if not self._ends:
            return
        ends, self._ends, self._rows = self._ends, [], 0
        rows = _WindowRows(
            self._plan,
            keys,
            np.repeat(np.array([end.window for end in ends]), [len(e.places) for e in ends]),
            np.concatenate([end.places for end in ends]),
            Numbers.joined([end.numbers for end in ends]),
        )
        merge = self._plan.merge
        if merge is None:
            self._write(rows.table())
            return
        if not self._plan.is_single:
            groups = merged_groups(merge, TaskRows(rows.count, rows.column), self.counts)
            table, read = answers_of(merge, TaskRows.of_table(groups))
        else:
            table, read = self._of_single(merge, rows)
        self.counts += read
        if table.num_rows:
            self._write(table)

    def _of_single(self, merge: PartialMerge, rows: _WindowRows) -> tuple[pa.Table, Counts]:
        """Return the answers of rows that are groups; keys are looked up behind HAVING."""
        folds = {fold_name(fold): fold for fold in merge.folds}
        layout, counted = self._plan.layout, self._plan.counted
        counts = {}
        if counted is not None:
            counts = {DISTINCT: counted.distinct(layout), REPEATED: counted.present(layout)}

        def folded(name: str) -> pa.Array:
            if name in counts:
                return pa.array(np.ascontiguousarray(rows.numbers.sums[:, counts[name]]))
            column, fold = folds[name]
            assert isinstance(column, Column)
            values = rows.column(column)
            # Each group is one row.
            return _lists_of_one(values) if fold == LIST else values

        made: dict[str, pa.Array] = aggregates_of(merge, folded, self.counts)
        keys = {key.name: key.expression for key in merge.keys}
        if merge.having is not None:
            condition = TaskRows(rows.count, lambda c: _leaf(c, made, keys, rows))
            held = np.flatnonzero(condition.vector(merge.having).is_true())
            rows, made = rows.take(held), _taken(made, held)
        leaders = _leaders(merge, made, rows.windows)
        if leaders is not None:
            rows, made = rows.take(leaders), _taken(made, leaders)
        answers = TaskRows(rows.count, lambda c: _leaf(c, made, keys, rows))
        table = answers.table(merge.columns)
        table = table if merge.top is None else merge.top.of(table)
        return table, payload_counts(answers.outcomes)


def _lists_of_one(values: pa.Array) -> pa.ListArray:
    offsets = pa.array(np.arange(len(values) + 1, dtype=np.int32))
    return pa.ListArray.from_arrays(offsets, values)


def _taken(made: dict[str, pa.Array], chosen: Array) -> dict[str, pa.Array]:
    places = pa.array(chosen)
    return {name: column.take(places) for name, column in made.items()}


def _leaders(merge: PartialMerge, made: dict[str, pa.Array], windows: Array) -> Array | None:
    """Return the rows that LIMIT may keep, by the first term of ORDER BY alone.

    All rows with the value of the last row that is kept are among them. None if that term is not
    an integer aggregate, so that all rows have to be ordered, and if there are no rows.
    """
    top = merge.top
    if top is None or not len(windows):
        return None
    first = next((key for key in top.keys if key.name != top.epoch), None)
    terms = {each.name: each.expression for each in merge.columns}
    term = None if first is None else terms[first.name]
    if first is None or not isinstance(term, Column) or term.name not in made:
        return None
    column = made[term.name]
    if not pa.types.is_int64(column.type) or column.null_count:
        return None
    values = column.to_numpy()
    ranks = ~values if first.is_descending else values
    begins = np.flatnonzero(np.diff(windows, prepend=windows[:1] - 1))
    chosen = []
    for begin, end in zip(begins, [*begins[1:], len(windows)], strict=True):
        part = ranks[begin:end]
        if len(part) > top.limit:
            last = np.partition(part, top.limit - 1)[top.limit - 1]
            chosen.append(begin + np.flatnonzero(part <= last))
        else:
            chosen.append(np.arange(begin, end))
    return np.concatenate(chosen)


def _leaf(
    column: Column, made: dict[str, pa.Array], keys: dict[str, Any], rows: _WindowRows
) -> Any:
    if column.name in made:
        return made[column.name]
    # A key may be a constant.
    return TaskRows(rows.count, rows.column).column(keys[column.name])


@dataclass(frozen=True, slots=True)
class _WindowRows:
    """The rows of some windows: for each its window, the place of its keys, and its numbers."""

    plan: AnswerPlan
    keys: pa.Table
    windows: Array
    places: Array
    numbers: Numbers

    @property
    def count(self) -> int:
        return len(self.places)

    def take(self, chosen: Array) -> _WindowRows:
        return _WindowRows(
            self.plan,
            self.keys,
            self.windows[chosen],
            self.places[chosen],
            self.numbers.take(chosen),
        )

    def column(self, column: Column) -> pa.Array:
        name = column.name
        if name in (WINDOW_START, WINDOW_END):
            return self._edge(name)
        if name in self.keys.column_names:
            return self.keys[name].combine_chunks().take(pa.array(self.places))
        return self.plan.layout.column(name, self.numbers)

    def table(self) -> pa.Table:
        schema = window_schema(self.plan.node)
        columns = [Column(c.name, c.type, c.is_nullable) for c in schema.columns]
        return pa.table({column.name: self.column(column) for column in columns})

    def _edge(self, name: str) -> pa.Array:
        """Return an edge of the window of each row; windows ascend."""
        node = self.plan.node
        windows, rows = np.unique(self.windows, return_inverse=True)
        edges = np.array([node.edge(name, window) for window in windows.tolist()], np.int64)
        return pa.array(edges[rows])
