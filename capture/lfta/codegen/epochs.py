"""The epoch of a whole batch at once: its packets rarely belong to more than one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.codegen.lower import lower
from gscope.capture.lfta.codegen.scope import Literals, Scope, Variant
from gscope.capture.lfta.value_ranges import ANY_INT, Range
from gscope.queries.catalog.scalar.clock_units import SECOND_NS
from gscope.queries.expressions.expressions import Call, Expression, Literal, PacketField
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Iterator

_FIELD_UNITS = {"time": SECOND_NS, "timestamp": 1, "time_ns": 1}
_USUAL_TIMES = Range(-(1 << 62), MAX_INT)
"""From 1823 on, in nanoseconds: the numbers of slices subtract an offset of as much at most."""


def rising_times(expression: Expression) -> Range | None:
    """Return times, in nanoseconds, between which the value never falls; None if there are none.

    It must depend on the packet's time alone. Only expressions that do not wrap at such times are
    recognised: times divided or shifted right by literals, and sums of these.
    """
    return next((t for t in (ANY_INT, _USUAL_TIMES) if _values(expression, t) is not None), None)


def _values(expression: Expression, times: Range) -> Range | None:
    """Return the values at ``times``; None if they may fall or wrap."""
    match expression:
        case PacketField(name) if name in _FIELD_UNITS:
            unit = _FIELD_UNITS[name]
            return Range(times.low // unit, times.high // unit)
        case Call("ts_to_int" | "int_to_ts", (value,)):
            return _values(value, times)
        case Call("idiv_int" | "floor_div", (value, Literal(int(divisor)))) if divisor > 0:
            # The greater range, of both kinds of division.
            found = _values(value, times)
            return found and Range(found.low // divisor, max(found.high // divisor, 0))
        case Call("shr", (value, Literal(int(count)))) if 0 <= count < 64:
            found = _values(value, times)
            return found and Range(found.low >> count, found.high >> count)
        case Call("add_int", (value, Literal(int(number)))):
            return _sum(_values(value, times), Range(number, number))
        case Call("sub_int", (value, Literal(int(number)))):
            return _sum(_values(value, times), Range(-number, -number))
        case Call("add_int", (left, right)):
            return _sum(_values(left, times), _values(right, times))
    return None


def _sum(left: Range | None, right: Range | None) -> Range | None:
    """Return the sums; None if one of them wraps."""
    if left is None or right is None:
        return None
    total = Range(left.low + right.low, left.high + right.high)
    return total if ANY_INT.low <= total.low and total.high <= ANY_INT.high else None


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
