"""The epoch of a whole batch at once: its packets rarely belong to more than one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.scope import Literals, Scope, Variant
from gscope.queries.expressions.expressions import Call, Expression, Literal, PacketField

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIME_FIELDS = ("time", "timestamp", "time_ns")


def rises_with_time(expression: Expression) -> bool:
    """Return whether the value depends on the packet's time alone and never falls with it.

    Only expressions that cannot wrap are recognised: times, divided or shifted right by literals.
    """
    match expression:
        case PacketField(name):
            return name in _TIME_FIELDS
        case Call("ts_to_int" | "int_to_ts", (value,)):
            return rises_with_time(value)
        case Call("idiv_int" | "floor_div", (value, Literal(divisor))):
            return isinstance(divisor, int) and divisor > 0 and rises_with_time(value)
        case Call(function="shr", arguments=(value, Literal(count))):
            return isinstance(count, int) and 0 <= count < 64 and rises_with_time(value)
    return False


def epoch_source(number: int, expression: Expression) -> Iterator[str]:
    """Yield the function ``epoch_<number>`` of a time, with which ``expression`` rises."""
    scope = Scope(Variant.OTHER, Literals(), indent=1)
    value = lower(scope, expression)
    yield "@kernel_part"
    yield f"def epoch_{number}(time_ns):"
    yield '    """Return the epoch of a packet with this time."""'
    # The parameter replaces the time that a packet's code loads.
    yield from (line for line in scope.lines if not line.lstrip().startswith("time_ns ="))
    yield f"    return {value.code}"
