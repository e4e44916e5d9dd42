"""Facts about a query's columns beyond their types: the expressions they are computed from.

Two rules need them where a query reads the result of another: ``/`` of an aggregate keeps its
fraction, and TIMESTAMP(x) refuses an ``x`` that counts seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import TYPE_CHECKING, assert_never

from gscope.queries.expressions.expressions import Column, Expression, PacketField, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.trees import map_expression
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.plan.logical import AggregateCall, Node

_CHOOSING = frozenset({"min", "max", "first", "last", "running_first", "running_last"})
"""Aggregates whose result is one of the values, so that it has their unit."""

_MOST_PARTS = 200
"""An origin of more parts is dropped: each query of a chain could double it."""

UNKNOWN = Column("", GsqlType.INT, is_nullable=True)
"""The origin of an expression that is not followed further."""


@dataclass(frozen=True, slots=True)
class ColumnFact:
    """The origin of a column.

    For ``SELECT max(time)*2 AS m FROM TCP GROUP BY …``:

    Attributes:
        origin: ``time*2``: the column as an expression over packet fields and ``UNKNOWN``.
        is_aggregate: true: whether an aggregate takes part in it.
    """

    origin: Expression
    is_aggregate: bool


Facts = Mapping[str, ColumnFact]
"""Facts by the name of the column."""

NO_FACTS: Facts = {}


def facts_of(node: Node, queries: Mapping[str, Facts]) -> Facts:
    """Return the facts about the columns of ``node``, given those of the queries that it reads."""
    match node:
        case Scan():
            fields = (PacketField(c.name, c.type, c.is_nullable) for c in node.schema.columns)
            return {each.name: ColumnFact(each, is_aggregate=False) for each in fields}
        case QueryScan():
            return queries.get(node.query, NO_FACTS)
        case Filter():
            return facts_of(node.input, queries)
        case Project():
            inputs = (facts_of(node.input, queries),)
            return {c.name: fact_of(c.expression, inputs) for c in node.columns}
        case GroupBy() | RunningGroupBy() | WindowGroupBy() | SampleGroupBy():
            inputs = (facts_of(node.input, queries),)
            keys = {key.name: fact_of(key.expression, inputs) for key in node.keys}
            calls = {call.name: _of_call(call, inputs) for call in node.aggregates}
            return {**_of_window(node), **keys, **calls}
        case Merge():
            return _merged(node, queries)
        case Join():
            sides = [facts_of(each, queries) for each in node.inputs]
            return {c.name: fact_of(c.expression, sides) for c in node.columns}
        case WatchlistJoin():
            sides = [facts_of(node.input, queries), NO_FACTS]
            return {c.name: fact_of(c.expression, sides) for c in node.columns}
        case _:
            assert_never(node)


def fact_of(expression: Expression, inputs: Sequence[Facts]) -> ColumnFact:
    """Return the fact about an expression over columns of ``inputs``."""
    origin = _followed(expression, inputs, UNKNOWN)
    if len(list(islice(walk(origin), _MOST_PARTS + 1))) > _MOST_PARTS:
        origin = UNKNOWN
    return ColumnFact(origin, has_aggregate(expression, inputs))


def origin_of(expression: Expression, inputs: Sequence[Facts]) -> Expression:
    """Return ``expression`` with the origins of columns in their place, where they are known."""
    return _followed(expression, inputs, None)


def has_aggregate(expression: Expression, inputs: Sequence[Facts]) -> bool:
    """Return whether a column of ``expression`` is the result of an aggregate."""
    facts = (
        inputs[part.input].get(part.name) for part in walk(expression) if isinstance(part, Column)
    )
    return any(fact is not None and fact.is_aggregate for fact in facts)


def origin_of_call(call: AggregateCall, inputs: Sequence[Facts]) -> Expression:
    """Return what the result of an aggregate is computed from, as far as it has the same unit."""
    if call.function in _CHOOSING:
        return origin_of(call.arguments[0], inputs)
    return UNKNOWN


def _followed(
    expression: Expression, inputs: Sequence[Facts], unknown: Expression | None
) -> Expression:
    """Return ``expression`` with origins in place of columns.

    A column without a known origin becomes ``unknown``, or stays if that is None.
    """

    def change(part: Expression) -> Expression:
        if not isinstance(part, Column):
            return part
        fact = inputs[part.input].get(part.name)
        return (unknown or part) if fact is None else fact.origin

    return map_expression(expression, change)


def _of_call(call: AggregateCall, inputs: Sequence[Facts]) -> ColumnFact:
    chosen = call.arguments[0] if call.function in _CHOOSING else UNKNOWN
    return ColumnFact(fact_of(chosen, inputs).origin, is_aggregate=True)


def _of_window(node: GroupBy | RunningGroupBy | WindowGroupBy | SampleGroupBy) -> Facts:
    """Return the facts of the columns of a window, which are their own origins."""
    if not isinstance(node, WindowGroupBy):
        return {}
    columns = (node.schema[name] for name in (WINDOW_START, WINDOW_END))
    return {
        c.name: ColumnFact(Column(c.name, c.type, c.is_nullable), is_aggregate=False)
        for c in columns
    }


def _merged(node: Merge, queries: Mapping[str, Facts]) -> Facts:
    """Return the facts of a union: an origin where all inputs have the same one."""
    merged: dict[str, ColumnFact] = {}
    sides = [facts_of(each, queries) for each in node.inputs]
    for place, name in enumerate(node.schema.names):
        names = [each.schema.names[place] for each in node.inputs]
        facts = [side.get(own) for side, own in zip(sides, names, strict=True)]
        known = [fact for fact in facts if fact is not None]
        origins = {fact.origin for fact in known}
        is_same = len(origins) == 1 and len(known) == len(facts)
        merged[name] = ColumnFact(
            origins.pop() if is_same else UNKNOWN, any(fact.is_aggregate for fact in known)
        )
    return merged
