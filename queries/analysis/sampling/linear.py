"""What an expression over estimated columns is: still an estimate of a total, or of something else.

Counts and sums multiplied by 1/rate stay so under sums, differences and constant factors. A ratio
of two of them, or a function of one, is an estimate that needs no factor. A condition over an
estimate is not an estimate: it may be true in the sample and false in the full answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Column, Expression, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program_sampling import Standing
from gscope.queries.plan.sample_columns import OF_SAMPLE, SAMPLE_GROUPS

if TYPE_CHECKING:
    from collections.abc import Callable

_SUMS = frozenset({"add_int", "sub_int", "add_float", "sub_float", "neg_int", "neg_float"})
_PRODUCTS = frozenset({"mul_int", "mul_float"})
_SAME = frozenset({"int_to_float", "non_temporal"})


def standing_of(expression: Expression, column: Callable[[Column], Standing]) -> Standing | None:
    """Return what an expression over columns of known standing is.

    None if it compares or tests an estimate.
    """
    if isinstance(expression, Column):
        return column(expression)
    if not isinstance(expression, Call):
        return Standing.WHOLE
    if expression.function == SAMPLE_GROUPS:
        return Standing.WHOLE  # but see ``Judge``
    if expression.function in OF_SAMPLE:
        of_value = standing_of(expression.arguments[0], column)
        return Standing.ESTIMATED if of_value is Standing.SCALED else of_value
    parts = [standing_of(argument, column) for argument in expression.arguments]
    if None in parts:
        return None
    if all(part is Standing.WHOLE for part in parts):
        return Standing.WHOLE
    if expression.type is GsqlType.BOOL:
        return None
    if _is_linear(expression, parts):
        return Standing.SCALED
    return Standing.ESTIMATED


def _is_linear(call: Call, parts: list[Standing | None]) -> bool:
    """Return whether a call of estimates of totals estimates a total again."""
    others = [
        a for a, part in zip(call.arguments, parts, strict=True) if part is not Standing.SCALED
    ]
    if call.function in _SAME:
        return not others
    if call.function in _SUMS:
        return all(_is_zero(other) for other in others)
    if call.function == "coalesce":
        # Of two estimates, which one is taken depends on the sample.
        return parts[0] is Standing.SCALED and all(map(_is_zero, call.arguments[1:]))
    if call.function in _PRODUCTS:
        return len(others) == 1 and isinstance(others[0], Literal)
    return (
        call.function == "div_float"
        and parts[0] is Standing.SCALED
        and isinstance(call.arguments[1], Literal)
    )


def _is_zero(expression: Expression) -> bool:
    return isinstance(expression, Literal) and not expression.value
