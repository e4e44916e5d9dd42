"""Constant texts that name a number: protocols, TCP flags and dates.

A column called ``protocol`` is compared with names of IP protocols, ``flags`` with letters or names
of TCP flags, ``time`` and ``time_ns`` with dates. Any other text is refused with the right form.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import TIME_EXAMPLE, parse_date, text_of
from gscope.queries.catalog.ip_protocols import PROTOCOL_NUMBERS
from gscope.queries.did_you_mean import did_you_mean
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.errors import Position

    Reader = Callable[[str, Position], int]

_NS_A_SECOND = 1_000_000_000
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?")
_COMMON = ("icmp", "igmp", "tcp", "udp", "gre", "esp", "ah", "ipv6-icmp", "ospf", "pim", "sctp")
_PORTS = {
    "dns": 53,
    "domain": 53,
    "http": 80,
    "https": 443,
    "tls": 443,
    "ssl": 443,
    "quic": 443,
    "ftp": 21,
    "ssh": 22,
    "telnet": 23,
    "smtp": 25,
    "dhcp": 67,
    "tftp": 69,
    "pop3": 110,
    "ntp": 123,
    "imap": 143,
    "snmp": 161,
    "bgp": 179,
    "ldap": 389,
    "smb": 445,
    "syslog": 514,
    "mysql": 3306,
    "rdp": 3389,
    "sip": 5060,
    "mdns": 5353,
    "postgresql": 5432,
    "vnc": 5900,
}
"""Ports of services whose names users write as protocols."""

_FLAG_LETTERS = "FSRPAUEC"
_FLAG_BITS = {
    **{letter: 1 << place for place, letter in enumerate(_FLAG_LETTERS)},
    ".": 16,
    "W": 128,
}
"""TCP flags by letter; the last two are those of tcpdump."""
_FLAG_NAMES = {
    name: 1 << place
    for place, name in enumerate(("FIN", "SYN", "RST", "PSH", "ACK", "URG", "ECE", "CWR"))
}


def read_named(expressions: Sequence[Expression], position: Position) -> list[Expression]:
    """Return ``expressions``, with constant texts replaced by the numbers that they name.

    They stay as they are if none of them is a number or one of the texts is not constant.

    Raises:
        TypeMismatchError: a text has no meaning beside these numbers.
    """
    texts = [e for e in expressions if _is_text(e)]
    others = {e.type for e in expressions if not _is_text(e)} - {GsqlType.NULL}
    if not texts or not others or not others <= {GsqlType.BOOL, GsqlType.INT, GsqlType.FLOAT}:
        return list(expressions)
    reader = next(filter(None, map(_reader, expressions)), None)
    if reader is None:
        shown = ", ".join(sorted(t.value for t in others | {GsqlType.STRING}))
        message = f"{shown.replace(', ', ' and ')} are incompatible in this comparison"
        raise TypeMismatchError(message, position=position, remedy=right_form(_content(texts[0])))
    return [
        Literal(reader(_content(e), position), GsqlType.INT) if _is_text(e) else e
        for e in expressions
    ]


def read_flag_mask(sides: tuple[Expression, Expression], position: Position) -> list[Expression]:
    """Return the sides of ``flags & 'SA'``, with the letters as the number that they stand for.

    Raises:
        TypeMismatchError: the text is not a set of flags.
    """
    if any(_reader(side) is _flags for side in sides):
        return read_named(sides, position)
    return list(sides)


def right_form(text: str) -> str:
    """Return the remedy for a constant text where a number is needed."""
    if _NUMBER.fullmatch(text):
        return f"write the number without quotes: {text}"
    if parse_date(text) is not None:
        return f"to compare with a date, compare time, timestamp or time_ns: time >= '{text}'"
    if text.lower() in PROTOCOL_NUMBERS:
        return f"only a column called protocol takes names of protocols: protocol = '{text}'"
    if text.strip().lower() in _PORTS:
        port = _PORTS[text.strip().lower()]
        return f"write the number of the port, such as destPort = {port} or srcPort = {port}"
    return (
        "write a number without quotes, such as srcPort = 80; INT(x) reads one from a text column"
    )


def _reader(expression: Expression) -> Reader | None:
    """Return the function that reads texts beside ``expression``, None if there is none."""
    match expression:
        case Call("bit_and", arguments) if any(_reader(a) is _flags for a in arguments):
            return _flags
        case PacketField(name) | Column(name) if expression.type is GsqlType.INT:
            return _READERS.get(name.removeprefix("inner.").removeprefix("flow."))
    return None


def _is_text(expression: Expression) -> bool:
    return (
        isinstance(expression, Literal)
        and expression.type is GsqlType.STRING
        and expression.value is not None
    )


def _content(expression: Expression) -> str:
    return text_of(expression) if isinstance(expression, Literal) else ""


def _protocol(text: str, position: Position) -> int:
    number = PROTOCOL_NUMBERS.get(text.strip().lower())
    if number is None:
        message = f"unknown protocol {text!r}"
        near = did_you_mean(text, _COMMON) or did_you_mean(text, PROTOCOL_NUMBERS)
        remedy = near or "write its number, or the name that IANA gave it: 'tcp'"
        if text.strip().lower() in _PORTS:
            remedy = f"protocol is what IP carries, such as 'tcp'; {right_form(text)}"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return number


def _flags(text: str, position: Position) -> int:
    if text.strip().lower() == "none":
        return 0
    words = re.findall(r"[^\s,|+/-]+", text.upper())
    bits = [bit for word in words for bit in _flags_of(word)]
    if not bits or 0 in bits or len(set(bits)) < len(bits):
        message = f"invalid set of TCP flags {text!r}"
        remedy = (
            f"write letters of {_FLAG_LETTERS}, each once: flags = 'SA' is SYN and ACK and no other"
        )
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return sum(bits)


def _flags_of(word: str) -> list[int]:
    """Return the bits of a flag's name or a run of letters; 0 for a letter that is not a flag."""
    if word in _FLAG_NAMES:
        return [_FLAG_NAMES[word]]
    return [_FLAG_BITS.get(letter, 0) for letter in word]


def _seconds(text: str, position: Position) -> int:
    seconds, fraction = divmod(_nanoseconds(text, position), _NS_A_SECOND)
    if fraction:
        message = f"time counts whole seconds, and {text!r} is between two"
        remedy = f"compare timestamp instead: timestamp > '{text}'"
        raise TypeMismatchError(message, position=position, remedy=remedy)
    return seconds


def _nanoseconds(text: str, position: Position) -> int:
    moment = parse_date(text)
    if moment is None:
        message = f"invalid time {text!r}"
        number = f"write the number without quotes: {text}, or " if _NUMBER.fullmatch(text) else ""
        raise TypeMismatchError(message, position=position, remedy=f"{number}write {TIME_EXAMPLE}")
    return moment


_READERS: dict[str, Reader] = {
    "protocol": _protocol,
    "flags": _flags,
    "time": _seconds,
    "time_ns": _nanoseconds,
}
"""The function that reads a text beside a column, by the name of the column."""
