"""Lowering of typed expressions to statements: leaves here, functions by table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.functions import LOWERINGS
from gscope.capture.lfta.codegen.packet_fields import lower_field
from gscope.capture.lfta.codegen.scope import IPV4_MAPPED, Lowered, Scope, null_literal
from gscope.capture.lfta.codegen.user import is_user_function, lower_user_function
from gscope.errors import UnsupportedError
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Value


def lower(scope: Scope, expression: Expression) -> Lowered:
    """Add the statements that compute ``expression`` to ``scope``.

    All functions are total, so any expression can be computed for any packet of the variant.

    Raises:
        UnsupportedError: kernels do not support a function.
    """
    # By its text: 0.0 and -0.0 are equal, but not the same constant.
    text = repr(expression)
    if text not in scope.lowered:
        scope.lowered[text] = _lower(scope, expression)
    return scope.lowered[text]


def lower_value(scope: Scope, value: Value, type_: GsqlType) -> Lowered:
    """Return a constant."""
    if value is None:
        return null_literal(type_)
    parts: tuple[str, ...]
    if isinstance(value, bytes):
        parts = (f"(literals + {scope.literals.place(value)})", str(len(value)))
    elif type_ is GsqlType.IP:
        number = int(value)
        parts = (int_code(number >> 64), int_code(number & (2**64 - 1)))
    elif type_ is GsqlType.FLOAT:
        parts = (_float_code(float(value)),)
    elif type_ is GsqlType.BOOL:
        parts = (str(bool(value)),)
    else:
        parts = (int_code(int(value)),)
    is_ipv4 = type_ is GsqlType.IP and isinstance(value, int) and value >> 32 == IPV4_MAPPED >> 32
    return Lowered(type_, parts, is_literal=True, literal=value, is_ipv4=is_ipv4)


def int_code(number: int) -> str:
    """Return code for a 64-bit number as numba needs it: signed."""
    wrapped = (number + 2**63) % 2**64 - 2**63
    return str(wrapped)


def _float_code(number: float) -> str:
    if number != number:
        return "NAN"
    if number in (float("inf"), float("-inf")):
        return "INFINITY" if number > 0 else "(-INFINITY)"
    return f"({number!r})"


def _lower(scope: Scope, expression: Expression) -> Lowered:
    match expression:
        case Literal(value, type_):
            return lower_value(scope, value, type_)
        case PacketField():
            return lower_field(scope, expression)
        case Call(function, arguments):
            is_user = is_user_function(function)
            if function not in LOWERINGS and not is_user:
                message = f"the function {function!r} cannot run in an LFTA"
                raise UnsupportedError(message)
            lowered = tuple(lower(scope, argument) for argument in arguments)
            if all(argument.is_literal for argument in lowered):
                return lower_value(scope, _fold(expression, lowered), expression.type)
            if FUNCTIONS[function].is_strict and any(a.is_always_null for a in lowered):
                return null_literal(expression.type)
            lowering = lower_user_function if is_user else LOWERINGS[function]
            result = lowering(scope, expression, lowered)
            return result if expression.is_nullable else _never_null(result)
        case Column(name):
            message = f"an LFTA reads packets; it has no input column {name!r}"
            raise UnsupportedError(message)


def _fold(call: Call, arguments: tuple[Lowered, ...]) -> Value:
    """Return the value of a call with constant arguments."""
    literals = tuple(Literal(argument.literal, argument.type) for argument in arguments)
    return evaluate(Call(call.function, literals, call.type, call.is_nullable), _no_leaf)


def _no_leaf(leaf: PacketField | Column) -> Value:
    message = f"{leaf.name} is not a constant"
    raise ValueError(message)


def _never_null(lowered: Lowered) -> Lowered:
    """Return ``lowered`` without a NULL condition: the analysis has ruled NULL out."""
    return lowered if lowered.is_always_null else lowered.with_null(None)
