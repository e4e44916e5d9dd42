"""Literals: the value of their text, and their canonical spelling."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.errors import GsqlSyntaxError
from gscope.queries.gsql.intervals import UNITS_NS, read_interval_ns
from gscope.queries.gsql.nodes import LiteralKind, LiteralSyntax
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import Position
    from gscope.queries.gsql.nodes import LiteralValue

MAX_INTEGER = 2**64 - 1
"""The greatest hexadecimal integer: its 64 bits are those of a signed number."""


def read_literal(terminal: str, text: str, position: Position) -> LiteralSyntax:
    """Return the literal that a token of the grammar stands for.

    Raises:
        GsqlSyntaxError: the text is not such a literal, or its value is too large.
    """
    kind, value = _READERS[terminal](text, position)
    return LiteralSyntax(value, kind, position=position)


def write_literal(literal: LiteralSyntax) -> str:
    """Return the canonical spelling of a literal."""
    return _WRITERS[literal.kind](literal.value)


def quote(text: str) -> str:
    """Return a text in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def write_interval(length_ns: int) -> str:
    """Return a length in the longest unit that divides it: ``90 sec``."""
    unit = next(unit for unit, unit_ns in UNITS_NS.items() if length_ns % unit_ns == 0)
    if length_ns == 0:
        unit = "sec"
    return f"{length_ns // UNITS_NS[unit]} {unit}"


def _integer(text: str, position: Position) -> tuple[LiteralKind, LiteralValue]:
    is_hex = text[:2] in {"0x", "0X"}
    digits = text[2:].lstrip("0") if is_hex else text.lstrip("0")
    value = int(digits or "0", 16 if is_hex else 10) if len(digits) <= 20 else MAX_INTEGER + 1
    if value > (MAX_INTEGER if is_hex else MAX_INT):
        most = "16 hexadecimal digits" if is_hex else str(MAX_INT)
        message = f"invalid integer: expected at most {most}, got {text[:40]}"
        remedy = (
            "an INT has 64 bits with a sign; write all 64 bits in hexadecimal: 0xFFFFFFFFFFFFFFFF"
        )
        if not is_hex and value == MAX_INT + 1:
            remedy = f"an INT has 64 bits with a sign; write the least, -{value}, as {value:#x}"
        raise GsqlSyntaxError(message, position=position, remedy=remedy)
    return LiteralKind.INTEGER, value


def _hex(text: str, position: Position) -> tuple[LiteralKind, LiteralValue]:
    if not text or text.strip("0123456789abcdefABCDEF"):
        message = f"HEX needs hexadecimal digits, not {text[:40]!r}"
        raise GsqlSyntaxError(message, position=position, remedy="for example HEX'ff'")
    return _integer("0x" + text, position)


def _float(text: str, position: Position) -> tuple[LiteralKind, LiteralValue]:
    value = float(text)
    if not math.isfinite(value):
        message = "this number is too large for a FLOAT"
        raise GsqlSyntaxError(message, position=position)
    return LiteralKind.FLOAT, value


def _address(text: str, position: Position) -> tuple[LiteralKind, LiteralValue]:
    from ipaddress import ip_address

    try:
        version = ip_address(text).version if "%" not in text else 0
    except ValueError:
        version = 0
    if version == 0:
        message = f"invalid IP address {text[:60]!r}"
        raise GsqlSyntaxError(
            message,
            position=position,
            remedy="for example IP_VAL'10.0.0.1' or IPV6_VAL'2001:db8::1'",
        )
    return (LiteralKind.IP if version == 4 else LiteralKind.IPV6), text


def _interval(text: str, position: Position) -> tuple[LiteralKind, LiteralValue]:
    length_ns = read_interval_ns(text)
    if length_ns is None:
        message = f"invalid length of time {text[:40]!r}"
        remedy = f"a number and one of {', '.join(UNITS_NS)}, for example INTERVAL '1 min 30 sec'"
        raise GsqlSyntaxError(message, position=position, remedy=remedy)
    return LiteralKind.INTERVAL, length_ns


def _write_integer(value: int) -> str:
    return str(value) if value <= MAX_INT else hex(value)


_READERS: dict[str, Callable[[str, Position], tuple[LiteralKind, LiteralValue]]] = {
    "INTEGER": _integer,
    "HEX": _hex,
    "FLOAT": _float,
    "STRING": lambda text, _: (LiteralKind.STRING, text),
    "TRUE": lambda _text, _: (LiteralKind.BOOL, True),
    "FALSE": lambda _text, _: (LiteralKind.BOOL, False),
    "NULL": lambda _text, _: (LiteralKind.NULL, None),
    "IP_VAL": _address,
    "IPV6_VAL": _address,
    "TIMEVAL": lambda text, _: (LiteralKind.TIMEVAL, text),
    "INTERVAL": _interval,
}

_WRITERS: dict[LiteralKind, Callable[[LiteralValue], str]] = {
    LiteralKind.INTEGER: lambda value: _write_integer(int(value or 0)),
    LiteralKind.FLOAT: repr,
    LiteralKind.STRING: lambda value: quote(str(value)),
    LiteralKind.BOOL: lambda value: "TRUE" if value else "FALSE",
    LiteralKind.NULL: lambda _: "NULL",
    LiteralKind.IP: lambda value: f"IP_VAL{quote(str(value))}",
    LiteralKind.IPV6: lambda value: f"IPV6_VAL{quote(str(value))}",
    LiteralKind.TIMEVAL: lambda value: f"TIMEVAL{quote(str(value))}",
    LiteralKind.INTERVAL: lambda value: f"INTERVAL {quote(write_interval(int(value or 0)))}",
}
