"""Durations and sizes as users write them: ``500ms``, ``10 sec``, ``2G``."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from gscope.queries.int64 import MAX_INT

_QUANTITY = re.compile(r"\s*([0-9][0-9_]*(?:\.[0-9]+)?)\s*([A-Za-zµ]*)\s*")
_NS: dict[str, int] = {
    "ns": 1,
    "us": 1_000,
    "µs": 1_000,
    "ms": 1_000_000,
    "s": 1_000_000_000,
    "min": 60_000_000_000,
    "h": 3_600_000_000_000,
    "d": 86_400_000_000_000,
}
_NS_SPELLINGS = {
    "": "s",
    "sec": "s",
    "second": "s",
    "seconds": "s",
    "m": "min",
    "minute": "min",
    "minutes": "min",
    "hour": "h",
    "hours": "h",
    "day": "d",
    "days": "d",
}
_BYTES = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


_MAX_PORT = 65_535


def parse_ports(text: str) -> tuple[int, ...]:
    """Return the ports of ``9481-9488``, or the one of ``9481``.

    Raises:
        ValueError: the text is not a range of ports; the message says what is expected.
    """
    first, dash, last = text.strip().partition("-")
    if first.isdecimal() and (last.isdecimal() or not dash):
        ports = range(int(first), int(last or first) + 1)
        if ports and ports[0] > 0 and ports[-1] <= _MAX_PORT:
            return tuple(ports)
    message = f"invalid ports {text!r}: expected a range such as 9481-9488, from 1 to {_MAX_PORT}"
    raise ValueError(message)


def parse_duration(text: str) -> int:
    """Return the nanoseconds of ``500ms``, ``10 sec``, ``1.5 min``, ``1d``.

    A bare number is seconds.

    Raises:
        ValueError: the text is not a duration; the message says what is expected.
    """
    number, unit = _quantity(text)
    scale = _NS.get(_NS_SPELLINGS.get(unit, unit)) if number is not None else None
    if number is None or scale is None:
        message = f"invalid duration {text!r}: expected a value such as 500ms, 10s, 2 min, 1h or 1d"
        raise ValueError(message)
    return _whole(number * scale, text)


def parse_positive_duration(text: str) -> int:
    """Return the nanoseconds of a duration above 0, as ``parse_duration`` does.

    Raises:
        ValueError: the text is not a duration, or is 0; the message says what is expected.
    """
    value = parse_duration(text)
    if value < 1:
        message = f"invalid duration {text!r}: expected more than 0"
        raise ValueError(message)
    return value


def show_duration(nanoseconds: int) -> str:
    """Return the shortest text that ``parse_duration`` reads as ``nanoseconds``."""
    for unit, scale in reversed(_NS.items()):
        if unit != "µs" and nanoseconds and nanoseconds % scale == 0:
            return f"{nanoseconds // scale}{unit}"
    return f"{nanoseconds}ns" if nanoseconds else "0s"


def parse_size(text: str) -> int:
    """Return the bytes of ``2G``, ``64 MiB``, ``4096``; K, M, G and T are powers of 1024.

    Raises:
        ValueError: the text is not a size; the message says what is expected.
    """
    number, unit = _quantity(text)
    scale = _BYTES.get(re.sub(r"i?b$", "", unit.lower())) if number is not None else None
    if number is None or scale is None:
        message = f"invalid size {text!r}: expected a value such as 64M, 2G or 4096"
        raise ValueError(message)
    return _whole(number * scale, text)


def show_size(size_bytes: int) -> str:
    """Return the shortest text that ``parse_size`` reads as ``size_bytes``."""
    for unit, scale in reversed(_BYTES.items()):
        if unit and size_bytes and size_bytes % scale == 0:
            return f"{size_bytes // scale}{unit.upper()}"
    return str(size_bytes)


def parse_count(text: str) -> int:
    """Return a positive integer, written ``65536`` or ``65_536``.

    Raises:
        ValueError: the text is not a positive integer.
    """
    if not re.fullmatch(r"[0-9][0-9_]{0,25}", text.strip()) or not int(text) > 0:
        message = f"invalid number {text!r}: expected a positive integer"
        raise ValueError(message)
    return _whole(Decimal(int(text)), text)


def _quantity(text: str) -> tuple[Decimal | None, str]:
    match = _QUANTITY.fullmatch(text) if len(text) < 50 else None
    if match is None:
        return None, ""
    try:
        return Decimal(match[1].replace("_", "")), match[2]
    except InvalidOperation:
        return None, ""


def _whole(value: Decimal, text: str) -> int:
    if value > MAX_INT:
        message = f"invalid value {text!r}: too large"
        raise ValueError(message)
    return int(value)
