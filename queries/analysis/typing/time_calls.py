"""Calls that make times: from seconds, or rounded down to a unit or a bucket.

They are arithmetic on nanoseconds, so that LFTAs compute them and they keep the order of their
arguments:

    date_trunc('minute', ts)  →  ts rounded down to a multiple of 60 s
    to_timestamp(s)           →  s * 10⁹ as a time
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply, text_of
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
from gscope.queries.gsql.literals import UNITS_NS, read_interval_ns

if TYPE_CHECKING:
    from gscope.errors import Position
    from gscope.queries.gsql import nodes

_INT, _FLOAT, _TIMESTAMP = GsqlType.INT, GsqlType.FLOAT, GsqlType.TIMESTAMP
_NS_A_SECOND = 1_000_000_000

_CLOCK_UNITS = {
    "seconds": (1_000_000_000, 10**11),
    "milliseconds": (1_000_000, 10**14),
    "microseconds": (1_000, 10**17),
    "nanoseconds": (1, 1 << 63),
}
"""Units of clocks: their nanoseconds, and a number beyond any clock of this century."""

_PARTS = frozenset({"mod_int", "bit_and"})
"""Functions whose result, of a time since 1970, is only a part of one."""

_DAY_NS = UNITS_NS["day"]
_MONDAY_NS = -3 * _DAY_NS
"""The Monday before 1970, a Thursday."""

_UNITS: dict[str, tuple[int, int]] = {
    "microsecond": (UNITS_NS["us"], 0),
    "millisecond": (UNITS_NS["ms"], 0),
    "second": (_NS_A_SECOND, 0),
    "minute": (UNITS_NS["min"], 0),
    "hour": (UNITS_NS["hour"], 0),
    "day": (_DAY_NS, 0),
    "week": (7 * _DAY_NS, _MONDAY_NS),
}
"""Units of ``date_trunc``: their nanoseconds, and the time at which one of them begins."""


def date_trunc(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Build ``date_trunc('minute', ts)``: the beginning of the unit that contains a time.

    Raises:
        TypeMismatchError: the unit is unknown or of variable length, or the argument is not a time.
    """
    unit, time = _unit_and_time(arguments, node, "'minute'")
    name = text_of(unit).lower()
    known = _UNITS.get(name) or _UNITS.get(name.removesuffix("s"))
    if known is None:
        message = f"invalid unit of {node.name}: expected {', '.join(_UNITS)}, got {name!r}"
        remedy = "other lengths: time_bucket('10 sec', timestamp)"
        raise TypeMismatchError(message, position=node.args[0].position, remedy=remedy)
    return _rounded_down(time, *known)


def time_bucket(arguments: tuple[Expression, ...], node: nodes.FunctionCall) -> Expression:
    """Build ``time_bucket('10 sec', ts)``: the beginning of the bucket that contains a time.

    One bucket begins at 1970.

    Raises:
        TypeMismatchError: the first argument is not a length of time, or the second not a time.
    """
    length, time = _unit_and_time(arguments, node, "'10 sec'")
    value = length.value
    if length.type is GsqlType.STRING:
        value = read_interval_ns(text_of(length))
    if not isinstance(value, int) or value <= 0:
        message = f"invalid bucket of {node.name}: expected a length of time such as '10 sec'"
        raise TypeMismatchError(message, position=node.args[0].position)
    return _rounded_down(time, value, 0)


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
        rest = apply("mul_float", fraction, Literal(float(_NS_A_SECOND), _FLOAT))
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
    forms = {"seconds": "to_timestamp(…)", "nanoseconds": "TIMESTAMP(…)"}
    form = forms.get(found) or f"TIMESTAMP((…) * {_CLOCK_UNITS[found][0]})"
    remedy = f"write {form} in place of {node.name}(…)"
    raise TypeMismatchError(message, position=node.position, remedy=remedy)


def _unit_of(expression: Expression) -> str | None:
    """Return the unit in which an INT computed from clocks counts, None if it is unknown.

    It is recognised by the size of the number.
    """
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
    return apply("mul_int", seconds, Literal(_NS_A_SECOND, _INT))


def _rounded_down(time: Expression, length_ns: int, origin_ns: int) -> Expression:
    number = apply("ts_to_int", time)
    if origin_ns:
        number = apply("sub_int", number, Literal(origin_ns, _INT))
    unit = Literal(length_ns, _INT)
    number = apply("mul_int", apply("floor_div", number, unit), unit)
    if origin_ns:
        number = apply("add_int", number, Literal(origin_ns, _INT))
    return apply("int_to_ts", number)


def _unit_and_time(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, example: str
) -> tuple[Literal, Expression]:
    _check_count(arguments, node, 2)
    unit, time = arguments
    kinds = (GsqlType.STRING, GsqlType.INTERVAL)
    if not isinstance(unit, Literal) or unit.type not in kinds:
        message = f"invalid argument 1 of {node.name}: expected a constant such as {example}"
        raise TypeMismatchError(message, position=node.args[0].position)
    if time.type is not _TIMESTAMP:
        message = f"{node.name} takes a TIMESTAMP, not {time.type.value}"
        remedy = _remedy(time, node.name, example)
        raise TypeMismatchError(message, position=node.args[1].position, remedy=remedy)
    return unit, time


def _remedy(time: Expression, function: str, example: str) -> str:
    if time.type is _INT:
        return f"write timestamp, or {function}({example}, to_timestamp(x)) if x counts seconds"
    return f"for example {function}({example}, timestamp)"


def _check_count(
    arguments: tuple[Expression, ...], node: nodes.FunctionCall, expected: int
) -> None:
    if len(arguments) != expected:
        noun = "argument" if expected == 1 else "arguments"
        message = f"{node.name} takes {expected} {noun}, not {len(arguments)}"
        position: Position = node.position
        raise TypeMismatchError(message, position=position)
