"""Columns of results that count time, and the unit in which they count.

A table shows such a column as times: ``tb`` of ``GROUP BY time/60 AS tb`` as the beginning of the
minute, also where another query selects it. See ``queries/catalog/scalar/clock_units.py``.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.scalar.clock_units import clock_unit, common_unit
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.schema import ClockUnit
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
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.expressions.expressions import Column, Expression, NamedExpression
    from gscope.queries.plan.logical import AggregateCall, LogicalPlan, Node

    Units = Mapping[str, ClockUnit]

_CHOOSING = frozenset({"min", "max", "first", "last", "running_first", "running_last"})
"""Aggregates whose result is one of the values."""

_NONE: Units = {}


def clock_units(plan: LogicalPlan) -> dict[str, Units]:
    """Return, for each query, the units of those of its columns that count time."""
    found: dict[str, Units] = {}
    for query in plan.queries:
        found[query.name] = _columns(query.root, found)
    return found


def _columns(node: Node, queries: Mapping[str, Units]) -> Units:
    """Return the units of the columns of ``node``, given those of the queries before."""
    match node:
        case Scan():
            fields = (PacketField(c.name, c.type, c.is_nullable) for c in node.schema.columns)
            return _known((field.name, _of(field, (_NONE,))) for field in fields)
        case QueryScan():
            return queries[node.query]
        case Filter():
            return _columns(node.input, queries)
        case Project():
            return _computed(node.columns, (_columns(node.input, queries),))
        case GroupBy() | RunningGroupBy() | SampleGroupBy():
            inputs = (_columns(node.input, queries),)
            calls = ((call.name, _of_call(call, inputs)) for call in node.aggregates)
            return {**_computed(node.keys, inputs), **_known(calls)}
        case WindowGroupBy():
            inputs = (_columns(node.input, queries),)
            calls = ((call.name, _of_call(call, inputs)) for call in node.aggregates)
            return {**_of_window(node), **_computed(node.keys, inputs), **_known(calls)}
        case Merge():
            return _merged(node, queries)
        case Join():
            return _computed(node.columns, [_columns(one, queries) for one in node.inputs])
        case WatchlistJoin():
            return _computed(node.columns, (_columns(node.input, queries), _NONE))
        case _:
            assert_never(node)


def _of_window(node: WindowGroupBy) -> Units:
    """Return the units of the columns of a window, which are multiples of a common length."""
    if node.unit_ns is None:
        return {}
    match node.window:
        case SlidingWindow(range=length, slide=slide):
            start, end = gcd(length, slide), slide
        case RepeatedSlices(lengths=lengths):
            start = end = gcd(*lengths)
    return {
        WINDOW_START: ClockUnit(1, start * node.unit_ns),
        WINDOW_END: ClockUnit(1, end * node.unit_ns),
    }


def _merged(node: Merge, queries: Mapping[str, Units]) -> Units:
    """Return the units of a union: those that all inputs share."""
    sides = [(each.schema.names, _columns(each, queries)) for each in node.inputs]
    return _known(
        (name, common_unit(units.get(names[place]) for names, units in sides))
        for place, name in enumerate(node.schema.names)
    )


def _computed(columns: Iterable[NamedExpression], inputs: Sequence[Units]) -> Units:
    return _known((c.name, _of(c.expression, inputs)) for c in columns)


def _of(expression: Expression, inputs: Sequence[Units]) -> ClockUnit | None:
    if expression.type not in (GsqlType.INT, GsqlType.TIMESTAMP):
        return None

    def leaf(column: Column) -> ClockUnit | None:
        return inputs[column.input].get(column.name)

    return clock_unit(expression, leaf)


def _of_call(call: AggregateCall, inputs: Sequence[Units]) -> ClockUnit | None:
    return _of(call.arguments[0], inputs) if call.function in _CHOOSING else None


def _known(units: Iterable[tuple[str, ClockUnit | None]]) -> Units:
    return {name: unit for name, unit in units if unit is not None}
