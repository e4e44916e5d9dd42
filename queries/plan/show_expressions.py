"""Expressions as text for messages and plans."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.scalar.addresses import format_ip
from gscope.queries.catalog.scalar.tables import table_values
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.expressions.expressions import NamedExpression

LEFT_RIGHT = ("left", "right")
"""Names of the sides of a join where the query's own names are not known."""

_SHOWN_CHOICES = 3
"""Number of values of a long IN list that are shown."""

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
    """Return ``expression`` as text, without parentheses around the whole."""
    text = _show(expression)
    return text[1:-1] if text.startswith("(") and _is_wrapped(text) else text


def show_named(columns: Iterable[NamedExpression]) -> str:
    """Return columns as ``name`` or ``name := expression``."""
    return ", ".join(
        column.name
        if show(column.expression) == column.name
        else f"{column.name} := {show(column.expression)}"
        for column in columns
    )


def show_of_sides(expression: Expression, names: Sequence[str] = LEFT_RIGHT) -> str:
    """Return an expression over both sides of a join: ``left.tb + 1``, or with ``names``."""
    return show(_labelled(expression, names))


def show_equalities(
    pairs: Iterable[tuple[Expression, Expression]], names: Sequence[str] = LEFT_RIGHT
) -> str:
    """Return the pairs that a join makes equal: ``left.tb = right.tb + 1, left.srcIP = …``."""
    return ", ".join(f"{show_of_sides(a, names)} = {show_of_sides(b, names)}" for a, b in pairs)


def _labelled(expression: Expression, names: Sequence[str]) -> Expression:
    if isinstance(expression, Column):
        return replace(expression, name=f"{names[expression.input]}.{expression.name}")
    if isinstance(expression, Call):
        arguments = tuple(_labelled(a, names) for a in expression.arguments)
        return replace(expression, arguments=arguments)
    return expression


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
    """Return whether the first parenthesis closes at the very end."""
    depth = 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return position == len(text) - 1
    return False
