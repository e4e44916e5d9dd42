"""STRING columns of results: which hold bytes of packets, and which hold text.

A payload, and any string cut from it or composed with it, is bytes: it is written as BINARY where a
format has that type. Everything else is text: constants, the results of STRING(), to_hex and
community_id, names of interfaces, and what readers of the application layer find.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.schema import Schema
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

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.plan.logical import AggregateCall, LogicalPlan, Node

    Names = frozenset[str]

PAYLOADS = frozenset({"data", "TCP_data", "UDP_data"})
"""Fields of packets that are bytes; all other STRING fields are text."""

_SPELLED = frozenset({"to_hex", "community_id"})
_NOTHING: Names = frozenset()


def mark_payloads(plan: LogicalPlan) -> dict[str, Schema]:
    """Return the output schema of each query, with ``is_binary`` set for columns of bytes."""
    binary: dict[str, Names] = {}
    schemas = {}
    for query in plan.queries:
        binary[query.name] = found = _columns(query.root, binary)
        schemas[query.name] = Schema(
            tuple(replace(c, is_binary=c.name in found) for c in query.schema.columns)
        )
    return schemas


def _columns(node: Node, queries: Mapping[str, Names]) -> Names:
    """Return the columns of ``node`` that hold bytes, given those of the queries before."""
    match node:
        case Scan():
            return PAYLOADS
        case QueryScan():
            return queries[node.query]
        case Filter():
            return _columns(node.input, queries)
        case Project():
            return _computed(node.columns, (_columns(node.input, queries),))
        case GroupBy() | RunningGroupBy() | WindowGroupBy() | SampleGroupBy():
            inputs = (_columns(node.input, queries),)
            return _computed(node.keys, inputs) | _aggregated(node.aggregates, inputs)
        case Merge():
            return _merged(node, queries)
        case Join():
            return _computed(node.columns, [_columns(one, queries) for one in node.inputs])
        case WatchlistJoin():
            return _computed(node.columns, (_columns(node.input, queries), _NOTHING))
        case _:
            assert_never(node)


def _merged(node: Merge, queries: Mapping[str, Names]) -> Names:
    places = [
        place
        for one in node.inputs
        for place, name in enumerate(one.schema.names)
        if name in _columns(one, queries)
    ]
    return frozenset(node.schema.names[place] for place in places)


def _computed(columns: Iterable[NamedExpression], inputs: Sequence[Names]) -> Names:
    return frozenset(c.name for c in columns if _is_binary(c.expression, inputs))


def _aggregated(aggregates: Iterable[AggregateCall], inputs: Sequence[Names]) -> Names:
    return frozenset(
        a.name
        for a in aggregates
        if a.type is GsqlType.STRING and any(_is_binary(each, inputs) for each in a.arguments)
    )


def _is_binary(expression: Expression, inputs: Sequence[Names]) -> bool:
    if expression.type is not GsqlType.STRING:
        return False
    match expression:
        case PacketField(name):
            return name.removeprefix("inner.") in PAYLOADS
        case Column(name):
            return name in inputs[expression.input]
        case Call(function, arguments):
            if function in _SPELLED or FUNCTIONS[function].is_high_only:
                return False
            return any(_is_binary(argument, inputs) for argument in arguments)
        case Literal():
            return False
