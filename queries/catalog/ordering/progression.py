"""The difference of consecutive values of an ordered expression.

    time/20         1       each value follows the one before it
    time/20*20 + 5  20      5, 25, 45 …
    time*3/2        none    0, 1, 3, 4, 6 …

Groups that live across epochs end each epoch in turn, those without tuples too, so their epoch must
move in steps of 1. Factors and offsets of such a term are removed before grouping, and restored
where the term is read.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.user_functions.calls import UserScalar
from gscope.queries.expressions.expressions import Call, Expression, Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[Expression], int]

_ROUNDING = frozenset({"floor_float", "ceil_float", "round_float"})
_FIRST_ONLY = frozenset({"sub_int", "ts_add", "ts_sub", "shl"})
_EITHER = frozenset({"add_int", "mul_int"})
_CASTS = frozenset({"ts_to_int", "int_to_ts"})


def step_of(expression: Expression, leaf: Step) -> Fraction | None:
    """Return the difference of consecutive values; None where it varies or is unknown.

    Args:
        expression: an ordered expression.
        leaf: returns the steps of fields and columns, 0 for uneven ones.
    """
    if not isinstance(expression, Call):
        known = 0 if isinstance(expression, Literal) else leaf(expression)
        return Fraction(known) if known else None
    if expression.function in ("increasing", "decreasing", "banded"):
        return Fraction(1)
    varying = [n for n, part in enumerate(expression.arguments) if not isinstance(part, Literal)]
    entry = FUNCTIONS[expression.function]
    if len(varying) != 1 or not entry.gains:
        return None
    inner = step_of(expression.arguments[varying[0]], leaf)
    gain = entry.gains[min(varying[0], len(entry.gains) - 1)](expression.arguments)
    if inner is None or not gain:
        return None
    step = abs(gain) * inner
    if expression.type is GsqlType.FLOAT and expression.function not in _ROUNDING:
        return step
    if step <= 1:
        return Fraction(1)
    # A user function declares a limit, not the exact factor.
    is_exact = step.denominator == 1 and not isinstance(entry.evaluate, UserScalar)
    return step if is_exact else None


def whole_step(expression: Expression, leaf: Step) -> int:
    """Return the same as a number for ``Ordering.step``: 0 where it varies."""
    step = step_of(expression, leaf)
    return 0 if step is None or step.denominator != 1 else int(step)


def core_of(expression: Expression, leaf: Step) -> Expression | None:
    """Return the part of an ordered expression that moves in steps of 1; None if there is none.

    The rest must be arithmetic with constants.
    """
    while whole_step(expression, leaf) != 1:
        inner = _inner(expression)
        if inner is None:
            return None
        expression = inner
    return expression


def _inner(expression: Expression) -> Expression | None:
    match expression:
        case Call(function, (inner, Literal())) if function in _FIRST_ONLY | _EITHER:
            return inner
        case Call(function, (Literal(), inner)) if function in _EITHER:
            return inner
        case Call(function, (inner,)) if function in _CASTS:
            return inner
    return None
