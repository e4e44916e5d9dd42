"""A reference for groups that live across epochs: a plain dictionary of lists of tuples."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from gscope.engine.running.vectors import arrow_type, from_list, to_arrow
from gscope.queries.catalog.aggregate.entry import constants_of
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.logical import RunningGroupBy
from gscope.queries.plan.program import RunningNode

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Column, Expression, PacketField, Value

Tuple = dict[str, Any]
Row = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Query:
    """A query with CLOSING_WHEN: its node over plain rows, and its grouping as written."""

    node: RunningNode
    group: RunningGroupBy


def compiled(text: str) -> Query:
    """The query over the result of another, so that its node reads plain rows."""
    source = (
        "DEFINE { query_name 'src'; }"
        " SELECT tb, srcIP as ip, ttl as n, len as x, FLOAT(window) as f,"
        " STRING(len) as s, interface as i FROM TCP"
        " GROUP BY time/10 as tb, srcIP, ttl, len, window,"
        " interface;"
    )
    made = compile_queries(
        [QueryText(f"{source} DEFINE {{ query_name 'q'; }} {text}", "q")], CompileContext(("a",))
    )
    node = made.program.nodes[-1]
    assert isinstance(node, RunningNode)
    root = next(q.root for q in made.stages[0][1].queries if q.name == "q")
    while not isinstance(root, RunningGroupBy):
        root = getattr(root, "input")  # noqa: B009
    return Query(node, root)


def value_of(expression: Expression, row: Tuple) -> Value:
    def leaf(part: Column | PacketField) -> Value:
        value: Value = row[part.name]
        return value

    return evaluate(expression, leaf)


@dataclass(slots=True)
class Reference:
    """Answers of a query, epoch by epoch."""

    query: Query
    lives: dict[Row, list[list[Tuple]]] = field(default_factory=dict)

    def end_epoch(self, epoch: int, tuples: list[Tuple], *, is_last: bool = False) -> list[Row]:
        """Return the rows of the end of ``epoch``, which had these tuples and may end the input."""
        group, node = self.query.group, self.query.node
        keys = [key for key in group.keys if key.name != group.epoch]
        for life in self.lives.values():
            life.append([])
        for each in tuples:
            key = tuple(order_key(value_of(k.expression, each)) for k in keys)
            self.lives.setdefault(key, [[]])[-1].append(each)
        answers = []
        for key, life in list(self.lives.items()):
            first = next(each for one in life for each in one)
            row: Tuple = {k.name: value_of(k.expression, first) for k in keys}
            row[group.epoch] = epoch
            for call in group.aggregates:
                if call.function == "at_end":
                    row[call.name] = is_last
                else:
                    row[call.name] = self._aggregate(call.function, call.arguments, life)
            if node.having is None or value_of(node.having, row) is True:
                answers.append(tuple(value_of(c.expression, row) for c in node.columns))
            if value_of(node.closing, row) is True:
                del self.lives[key]
        return answers

    def _aggregate(
        self, function: str, arguments: tuple[Expression, ...], life: list[list[Tuple]]
    ) -> Value:
        constants = [constant.value for constant in constants_of(arguments)]
        if function not in RUNNING:
            return AGGREGATES[function].evaluate(
                values_of(function, arguments, life[-1]), *constants
            )
        epochs = [values_of(function, arguments, one) for one in life]
        return RUNNING[function].evaluate(epochs, *constants)


def values_of(function: str, arguments: tuple[Expression, ...], tuples: list[Tuple]) -> list[Any]:
    """Return the arguments of an aggregate: values, or rows (value, *order)."""
    if not arguments:
        return [True] * len(tuples)
    entry = RUNNING.get(function) or AGGREGATES[function]
    if entry.is_ordered:
        return [tuple(value_of(a, each) for a in arguments) for each in tuples]
    return [value_of(arguments[0], each) for each in tuples]


def epoch_rows(node: RunningNode, tuples: list[Tuple]) -> pa.Table:
    """Return the rows that Spark passes to the fold: one for each epoch and group."""
    others = [key for key in node.keys if key.name != node.epoch]
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    groups: dict[Row, list[Tuple]] = {}
    for each in tuples:
        key = (value_of(epoch, each), *(value_of(k.expression, each) for k in others))
        groups.setdefault(key, []).append(each)
    columns: dict[str, pa.Array] = {
        "e": pa.array([key[0] for key in groups], pa.int64()),
        "kb": pa.array([0] * len(groups), pa.int32()),
    }
    for number, other in enumerate(others):
        kind = other.expression.type
        columns[f"k{number}"] = to_arrow(from_list([g[number + 1] for g in groups], kind), kind)
    for number, aggregate in enumerate(node.aggregates):
        name = "count" if aggregate.function == DISTINCT_VALUES else aggregate.function
        lists = [values_of(name, aggregate.arguments, group) for group in groups.values()]
        if aggregate.function == DISTINCT_VALUES:
            sets = [
                to_arrow(
                    from_list(list({v for v in one if v is not None}), aggregate.type),
                    aggregate.type,
                ).to_pylist()
                for one in lists
            ]
            columns[f"a{number}"] = pa.array(sets, pa.list_(arrow_type(aggregate.type)))
        else:
            constants = [constant.value for constant in constants_of(aggregate.arguments)]
            made = [AGGREGATES[aggregate.function].evaluate(one, *constants) for one in lists]
            columns[f"a{number}"] = to_arrow(from_list(made, aggregate.type), aggregate.type)
    return pa.table(columns)
