"""Expressions and plans as text that a person reads."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.catalog.scalar.tables import table_values
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.literals import write_interval
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Interval,
    Join,
    Merge,
    Node,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.expressions.schema import Schema

_SHOWN_CHOICES = 3
"""Values of a long IN list that are shown."""

_INFIX = {
    "add_int": "+",
    "sub_int": "-",
    "mul_int": "*",
    "idiv_int": "DIV",
    "floor_div": "FLOOR_DIV",
    "mod_int": "%",
    "bit_and": "&",
    "bit_or": "|",
    "bit_xor": "^",
    "shl": "<<",
    "shr": ">>",
    "add_float": "+",
    "sub_float": "-",
    "mul_float": "*",
    "div_float": "/",
    "mod_float": "%",
    "eq": "=",
    "ne": "<>",
    "lt": "<",
    "le": "<=",
    "gt": ">",
    "ge": ">=",
    "and": "AND",
    "or": "OR",
    "like": "LIKE",
    "ip_mask": "&",
    "ts_add": "+",
    "ts_sub": "-",
    "ts_diff": "-",
    "ts_idiv": "DIV",
}


def show(expression: Expression) -> str:
    """``expression`` as text; conversions that change nothing to see are left out."""
    text = _show(expression)
    return text[1:-1] if text.startswith("(") and _is_wrapped(text) else text


def show_named(columns: Iterable[NamedExpression]) -> str:
    """Columns as ``name`` or ``name := expression``."""
    return ", ".join(
        column.name
        if show(column.expression) == column.name
        else f"{column.name} := {show(column.expression)}"
        for column in columns
    )


def show_schema(schema: Schema) -> str:
    """Columns with type and ordering: ``tb INT increasing, srcIP IP``."""
    parts = []
    for column in schema.columns:
        ordering = f" {column.ordering.direction.value}" if column.ordering.is_temporal else ""
        parts.append(
            f"{column.name} {column.type.value}{ordering}{' NULL' if column.is_nullable else ''}"
        )
    return ", ".join(parts)


def show_tree(node: Node, depth: int = 0) -> Iterator[str]:
    """A logical plan, a line each node, inputs indented below."""
    lead = "  " * depth
    match node:
        case Scan():
            on = ", ".join(node.interfaces) or "any interface"
            where = "" if node.membership is None else f" where {show(node.membership)}"
            yield f"{lead}Scan {node.protocol} on {on}{where}"
        case QueryScan():
            yield f"{lead}QueryScan {node.query}"
        case Filter():
            yield f"{lead}Filter {show(node.predicate)}"
            yield from show_tree(node.input, depth + 1)
        case Project():
            yield f"{lead}Project {show_named(node.columns)}"
            yield from show_tree(node.input, depth + 1)
        case GroupBy():
            aggregates = ", ".join(
                f"{a.name} := {a.function}({', '.join(map(show, a.arguments)) or '*'})"
                for a in node.aggregates
            )
            yield f"{lead}GroupBy {show_named(node.keys)}; {aggregates}; closes by {node.epoch}"
            yield from show_tree(node.input, depth + 1)
        case RunningGroupBy():
            aggregates = ", ".join(
                f"{a.name} := {a.function}({', '.join(map(show, a.arguments)) or '*'})"
                for a in node.aggregates
            )
            yield (
                f"{lead}RunningGroupBy {show_named(node.keys)}; {aggregates}; "
                f"at each end of {node.epoch} closes when {show(node.closing)}"
            )
            yield from show_tree(node.input, depth + 1)
        case Join():
            yield f"{lead}{_show_join(node)}"
            for each in node.inputs:
                yield from show_tree(each, depth + 1)
        case WatchlistJoin():
            keys = show_equalities(node.keys, ("stream", node.watchlist.name))
            yield f"{lead}WatchlistJoin {node.watchlist.name}; {keys}"
            yield from show_tree(node.input, depth + 1)
        case Merge():
            yield f"{lead}Merge on {', '.join(node.on)} slack {node.slack}"
            for each in node.inputs:
                yield from show_tree(each, depth + 1)
        case _:
            assert_never(node)


LEFT_RIGHT = ("left", "right")


def show_of_sides(expression: Expression, names: Sequence[str] = LEFT_RIGHT) -> str:
    """An expression over both sides of a join: ``left.tb + 1``, or by the names of the sides."""
    return show(_labelled(expression, names))


def show_equalities(
    pairs: Iterable[tuple[Expression, Expression]], names: Sequence[str] = LEFT_RIGHT
) -> str:
    """Pairs that a join makes equal: ``left.tb = right.tb + 1, left.srcIP = right.destIP``."""
    return ", ".join(f"{show_of_sides(a, names)} = {show_of_sides(b, names)}" for a, b in pairs)


def show_interval(
    epochs: tuple[Expression, Expression], interval: Interval, names: Sequence[str] = LEFT_RIGHT
) -> str:
    """The interval of a join: ``-2 <= right.time - left.time <= 5``."""
    left, right = (show_of_sides(each, names) for each in epochs)
    least, most = (show_extent(end, epochs[0].type) for end in (interval.least, interval.most))
    return f"{least} <= {right} - {left} <= {most}"


def show_extent(extent: int, kind: GsqlType) -> str:
    """A length along a temporal expression of type ``kind``: ``5``, of a TIMESTAMP ``250 msec``."""
    if kind is not GsqlType.TIMESTAMP:
        return str(extent)
    return write_interval(extent)


def _show_join(join: Join) -> str:
    """A join in one line; its columns under the names of what its sides read, if these differ."""
    labels = [_label(each) for each in join.inputs]
    names = labels if all(labels) and labels[0] != labels[1] else LEFT_RIGHT
    parts = [
        f"epochs {show_equalities([join.epochs], names)}"
        if join.interval is None
        else f"interval {show_interval(join.epochs, join.interval, names)}"
    ]
    if join.keys:
        parts.append(f"keys {show_equalities(join.keys, names)}")
    if join.residual is not None:
        parts.append(f"only if {show_of_sides(join.residual, names)}")
    columns = ", ".join(f"{c.name} := {show_of_sides(c.expression, names)}" for c in join.columns)
    return f"Join {join.kind.value} {columns}; {'; '.join(parts)}"


def _labelled(expression: Expression, names: Sequence[str]) -> Expression:
    if isinstance(expression, Column):
        return replace(expression, name=f"{names[expression.input]}.{expression.name}")
    if isinstance(expression, Call):
        arguments = tuple(_labelled(a, names) for a in expression.arguments)
        return replace(expression, arguments=arguments)
    return expression


def _label(node: Node) -> str:
    while isinstance(node, Filter | Project):
        node = node.input
    return node.query if isinstance(node, QueryScan) else ""


def _show(expression: Expression) -> str:
    match expression:
        case Literal():
            return _show_literal(expression)
        case PacketField() | Column():
            return expression.name
        case Call():
            return _show_call(expression)
        case _:
            assert_never(expression)


def _show_call(call: Call) -> str:
    if call.function == "in_table":
        return _show_in_table(call, _show(call.arguments[0]))
    arguments = [_show(argument) for argument in call.arguments]
    infix = _INFIX.get(call.function)
    if infix is not None and len(arguments) == 2:
        return f"({arguments[0]} {infix} {arguments[1]})"
    if call.function == "not":
        return f"(NOT {arguments[0]})"
    if call.function == "is_null":
        return f"({arguments[0]} IS NULL)"
    if call.function == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    return f"{call.function}({', '.join(show(argument) for argument in call.arguments)})"


def _show_in_table(call: Call, operand: str) -> str:
    """Show a long IN list by its first values and the number of the others."""
    value, table = call.arguments
    assert isinstance(table, Literal)
    assert isinstance(table.value, bytes)
    values = table_values(table.value)
    first = ", ".join(_show_literal(Literal(v, value.type)) for v in values[:_SHOWN_CHOICES])
    return f"({operand} IN ({first}, … {len(values) - _SHOWN_CHOICES:,} more))"


def _show_literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "NULL"
    match literal.type:
        case GsqlType.BOOL:
            return str(value).upper()
        case GsqlType.STRING:
            assert isinstance(value, bytes)
            return "'" + json.dumps(value.decode("iso-8859-1"))[1:-1].replace("'", "''") + "'"
        case GsqlType.IP:
            return f"'{format_ip(int(value))}'"
        case _:
            return str(value)


def _is_wrapped(text: str) -> bool:
    """Whether the first parenthesis closes at the very end."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
