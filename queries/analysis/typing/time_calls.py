"""Calls that make times: from seconds, or rounded down to a unit or a bucket.

They are integer arithmetic, so that LFTAs compute them and they keep the order of their arguments:

    to_timestamp(s)           →  s * 10⁹ as a time
    date_trunc('minute', ts)  →  ts rounded down to a multiple of 60 s
    minute(ts)                →  the same
    minute(time)              →  time FLOOR_DIV 60 * 60 * 10⁹ as a time
    time_bucket('10 sec')     →  timestamp rounded down to a multiple of 10 s
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply, text_of
from gscope.queries.catalog.scalar.clock_units import SECOND_NS, clock_unit
from gscope.queries.catalog.scalar.magnitudes import usual_magnitude
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    PacketField,
    walk,
)
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.intervals import UNITS_NS, read_interval_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import Position
    from gscope.queries.gsql import nodes

    Meaning = Callable[[Expression], Expression]

_INT, _FLOAT, _TIMESTAMP = GsqlType.INT, GsqlType.FLOAT, GsqlType.TIMESTAMP

_CLOCK_UNITS = {
    "seconds": (1_000_000_000, 10**11),
    "milliseconds": (1_000_000, 10**14),
    "microseconds": (1_000, 10**17),
    "nanoseconds": (1, 1 << 63),
}
"""Units of clocks: their nanoseconds, and a number beyond any clock of this century."""

_FORMS = {
    "seconds": "to_timestamp(…)",
    "nanoseconds": "TIMESTAMP(…)",
    "minutes": "minute(…)",
    "hours": "hour(…)",
    "days": "day(…)",
}
"""The call that makes a time of a number in each unit."""

_PARTS = frozenset({"mod_int", "bit_and"})
"""Functions whose result, of a time since 1970, is only a part of one."""

_DAY_NS = UNITS_NS["day"]
_MONDAY_NS = -3 * _DAY_NS
"""The Monday before 1970, a Thursday."""

_UNITS: dict[str, tuple[int, int]] = {
    "microsecond": (UNITS_NS["us"], 0),
    "millisecond": (UNITS_NS["ms"], 0),
    "second": (SECOND_NS, 0),
    "minute": (UNITS_NS["min"], 0),
    "hour": (UNITS_NS["hour"], 0),
    "day": (_DAY_NS, 0),
    "week": (7 * _DAY_NS, _MONDAY_NS),
}
"""Units of ``date_trunc``: their nanoseconds, and the time at which one of them begins."""


_UNIT_NAMES = {
    **{length: name for name, (length, _) in _CLOCK_UNITS.items()},
    **{_UNITS[unit][0]: f"{unit}s" for unit in ("minute", "hour", "day")},
}
"""The name of a unit by its nanoseconds."""

UNIT_FUNCTIONS = ("second", "minute", "hour", "day")
"""Functions that are ``date_trunc`` of the unit that they are called after."""

PACKET_TIME = "timestamp"
"""The field that ``time_bucket`` rounds down if its second argument is missing."""


def _itself(expression: Expression) -> Expression:
    return expression


def date_trunc(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, meaning: Meaning = _itself
) -> Expression:
    """Build ``date_trunc('minute', t)``: the beginning of the unit that contains a time.

    Args:
        arguments: the arguments, typed.
        node: the call.
        meaning: returns an expression with those that its columns were computed from, by which the
            unit of an INT is known.

    Raises:
        TypeMismatchError: the unit is unknown or of variable length, or the argument is not a time.
    """
    unit = _constant(arguments, node, "'minute'")
    name = text_of(unit).lower()
    known = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    if known is None:
        message = f"invalid unit of {node.name}: expected {', '.join(_UNITS)}, got {name!r}"
        remedy = "other lengths: time_bucket('10 sec')"
        raise TypeMismatchError(message, position=node.args[0].position, remedy=remedy)
    return _rounded_down(*_clock(arguments[1], node, meaning, "'minute', "), *known)


def time_bucket(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, meaning: Meaning = _itself
) -> Expression:
    """Build ``time_bucket('10 sec', t)``: the beginning of the bucket that contains a time.

    One bucket begins at 1970.

    Args:
        arguments: the arguments, typed.
        node: the call.
        meaning: see ``date_trunc``.

    Raises:
        TypeMismatchError: the first argument is not a length of time, or the second not a time.
    """
    length = _constant(arguments, node, "'10 sec'")
    value = length.value
    if length.type is GsqlType.STRING:
        value = read_interval_ns(text_of(length))
    if not isinstance(value, int) or value <= 0:
        message = f"invalid bucket of {node.name}: expected a length of time such as '10 sec'"
        raise TypeMismatchError(message, position=node.args[0].position)
    return _rounded_down(*_clock(arguments[1], node, meaning, "'10 sec', "), value, 0)


def start_of_unit(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, meaning: Meaning = _itself
) -> Expression:
    """Build ``minute(t)``, and the same of the other units: the beginning of the unit.

    Args:
        arguments: the arguments, typed.
        node: the call.
        meaning: see ``date_trunc``.

    Raises:
        TypeMismatchError: the argument is not a time.
    """
    _check_count(arguments, node, 1)
    return _rounded_down(*_clock(arguments[0], node, meaning, ""), *_UNITS[node.name.lower()])


ROUNDING = {
    "date_trunc": date_trunc,
    "time_bucket": time_bucket,
    **dict.fromkeys(UNIT_FUNCTIONS, start_of_unit),
}
"""Functions that round a time down, by their names in queries."""


def takes_packet_time(node: nodes.FunctionCall) -> bool:
    """Return whether a call is ``time_bucket('10 sec')``, of the packet's timestamp."""
    return node.name.lower() == "time_bucket" and len(node.args) == 1


def to_timestamp(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Build ``to_timestamp(s)``: the time ``s`` seconds after 1970, of FLOAT with its fraction.

    Raises:
        TypeMismatchError: the argument is not a number.
    """
    _check_count(arguments, node, 1)
    (seconds,) = arguments
    if seconds.type is _INT:
        return apply("int_to_ts", _nanoseconds(seconds))
    if seconds.type is _FLOAT:
        # A double holds today's ns in steps of 256, so seconds and fraction are converted apart.
        whole = apply("float_to_int", seconds)
        fraction = apply("sub_float", seconds, apply("int_to_float", whole))
        rest = apply("mul_float", fraction, Literal(float(SECOND_NS), _FLOAT))
        below = apply("float_to_int", apply("round_float", rest))
        return apply("int_to_ts", apply("add_int", _nanoseconds(whole), below))
    message = f"{node.name} takes seconds as INT or FLOAT, not {seconds.type.value}"
    raise TypeMismatchError(message, position=node.args[0].position)


def check_unit(argument: Expression, node: nodes.FunctionCall) -> None:
    """Refuse ``TIMESTAMP(x)`` and ``to_timestamp(x)`` of a clock that counts in another unit.

    The result would be in January 1970, or beyond all calendars.

    Raises:
        TypeMismatchError: the clock counts in another unit.
    """
    wanted = "seconds" if node.name.lower() == "to_timestamp" else "nanoseconds"
    found = _unit_of(argument)
    if found is None or found == wanted:
        return
    message = f"{node.name} takes {wanted} since 1970, but its argument counts {found}"
    form = _FORMS.get(found) or f"TIMESTAMP((…) * {_CLOCK_UNITS[found][0]})"
    remedy = f"write {form} in place of {node.name}(…)"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)


def usual_size(clock: Expression) -> float:
    """Return the size of the numbers that a clock shows in these decades."""
    return float(usual_magnitude(clock))


def _unit_of(expression: Expression) -> str | None:
    """Return the unit in which an INT computed from clocks counts, None if it is unknown.

    A unit that does not follow from the arithmetic is recognised by the size of the number.
    """
    exact = None if expression.type is not _INT else clock_unit(expression, lambda _: None)
    if exact is not None and exact.unit_ns in _UNIT_NAMES:
        return _UNIT_NAMES[exact.unit_ns]
    parts = list(walk(expression))
    leaves = [part for part in parts if isinstance(part, PacketField | Column)]
    clocks = [
        leaf
        for leaf in leaves
        if (leaf.name == "time" and leaf.type is _INT)
        or (leaf.name in ("time_ns", "timestamp") and isinstance(leaf, PacketField))
    ]
    is_part = any(isinstance(part, Call) and part.function in _PARTS for part in parts)
    if expression.type is not _INT or not clocks or clocks != leaves or is_part:
        return None
    size = usual_magnitude(expression)
    return next((unit for unit, (_, limit) in _CLOCK_UNITS.items() if size < limit), None)


def _nanoseconds(seconds: Expression) -> Expression:
    return apply("mul_int", seconds, Literal(SECOND_NS, _INT))


def _rounded_down(number: Expression, unit_ns: int, length_ns: int, origin_ns: int) -> Expression:
    """Return the beginning of a bucket as a time.

    Args:
        number: the time, as an INT.
        unit_ns: the nanoseconds that 1 of ``number`` stands for.
        length_ns: the length of each bucket.
        origin_ns: the time at which one bucket begins.
    """
    if length_ns % unit_ns or origin_ns % unit_ns:
        number, unit_ns = apply("mul_int", number, Literal(unit_ns, _INT)), 1
    if origin_ns:
        number = apply("sub_int", number, Literal(origin_ns // unit_ns, _INT))
    if length_ns != unit_ns:
        number = apply("floor_div", number, Literal(length_ns // unit_ns, _INT))
    number = apply("mul_int", number, Literal(length_ns, _INT))
    if origin_ns:
        number = apply("add_int", number, Literal(origin_ns, _INT))
    return apply("int_to_ts", number)


def _clock(
    time: Expression, node: nodes.FunctionCall, meaning: Meaning, before: str
) -> tuple[Expression, int]:
    """Return a time as an INT, and the nanoseconds that 1 of it stands for.

    Args:
        time: the argument.
        node: the call.
        meaning: see ``date_trunc``.
        before: the arguments before it, for the remedy.

    Raises:
        TypeMismatchError: the argument is not a time.
    """
    if time.type is _TIMESTAMP:
        return apply("ts_to_int", time), 1
    example = f"{node.name}({before}to_timestamp(x))"
    if time.type is _INT:
        unit = clock_unit(meaning(time), lambda _: None)
        if unit is not None:
            return time, unit.unit_ns
        message = f"{node.name} takes a time, but it is unknown what this INT counts"
        remedy = f"write {example} if x counts seconds since 1970"
    else:
        message = f"{node.name} takes a time, not {time.type.value}"
        remedy = f"write {node.name}({before}timestamp) or {node.name}({before}time)"
        if time.type is _FLOAT:
            remedy = f"write {example} if x counts seconds since 1970"
    raise TypeMismatchError(message, position=node.args[-1].position, remedy=remedy)


def _constant(arguments: tuple[Expression, ...], node: nodes.FunctionCall, example: str) -> Literal:
    """Return the first of two arguments: the constant unit or length."""
    _check_count(arguments, node, 2)
    unit = arguments[0]
    kinds = (GsqlType.STRING, GsqlType.INTERVAL)
    if not isinstance(unit, Literal) or unit.type not in kinds:
        message = f"invalid argument 1 of {node.name}: expected a constant such as {example}"
        raise TypeMismatchError(message, position=node.args[0].position)
    return unit


def _check_count(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, expected: int
) -> None:
    if len(arguments) != expected:
        noun = "argument" if expected == 1 else "arguments"
        message = f"{node.name} takes {expected} {noun}, not {len(arguments)}"
        position: Position = node.position
        raise TypeMismatchError(message, position=position)
