"""Implicit conversions: each becomes a call of its own, so that nothing later converts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import (
    TIME_EXAMPLE,
    apply,
    parse_mac,
    parse_timestamp,
    text_of,
)
from gscope.queries.analysis.typing.named_values import read_named
from gscope.queries.catalog.scalar.addresses import parse_ip
from gscope.queries.expressions.expressions import Expression, Literal, Value
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.errors import Position

_BOOL, _INT, _FLOAT, _STRING = GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT, GsqlType.STRING
_NUMBERS = (_BOOL, _INT, _FLOAT)
_NS_A_MS = 1e6

_STEPS: dict[tuple[GsqlType, GsqlType], tuple[str, ...]] = {
    (_BOOL, _INT): ("bool_to_int",),
    (_BOOL, _FLOAT): ("bool_to_int", "int_to_float"),
    (_INT, _FLOAT): ("int_to_float",),
    (_STRING, GsqlType.IP): ("string_to_ip",),
}
"""The function of each implicit conversion, by the types from and to."""

_FROM_TEXT: dict[GsqlType, tuple[Callable[[str], Value], str]] = {
    GsqlType.IP: (
        parse_ip,
        "an address such as '10.0.0.1'; for networks write in_net[ip, '10.0.0.0/8']",
    ),
    GsqlType.MAC: (parse_mac, "an address such as 'aa:bb:cc:dd:ee:ff'"),
    GsqlType.TIMESTAMP: (parse_timestamp, TIME_EXAMPLE),
}
"""Types whose constants may be plain text: the function that reads it, and the expected form."""


def convert(
    expression: Expression, target: GsqlType, position: Position, where: str = "here"
) -> Expression:
    """Return ``expression`` as a value of ``target``.

    Raises:
        TypeMismatchError: there is no such implicit conversion.
    """
    if expression.type is target:
        return expression
    if expression.type is GsqlType.NULL:
        return Literal(None, target)
    if isinstance(expression, Literal) and expression.type is _STRING and target in _FROM_TEXT:
        return _read_text(expression, target, position)
    if isinstance(expression, Literal) and (expression.type, target) == (_INT, GsqlType.MAC):
        return Literal(expression.value, target)
    steps = _STEPS.get((expression.type, target))
    if steps is None:
        message = f"expected {target.value} {where}, got {expression.type.value}"
        raise TypeMismatchError(message, position=position, remedy=_remedy(expression.type, target))
    for step in steps:
        expression = apply(step, expression)
    return expression


STRING_STEPS: dict[GsqlType, str] = {
    _STRING: "",
    _INT: "int_to_string",
    _BOOL: "bool_to_string",
    _FLOAT: "float_to_string",
    GsqlType.IP: "ip_to_string",
    GsqlType.MAC: "mac_to_string",
    GsqlType.TIMESTAMP: "timestamp_to_string",
}
"""The function that gives the text of each type, for ``STRING(x)``."""


def as_string(expression: Expression, position: Position) -> Expression:
    """Return the text of ``expression``, as ``STRING`` gives it.

    Raises:
        TypeMismatchError: values of its type have no text.
    """
    if expression.type is GsqlType.NULL:
        return Literal(None, _STRING)
    steps = STRING_STEPS.get(expression.type)
    if steps is None:
        message = f"{expression.type.value} has no text"
        raise TypeMismatchError(message, position=position, remedy="add it to a timestamp")
    for step in steps.split():
        expression = apply(step, expression)
    return expression


def predicate(expression: Expression, position: Position, where: str) -> Expression:
    """Return ``expression`` as a condition; an INT is true unless it is 0.

    Raises:
        TypeMismatchError: the expression is neither BOOL nor INT.
    """
    if expression.type is _INT:
        return apply("int_to_bool", expression)
    return convert(expression, _BOOL, position, where)


def unify(
    expressions: Sequence[Expression], position: Position, where: str
) -> tuple[Expression, ...]:
    """Return all ``expressions`` as values of the one type that they have in common.

    Raises:
        TypeMismatchError: they have none in common.
    """
    common = _common({e.type for e in expressions} - {GsqlType.NULL}, position, where)
    return tuple(convert(e, common, position, where) for e in expressions)


def unify_compared(expressions: Sequence[Expression], position: Position) -> tuple[Expression, ...]:
    """Return all ``expressions`` as values of one type, with conversions for comparisons only.

    An integer beside an IP is the IPv4 address with that value, a difference of times beside an
    interval is in ms, and a text beside some numbers is the number that it names.
    """
    expressions = read_named(expressions, position)
    types = {e.type for e in expressions} - {GsqlType.NULL}
    if GsqlType.IP in types and _INT in types:
        expressions = [_ipv4(e, position) if e.type is _INT else e for e in expressions]
    elif types == {_FLOAT, GsqlType.INTERVAL}:
        expressions = [_in_ms(e) for e in expressions]
    return unify(expressions, position, "in this comparison")


def _common(types: set[GsqlType], position: Position, where: str) -> GsqlType:
    if not types:
        return _INT
    if len(types) == 1:
        return next(iter(types))
    if types <= set(_NUMBERS):
        return max(types, key=_NUMBERS.index)
    special = types - {_STRING}
    if len(special) == 1 and special <= _FROM_TEXT.keys():
        return next(iter(special))
    if types == {_INT, GsqlType.MAC}:
        return GsqlType.MAC
    ordered = sorted(types, key=lambda t: t.value)
    message = f"{' and '.join(t.value for t in ordered)} are incompatible {where}"
    remedy = next((text for pair, text in _REMEDIES.items() if types.issuperset(pair)), "")
    raise TypeMismatchError(message, position=position, remedy=remedy)


def _read_text(literal: Literal, target: GsqlType, position: Position) -> Literal:
    if literal.value is None:
        return Literal(None, target)
    read, example = _FROM_TEXT[target]
    text = text_of(literal)
    value = read(text)
    if value is None:
        message = f"invalid {target.value} {text!r}"
        raise TypeMismatchError(message, position=position, remedy=f"write {example}")
    return Literal(value, target)


def _ipv4(number: Expression, position: Position) -> Expression:
    """Return the IPv4 address with the value ``number``."""
    address = apply("int_to_ip", number)
    if isinstance(number, Literal) and isinstance(address, Literal) and address.value is None:
        message = f"{number.value!r} is not the value of an IPv4 address"
        remedy = "write an integer of 32 bits, or the address itself: '10.0.0.1'"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return address


def _in_ms(expression: Expression) -> Expression:
    if isinstance(expression, Literal) and isinstance(expression.value, int):
        return Literal(expression.value / _NS_A_MS, _FLOAT)
    return expression


_REMEDIES = {
    (GsqlType.TIMESTAMP, _INT): "use `time` for whole seconds, or INT(timestamp) for nanoseconds",
    (GsqlType.TIMESTAMP, _FLOAT): "use `time` for whole seconds, or INT(timestamp) for nanoseconds",
    (GsqlType.TIMESTAMP, GsqlType.INTERVAL): "write the interval as INTERVAL '5 sec'",
    (_STRING, _INT): "write INT(x) to read a number from text",
    (_STRING, _FLOAT): "write INT(x) to read a number from text",
    (GsqlType.IP, _INT): "write INT(ip) for the value of an IPv4 address",
    (_FLOAT, _INT): "write INT(x) to cut off the fraction",
    (_INT, GsqlType.TIMESTAMP): "write TIMESTAMP(x) if x counts nanoseconds",
    (_INT, GsqlType.INTERVAL): "write a length of time as INTERVAL '5 sec'",
}


def _remedy(source: GsqlType, target: GsqlType) -> str:
    if target is _STRING:
        return "write STRING(x) to get a text"
    return _REMEDIES.get((source, target), "")
