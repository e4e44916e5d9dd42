"""Constants: the values of literals, and calls that are computed before the first packet."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.catalog.evaluate import call, evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.scalar.addresses import parse_ip
from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.expressions.expressions import Expression, Literal, Value
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import LiteralKind
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.errors import Position
    from gscope.queries.gsql import nodes

TIME_EXAMPLE = (
    "a time such as '2024-05-06 07:08:09' or '2024-05-06T07:08:09+02:00'; UTC without an offset"
)
"""The remedy for a text that is not a time."""

_NS_A_SECOND = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_A_SECOND = timedelta(seconds=1)
_SECONDS = re.compile(r"([0-9]{1,10})(?:\.([0-9]{1,9}))?")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[ Tt]([0-9]{2}:[0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,9}))?)?)?"
    r"(?: ?([Zz]|[+-][0-9]{2}(?::?[0-9]{2})?))?"
)
_MAC = re.compile(r"[0-9A-Fa-f]{2}([:-])(?:[0-9A-Fa-f]{2}\1){4}[0-9A-Fa-f]{2}")


def apply(function: str, *arguments: Expression) -> Expression:
    """Return a call of a catalog function, or its value if all arguments are constants."""
    built = call(function, *arguments)
    if not FUNCTIONS[function].is_foldable or not all(isinstance(a, Literal) for a in arguments):
        return built
    return Literal(evaluate(built, _no_leaf), built.type)


def from_literal(literal: nodes.LiteralSyntax) -> Literal:
    """Return the constant that a literal of a query text stands for.

    Raises:
        TypeMismatchError: the text of TIMEVAL'…' is not a time.
    """
    value, type_ = _READERS[literal.kind](literal.value, literal.position)
    return Literal(value, type_)


def parse_timestamp(text: str) -> int | None:
    """Return the nanoseconds since 1970 of seconds (``12.5``) or a date and time, else None."""
    seconds = _SECONDS.fullmatch(text.strip())
    if seconds:
        value = int(seconds[1]) * _NS_A_SECOND + _nanoseconds(seconds[2])
        return value if value <= MAX_TIME_NS else None
    return parse_date(text)


def parse_date(text: str) -> int | None:
    """Return the nanoseconds since 1970 of an ISO 8601 date and time, else None.

    A time without an offset is in UTC.
    """
    moment = _MOMENT.fullmatch(text.strip())
    if not moment:
        return None
    day, minute, second, fraction, offset = moment.groups()
    zone = {"": "+00:00", "Z": "+00:00"}.get((offset or "").upper(), offset)
    try:
        parsed = datetime.fromisoformat(f"{day}T{minute or '00:00'}:{second or '00'}{zone}")
    except ValueError:
        return None
    whole = (parsed - _EPOCH) // _A_SECOND
    value = whole * _NS_A_SECOND + _nanoseconds(fraction)
    return value if value == wrap(value) else None


def parse_mac(text: str) -> int | None:
    """Return the 48 bits of ``aa:bb:cc:dd:ee:ff``, None if the text is not such an address."""
    if not _MAC.fullmatch(text):
        return None
    return int(re.sub("[:-]", "", text), 16)


def parse_network(text: str) -> tuple[int, int] | None:
    """Return the 128-bit address and prefix length of ``10.0.0.0/8``, None if it is invalid.

    A bare address is its own network.
    """
    host, slash, length = text.partition("/")
    address = parse_ip(host)
    if address is None or (slash and not re.fullmatch("[0-9]{1,3}", length)):
        return None
    offset = 96 if "." in host and ":" not in host else 0
    bits = offset + int(length) if slash else 128
    return (address, bits) if bits <= 128 else None


def text_of(literal: Literal) -> str:
    """Return the text of a STRING constant."""
    return literal.value.decode("utf-8", "replace") if isinstance(literal.value, bytes) else ""


def _nanoseconds(digits: str | None) -> int:
    return int((digits or "0").ljust(9, "0"))


def _no_leaf(leaf: Expression) -> Value:
    message = f"{leaf} is not a constant"
    raise ValueError(message)


def _integer(value: nodes.LiteralValue, _: Position) -> tuple[Value, GsqlType]:
    return wrap(int(value or 0)), GsqlType.INT


def _plain(type_: GsqlType) -> Callable[[nodes.LiteralValue, Position], tuple[Value, GsqlType]]:
    def read(value: nodes.LiteralValue, _: Position) -> tuple[Value, GsqlType]:
        return (value.encode() if isinstance(value, str) else value), type_

    return read


def _address(value: nodes.LiteralValue, _: Position) -> tuple[Value, GsqlType]:
    return parse_ip(str(value)), GsqlType.IP


def _timestamp(value: nodes.LiteralValue, position: Position) -> tuple[Value, GsqlType]:
    moment = parse_timestamp(str(value))
    if moment is None:
        message = f"invalid time {value!r}"
        remedy = (
            "write seconds since 1970 or UTC: TIMEVAL'1700000000.5', TIMEVAL'2024-05-06 07:08:09'"
        )
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return moment, GsqlType.TIMESTAMP


_READERS: dict[LiteralKind, Callable[[nodes.LiteralValue, Position], tuple[Value, GsqlType]]] = {
    LiteralKind.INTEGER: _integer,
    LiteralKind.FLOAT: _plain(GsqlType.FLOAT),
    LiteralKind.STRING: _plain(GsqlType.STRING),
    LiteralKind.BOOL: _plain(GsqlType.BOOL),
    LiteralKind.NULL: _plain(GsqlType.NULL),
    LiteralKind.IP: _address,
    LiteralKind.IPV6: _address,
    LiteralKind.TIMEVAL: _timestamp,
    LiteralKind.INTERVAL: _plain(GsqlType.INTERVAL),
}
