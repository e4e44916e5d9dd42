"""The plain meaning of an expression, for the interpreter and for bookkeeping."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    PacketField,
    Value,
)
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def evaluate(expression: Expression, leaf: Callable[[PacketField | Column], Value]) -> Value:
    """Return the value of ``expression``; ``leaf`` returns the values of fields and columns."""
    if isinstance(expression, Literal):
        return expression.value
    if isinstance(expression, Call):
        entry = FUNCTIONS[expression.function]
        values = [evaluate(argument, leaf) for argument in expression.arguments]
        if entry.is_strict and None in values:
            return None
        return entry.evaluate(*values)
    return leaf(expression)


def call(function: str, *arguments: Expression) -> Call:
    """Return a call of a catalog function on arguments that already have the types it takes."""
    entry = FUNCTIONS[function]
    return Call(function, arguments, _result(function, arguments), entry.is_nullable(arguments))


def _result(function: str, arguments: Sequence[Expression]) -> GsqlType:
    entry = FUNCTIONS[function]
    if entry.result is not None:
        return entry.result
    # `case` starts with a condition; its results are the arguments at odd indices and the last.
    candidates = (*arguments[1:-1:2], arguments[-1]) if function == "case" else arguments
    return next((a.type for a in candidates if a.type is not GsqlType.NULL), GsqlType.NULL)
