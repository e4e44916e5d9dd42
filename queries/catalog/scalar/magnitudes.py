"""How large a number can become: bounds of expressions that hold before 64 bits wrap.

Two questions need them: whether a FLOAT always fits INT (otherwise its cast can be NULL), and
whether arithmetic on a clock can wrap (then it loses its order).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable

    Reach = Callable[[Column], int]

Magnitude = Fraction | float
"""The greatest absolute value; infinite if nothing bounds it."""

INT_LIMIT = Fraction(1 << 63)

_BITS = ("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR", "more_fragments", "dont_fragment")
_16_BITS = (
    *("ethertype", "vlan", "inner_vlan", "op", "ipversion", "header_length", "tos", "dscp", "ecn"),
    *("id", "offset", "ttl", "protocol", "srcPort", "destPort", "flags", "window", "udp_length"),
    *("type", "code", "icmp_id", "icmp_seq"),
)
_FIELDS = {
    **dict.fromkeys(_BITS, 1),
    **dict.fromkeys(_16_BITS, (1 << 16) - 1),
    "time": 9_223_372_036,
    "time_ns": 1 << 63,
    "timestamp": 1 << 63,
    "len": 1 << 31,
    **dict.fromkeys(("packets", "bytes", "first", "last", "exported"), 1 << 63),
}
_CLOCKS = {"time": 1 << 31, "time_ns": 1 << 61, "timestamp": 1 << 61}
"""The values that clocks show until the years 2038 and 2043."""

_WIDEST_FIELD = 1 << 32
_CLOCK_TYPES = (GsqlType.INT, GsqlType.TIMESTAMP)
_TYPES: dict[GsqlType, Magnitude] = {
    GsqlType.BOOL: Fraction(1),
    GsqlType.MAC: Fraction(1 << 48),
    GsqlType.FLOAT: math.inf,
}
_CALLS = {"length": 1 << 31, "ip_to_int": 1 << 32, "bool_to_int": 1}
_SAME = frozenset(
    {"neg_int", "abs_int", "neg_float", "abs_float", "int_to_float", "float_to_int"}
    | {"ts_to_int", "int_to_ts", "non_temporal", "increasing", "decreasing", "banded"}
)
_SUMS = frozenset({"add_int", "sub_int", "add_float", "sub_float", "ts_add", "ts_sub"})
_PRODUCTS = frozenset({"mul_int", "mul_float"})
_QUOTIENTS = frozenset({"idiv_int", "floor_div", "ts_idiv", "div_float"})
_WHOLE = frozenset({"floor_float", "ceil_float", "round_float"})
_CHOICES = frozenset({"coalesce", "min_of", "max_of"})


def magnitude(expression: Expression) -> Magnitude:
    """Return a bound that no value exceeds; for arithmetic that wraps, that of its type."""
    return _bound(expression, None)


def usual_magnitude(expression: Expression, reach: Reach = lambda _: 0) -> Magnitude:
    """Return the same while clocks show values of these decades; see ``can_wrap``."""
    return _bound(expression, reach)


def can_wrap(expression: Call, reach: Reach) -> bool:
    """Return whether arithmetic on a clock exceeds 64 bits within these decades.

    Args:
        expression: the arithmetic.
        reach: returns ``Ordering.reach`` of a column. Where it is 0, INT is taken for seconds, and
            TIMESTAMP for nanoseconds.
    """
    return expression.type is not GsqlType.FLOAT and _of_call(expression, reach) > INT_LIMIT


def _bound(expression: Expression, reach: Reach | None) -> Magnitude:
    """Return the bound of any value, or with ``reach`` that of the values of these decades."""
    match expression:
        case Literal(value):
            return _of_value(value)
        case PacketField(name):
            known = {**_FIELDS, **(_CLOCKS if reach is not None else {})}
            bound = known.get(name.rpartition(".")[2])
            widest = _TYPES.get(expression.type, Fraction(_WIDEST_FIELD))
            return widest if bound is None else Fraction(bound)
        case Column() if reach is not None and expression.type in _CLOCK_TYPES:
            clock = "time" if expression.type is GsqlType.INT else "time_ns"
            return Fraction(reach(expression) or _CLOCKS[clock])
        case Call() if expression.type is not GsqlType.FLOAT:
            return min(_of_call(expression, reach), INT_LIMIT)
        case Call():
            return _of_call(expression, reach)
    return _TYPES.get(expression.type, INT_LIMIT)


def _of_value(value: object) -> Magnitude:
    if isinstance(value, float):
        return Fraction(abs(value)) if math.isfinite(value) else math.inf
    return Fraction(abs(value)) if isinstance(value, int) else Fraction(0)


def _of_call(call: Call, reach: Reach | None) -> Magnitude:
    """Return the bound of a result before it wraps."""
    name, arguments = call.function, call.arguments
    if name in _CALLS:
        return Fraction(_CALLS[name])
    bounds = [_bound(argument, reach) for argument in arguments]
    constant = arguments[-1].value if arguments and isinstance(arguments[-1], Literal) else None
    if name in _SAME:
        return bounds[0]
    if name in _SUMS:
        return bounds[0] + bounds[1]
    if name in _PRODUCTS:
        return bounds[0] * bounds[1] if math.inf not in bounds else math.inf
    if name in _QUOTIENTS and isinstance(constant, int | float) and bounds[-1]:
        return bounds[0] / bounds[-1] + (name == "floor_div")
    if name == "mod_int":
        return min(bounds)
    if name == "bit_and" and isinstance(constant, int) and constant >= 0:
        return bounds[-1]
    if name in ("shl", "shr") and isinstance(constant, int) and 0 <= constant < 64:
        scale = Fraction(1 << constant)
        return bounds[0] * scale if name == "shl" else bounds[0] / scale + 1
    if name in _WHOLE:
        return bounds[0] + 1
    if name in _CHOICES:
        return max(bounds)
    if name == "case":
        return max(*bounds[1:-1:2], bounds[-1])
    return _TYPES.get(call.type, INT_LIMIT)
