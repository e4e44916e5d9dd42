"""Aggregates under the names of queries → an entry of the catalog and its arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.conversions import convert, predicate
from gscope.queries.catalog.aggregates import AGGREGATES, DISTINCT_FORMS
from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.gsql.expression_printer import print_expression
from gscope.queries.plan.logical import Scan

if TYPE_CHECKING:
    from gscope.queries.analysis.typing.typer import Typer
    from gscope.queries.catalog.aggregates import AggregateEntry
    from gscope.queries.catalog.running import RunningEntry
    from gscope.queries.gsql import nodes
    from gscope.queries.plan.logical import Node


# The complement reverses the order of integers without overflow.
_TURNED = {
    GsqlType.INT: ("bit_not",),
    GsqlType.TIMESTAMP: ("ts_to_int", "bit_not"),
    GsqlType.FLOAT: ("neg_float",),
}


def type_aggregate_call(
    node: nodes.FunctionCall, typer: Typer, source: Node
) -> tuple[str, tuple[Expression, ...]]:
    """Return the entry that a call stands for, and its arguments.

    These are the value, the constants, and what the entry adds.

    Args:
        node: the call.
        typer: types the arguments.
        source: the input of the grouping.

    Raises:
        TypeMismatchError: the arguments are invalid.
    """
    function = node.name.lower()
    if node.distinct:
        function = _distinct_form(node, function)
    entry = AGGREGATES[function]
    if not node.args and entry.takes_star:
        return function, counted(node, typer)
    value, constants = type_arguments(node, entry, typer)
    arguments = (value, *constants)
    if entry.is_ordered:
        arguments += _order_for(node, source)
    if entry.knows_type:
        arguments += (Literal(value.type.value.encode(), GsqlType.STRING),)
    return function, arguments


def _order_for(node: nodes.FunctionCall, source: Node) -> tuple[Expression, ...]:
    order = order_of(source)
    if not order:
        message = f"{node.name} needs rows that have a time to order them, and these have none"
        remedy = "group by a time below, as in GROUP BY time/60 AS tb, or use min or max"
        raise TypeMismatchError(message, position=node.position, remedy=remedy)
    return order


def counted(node: nodes.FunctionCall, typer: Typer) -> tuple[Expression, ...]:
    """Return the arguments of ``count(*)``: none, with FILTER what is not NULL where it holds."""
    if node.filter is None:
        return ()
    return (_filtered(Literal(1, GsqlType.INT), node, typer),)


def type_arguments(
    node: nodes.FunctionCall, entry: AggregateEntry | RunningEntry, typer: Typer
) -> tuple[Expression, tuple[Literal, ...]]:
    """Return the value that a call aggregates, and the constants behind it.

    Raises:
        TypeMismatchError: there are too few or too many arguments, or one has the wrong type.
    """
    _check_count(node, entry)
    value = _filtered(_value(node, entry, typer), node, typer)
    return value, _constants(node, entry, typer)


def order_of(source: Node) -> tuple[Expression, ...]:
    """Return the expressions that order the tuples of ``source``, the most important first.

    Packets are ordered by their time; a stream by its first temporal TIMESTAMP if it has one, else
    by all its temporal columns, with decreasing ones reversed.
    """
    columns = source.schema.temporal
    stamps = [c for c in columns if c.type is GsqlType.TIMESTAMP]
    if isinstance(source, Scan):
        return (PacketField("time_ns", GsqlType.INT, is_nullable=False),)
    order: list[Expression] = []
    for column in stamps[:1] or columns:
        leaf: Expression = Column(column.name, column.type, column.is_nullable)
        if column.ordering.direction is Direction.DECREASING:
            for step in _TURNED[column.type]:
                leaf = apply(step, leaf)
        order.append(leaf)
    return tuple(order)


def _distinct_form(node: nodes.FunctionCall, function: str) -> str:
    form = DISTINCT_FORMS.get(function)
    if form is None or not node.args:
        message = f"{node.name} does not take DISTINCT"
        remedy = f"{', '.join(sorted(DISTINCT_FORMS))} do"
        raise TypeMismatchError(message, position=node.position, remedy=remedy)
    return form


def _check_count(node: nodes.FunctionCall, entry: AggregateEntry | RunningEntry) -> None:
    names = ("x", *(constant.name for constant in entry.constants))
    if len(node.args) == len(names) and not node.star:
        return
    given = "*" if node.star else str(len(node.args) or "none")
    wanted = "one argument" if len(names) == 1 else f"{len(names)} arguments ({', '.join(names)})"
    message = f"{node.name} takes {wanted}, not {given}"
    remedy = ""
    if node.distinct and len(node.args) > 1:
        joined = " || ' ' || ".join(print_expression(argument) for argument in node.args)
        remedy = f"write {node.name}(DISTINCT {joined})"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)


def _filtered(value: Expression, node: nodes.FunctionCall, typer: Typer) -> Expression:
    """Return ``value``, NULL in tuples that FILTER rejects: every aggregate skips NULL."""
    if node.filter is None:
        return value
    condition = typer.condition(node.filter, "in FILTER")
    return apply("case", condition, value, Literal(None, value.type))


def _value(
    node: nodes.FunctionCall, entry: AggregateEntry | RunningEntry, typer: Typer
) -> Expression:
    written = node.args[0]
    value = typer.type(written)
    types = entry.argument_types
    if value.type is GsqlType.NULL:
        value = Literal(None, GsqlType.INT)
    if value.type not in types and value.type is GsqlType.BOOL:
        value = convert(value, GsqlType.INT, written.position)
    if types == {GsqlType.BOOL} and value.type is GsqlType.INT:
        value = predicate(value, written.position, f"in {node.name}")
    if value.type not in types:
        wanted = " or ".join(sorted(t.value for t in types))
        message = f"{node.name} takes {wanted}, not {value.type.value}"
        raise TypeMismatchError(message, position=written.position)
    return value


def _constants(
    node: nodes.FunctionCall, entry: AggregateEntry | RunningEntry, typer: Typer
) -> tuple[Literal, ...]:
    found: list[Literal] = []
    for constant, written in zip(entry.constants, node.args[1:], strict=True):
        where = f"as {constant.name} of {node.name}"
        value = convert(typer.type(written), constant.type, written.position, where)
        if not isinstance(value, Literal) or value.value is None:
            message = f"expected a constant {where}"
            raise TypeMismatchError(message, position=written.position)
        complaint = constant.objection(value.value)
        if complaint:
            raise TypeMismatchError(complaint, position=written.position)
        found.append(value)
    return tuple(found)
