"""How an expression counts time: the nanoseconds since 1970 that 1 stands for.

    time              1 s
    time/60           60 s
    time/60*60        1 s, always a multiple of 60 s
    time_ns/1000      1 µs
    time % 60         unknown: a part of a time

A unit is stated only if every value of the expression is a time: sums with another column,
remainders and differences of times have none. Neither have expressions that count from another
origin than 1970, such as ``time - 1700000000``.
"""

from __future__ import annotations

from fractions import Fraction
from math import gcd
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.schema import ClockUnit
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Leaf = Callable[[Column], ClockUnit | None]

SECOND_NS = 1_000_000_000
_MOST_SHIFT_NS = 366 * 86_400 * SECOND_NS
"""A time that a constant moves further than this is taken for a count from another origin."""

_FIELDS = {"time": SECOND_NS, "time_ns": 1, "timestamp": 1}
_SAME = frozenset({"ts_to_int", "int_to_ts", "non_temporal", "increasing", "decreasing", "banded"})
_QUOTIENTS = frozenset({"idiv_int", "floor_div", "ts_idiv"})
_CHOICES = frozenset({"coalesce", "min_of", "max_of"})
_ANY_TIMESTAMP = ClockUnit(1, 1)


@dataclass(frozen=True, slots=True)
class _Unit:
    """A ``ClockUnit`` whose unit need not be whole, as that of ``time*7`` in ``time*7/7``."""

    unit: Fraction
    grain: int


def clock_unit(expression: Expression, leaf: Leaf) -> ClockUnit | None:
    """Return how ``expression`` counts time, None if it is not known to be a time.

    Args:
        expression: an INT or TIMESTAMP; every TIMESTAMP is a time.
        leaf: returns the same of a column.
    """
    found = _unit(expression, leaf)
    if expression.type is GsqlType.TIMESTAMP:
        return _ANY_TIMESTAMP if found is None else ClockUnit(1, found.grain)
    if found is None or found.unit.denominator != 1:
        return None
    return ClockUnit(int(found.unit), found.grain)


def common_unit(units: Iterable[ClockUnit | None]) -> ClockUnit | None:
    """Return the unit of a column that takes values of several; None unless all have the same."""
    known = list(units)
    first = known[0] if known else None
    if first is None or any(each is None or each.unit_ns != first.unit_ns for each in known):
        return None
    return ClockUnit(first.unit_ns, gcd(*(each.grain_ns for each in known if each is not None)))


def _unit(expression: Expression, leaf: Leaf) -> _Unit | None:
    match expression:
        case PacketField(name):
            known = _FIELDS.get(name)
            return None if known is None else _Unit(Fraction(known), known)
        case Column():
            column = leaf(expression)
            return None if column is None else _Unit(Fraction(column.unit_ns), column.grain_ns)
        case Literal(int(value), GsqlType.TIMESTAMP):
            return _Unit(Fraction(1), abs(value))
        case Call():
            return _of_call(expression, leaf)
    return None


def _of_call(call: Call, leaf: Leaf) -> _Unit | None:
    name, arguments = call.function, call.arguments
    if name in _CHOICES:
        return _common(arguments, leaf)
    if name == "case":
        return _common([*arguments[1:-1:2], arguments[-1]], leaf)
    if name in ("add_int", "mul_int") and isinstance(arguments[0], Literal):
        arguments = arguments[::-1]
    inner = _unit(arguments[0], leaf) if arguments else None
    if inner is None:
        return None
    if name in _SAME:
        return inner
    constant = arguments[1] if len(arguments) > 1 else None
    if not isinstance(constant, Literal) or not isinstance(constant.value, int):
        return None
    return _with_constant(name, inner, int(constant.value))


def _with_constant(name: str, inner: _Unit, value: int) -> _Unit | None:
    """Return the unit of a call whose second argument is the constant ``value``."""
    if name in ("shl", "shr"):
        if not 0 <= value < 64:
            return None
        name, value = ("mul_int" if name == "shl" else "idiv_int"), 1 << value
    if name in ("add_int", "sub_int", "ts_add", "ts_sub"):
        shift = abs(value) * inner.unit
        if shift > _MOST_SHIFT_NS or shift.denominator != 1:
            return None
        return _Unit(inner.unit, gcd(inner.grain, int(shift)))
    if value <= 0:
        return None
    if name == "mul_int":
        return _Unit(inner.unit / value, inner.grain)
    if name in _QUOTIENTS:
        unit = inner.unit * value
        return _Unit(unit, int(unit) if unit.denominator == 1 else 1)
    return None


def _common(choices: Iterable[Expression], leaf: Leaf) -> _Unit | None:
    """Return the unit of a choice, of which NULL is left out."""
    present = [c for c in choices if not (isinstance(c, Literal) and c.value is None)]
    units = [_unit(choice, leaf) for choice in present]
    first = units[0] if units else None
    if first is None or any(unit is None or unit.unit != first.unit for unit in units):
        return None
    return _Unit(first.unit, gcd(*(unit.grain for unit in units if unit is not None)))
