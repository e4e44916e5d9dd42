"""Arithmetic of constant intervals: ``INTERVAL '1 min' * 3``, sums and differences, parts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.catalog.scalar.integers import divide, wrap
from gscope.queries.expressions.expressions import Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import BinaryOperator

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import Position

_INT, _INTERVAL = GsqlType.INT, GsqlType.INTERVAL

_RULES: dict[tuple[BinaryOperator, GsqlType, GsqlType], Callable[[int, int], int | None]] = {
    (BinaryOperator.ADD, _INTERVAL, _INTERVAL): lambda a, b: a + b,
    (BinaryOperator.SUBTRACT, _INTERVAL, _INTERVAL): lambda a, b: a - b,
    (BinaryOperator.MULTIPLY, _INTERVAL, _INT): lambda a, b: a * b,
    (BinaryOperator.MULTIPLY, _INT, _INTERVAL): lambda a, b: a * b,
    (BinaryOperator.DIVIDE, _INTERVAL, _INT): divide,
    (BinaryOperator.INTEGER_DIVIDE, _INTERVAL, _INT): divide,
}


def interval(
    operator: BinaryOperator, left: Expression, right: Expression, position: Position
) -> Expression:
    """Return ``left operator right``, one of which is an INTERVAL.

    Raises:
        TypeMismatchError: the operator does not apply to them, one of them is not a constant, or
            the result is too large.
    """
    rule = _RULES.get((operator, left.type, right.type))
    if rule is None:
        message = f"{left.type.value} {operator.value} {right.type.value} has no meaning"
        remedy = (
            "add an interval to a timestamp, divide a timestamp by it, or multiply it by an integer"
        )
        raise TypeMismatchError(message, position=position, remedy=remedy)
    if not (isinstance(left, Literal) and isinstance(right, Literal)):
        message = f"{operator.value} takes constant intervals and constant numbers"
        remedy = "for a length that varies compute in nanoseconds: time_ns + len * 1000000"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    if left.value is None or right.value is None:
        return Literal(None, _INTERVAL)
    length_ns = rule(int(left.value), int(right.value))
    if length_ns is None or length_ns != wrap(length_ns):
        message = "this interval is not a whole number of nanoseconds below 292 years"
        raise TypeMismatchError(message, position=position, remedy="write it as INTERVAL '1 day'")
    return Literal(length_ns, _INTERVAL)
