"""What a report knows of the results of a program: time axis, keys, measures, and what adds up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.cli.report.contents import ReportAnswer, ReportColumn, TimeAxis
from gscope.cli.view.rows.columns import Role, answer_of
from gscope.queries.expressions.expressions import Call, Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    QueryInput,
    SelectionNode,
    TopNode,
)
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.config.time_style import TimeStyle
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Aggregate, Input, Program

_ADDITIVE = ("count", "sum")
_MULTIPLICATIONS = ("mul_int", "mul_float")
_PLOTTED_OF_PACKETS = ("len", "caplen", "data_length", "total_length")
"""Fields of packets that are sizes; other INT fields are ports, flags, numbers of protocols …"""

_PLOTTED_TYPES = (GsqlType.FLOAT, GsqlType.INTERVAL)


def report_answer(program: Program, query: str, style: TimeStyle) -> ReportAnswer:
    """Return what is known of the result ``query``.

    Args:
        program: the program with the result.
        query: its name.
        style: how to show times.
    """
    answer = answer_of(program, query, style)
    schema = visible(program.schema(query))
    axis = _axis(schema.temporal)
    is_grouped = any(column.role is Role.KEY for column in answer.columns) or (
        _is_grouped(program, dict(program.results)[query])
    )
    measures = []
    for column in answer.columns:
        is_plotted = column.type in _PLOTTED_TYPES or column.role is Role.MEASURE
        if not is_grouped:
            is_plotted = column.type in _PLOTTED_TYPES or column.name in _PLOTTED_OF_PACKETS
        if is_plotted and column.role is not Role.KEY and schema[column.name].clock is None:
            measures.append(column.name)
    additive, has_all = _additive(program, dict(program.results)[query])
    return ReportAnswer(
        query,
        tuple(ReportColumn(c.name, c.type, c.times) for c in answer.columns),
        axis,
        answer.keys if axis is None else tuple(k for k in answer.keys if k != axis.column),
        tuple(measures),
        additive & frozenset(measures),
        has_all,
        is_grouped,
        answer.ordered_by is not None,
    )


def _axis(temporal: Sequence[ColumnSchema]) -> TimeAxis | None:
    """Return the first temporal column that is known to be a time."""
    for column in temporal:
        if column.type is GsqlType.TIMESTAMP:
            grain = column.clock.grain_ns if column.clock is not None else 1
            return TimeAxis(column.name, 1, grain)
        if column.clock is not None:
            return TimeAxis(column.name, column.clock.unit_ns, column.clock.grain_ns)
    return None


def _is_grouped(program: Program, source: Input) -> bool:
    if not isinstance(source, QueryInput):
        return False
    match program.node(source.query):
        case TopNode(input=below) | SelectionNode(input=below):
            return _is_grouped(program, below)
        case AggregationNode() | WindowNode():
            return True
        case _:
            return False


def _additive(program: Program, source: Input) -> tuple[frozenset[str], bool]:
    """Return the columns that are counts and sums, and whether all groups of an epoch are there."""
    if not isinstance(source, QueryInput):
        return frozenset(), False
    match program.node(source.query):
        case TopNode(input=below):
            return _additive(program, below)[0], False
        case SelectionNode(input=below, predicate=predicate, columns=columns):
            names, has_all = _additive(program, below)
            return _sums(columns, names), has_all and predicate is None
        case AggregationNode(having=having, top=top) as node:
            names = _counts_and_sums(node.aggregates)
            return _sums(node.columns, names), having is None and top is None
        case WindowNode() as node:
            return _sums(node.columns, _counts_and_sums(node.aggregates)), False
        case _:
            return frozenset(), False


def _counts_and_sums(aggregates: Sequence[Aggregate]) -> frozenset[str]:
    return frozenset(each.name for each in aggregates if each.function in _ADDITIVE)


def _sums(columns: Sequence[NamedExpression], names: frozenset[str]) -> frozenset[str]:
    return frozenset(each.name for each in columns if _is_sum(each.expression, names))


def _is_sum(expression: Expression, names: frozenset[str]) -> bool:
    """Return whether an expression is one of ``names``, or a multiple of it by a constant."""
    match expression:
        case Column(name=name):
            return name in names
        case Call(function=function, arguments=(left, right)) if function in _MULTIPLICATIONS:
            return (isinstance(right, Literal) and _is_sum(left, names)) or (
                isinstance(left, Literal) and _is_sum(right, names)
            )
        case _:
            return False
