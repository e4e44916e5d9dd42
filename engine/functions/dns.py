"""DNS messages (RFC 1035): in a datagram, or after their length as in TCP."""

from __future__ import annotations

import struct
from functools import cache
from typing import TYPE_CHECKING

from gscope.engine.functions.base import ForeignPayload, Undecodable, host_name
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_HEADER = struct.Struct(">HHHHHH")
_LENGTH_BYTES = 2
_IS_RESPONSE = 0x8000
_IS_AUTHORITATIVE = 0x0400
_IS_TRUNCATED = 0x0200
_RESPONSE_CODE = 0x000F
_POINTER = 0xC0
_MAPPED_IPV4 = 0xFFFF << 32
_INTERNET = 1
_ADDRESS_BYTES = {1: 4, 28: 16}
"""The sizes of A and AAAA records."""

_OPCODES = frozenset({0, 1, 2, 4, 5, 6})
_QUESTION_BYTES, _RECORD_BYTES = 5, 11
_LARGEST_MESSAGE = 0xFFFF
_LONGEST_LABEL = 63
_ROOT = b"."

_FULL_SEGMENT = 512
"""The least payload of a full TCP segment on any path (RFC 879 requires 536 bytes)."""


@dataclass(frozen=True, slots=True)
class _Message:
    data: bytes
    id: int
    flags: int
    questions: int
    answers: int

    @property
    def is_response(self) -> bool:
        return bool(self.flags & _IS_RESPONSE)

    @property
    def opcode(self) -> int:
        return (self.flags >> 11) & 0xF


def message_id(payload: bytes) -> int:
    """Return the identifier that a query and its response share."""
    return _message(payload).id


def opcode(payload: bytes) -> int:
    """Return the kind of query: 0 for a standard query, 4 for NOTIFY, 5 for UPDATE."""
    return _message(payload).opcode


def qname(payload: bytes) -> bytes | None:
    """Return the queried name, ``.`` for the root; None in a message without a question."""
    message = _message(payload)
    return _name(message.data) if message.questions else None


def qtype(payload: bytes) -> int | None:
    """Return the queried record type: 1 for A, 28 for AAAA."""
    return _behind_name(_message(payload), 0)


def qclass(payload: bytes) -> int | None:
    """Return the queried class: 1 for the Internet, 255 for any."""
    return _behind_name(_message(payload), 2)


def rcode(payload: bytes) -> int | None:
    """Return the response code: 0 for no error, 3 for a nonexistent name; None in a query."""
    message = _message(payload)
    return message.flags & _RESPONSE_CODE if message.is_response else None


def is_authoritative(payload: bytes) -> bool | None:
    """Return whether the server answers for its own zone; None in a query."""
    message = _message(payload)
    return bool(message.flags & _IS_AUTHORITATIVE) if message.is_response else None


def is_truncated(payload: bytes) -> bool:
    """Return whether the message was too long for its datagram, so that TCP has to be used."""
    return bool(_message(payload).flags & _IS_TRUNCATED)


def answers(payload: bytes) -> int:
    """Return the number of answer records that the header states."""
    return _message(payload).answers


def is_response(payload: bytes) -> bool:
    """Return whether the message is a response."""
    return _message(payload).is_response


def address(payload: bytes) -> int | None:
    """Return the address in the first A or AAAA record among the answers; None without one."""
    message = _message(payload)
    data, place = message.data, _HEADER.size
    if not message.answers:
        return None
    for _ in range(message.questions):
        place = _behind_record_name(data, place) + 4
    for _ in range(message.answers):
        place = _behind_record_name(data, place)
        if place + 10 > len(data):
            raise Undecodable
        kind, category, _, size = struct.unpack_from(">HHIH", data, place)
        place += 10
        if place + size > len(data):
            raise Undecodable
        if category == _INTERNET and _ADDRESS_BYTES.get(kind) == size:
            value = int.from_bytes(data[place : place + size])
            return value if size == 16 else _MAPPED_IPV4 | value
        place += size
    return None


def _message(payload: bytes) -> _Message:
    """Return the message, after checking its header for impossible values."""
    is_cut = len(payload) < _HEADER.size
    for data in _candidates(payload):
        if len(data) < _HEADER.size:
            break
        number, flags, questions, answered, authorities, additional = _HEADER.unpack_from(data)
        records = answered + authorities + additional
        least = _HEADER.size + questions * _QUESTION_BYTES + records * _RECORD_BYTES
        if (flags >> 11) & 0xF not in _OPCODES or least > _LARGEST_MESSAGE:
            continue
        if questions:
            if _end_of_name(data) is None:
                # Hardly any other protocol has a header that is possible here.
                is_cut = True
                continue
        elif not records and not flags & _IS_RESPONSE:
            continue
        return _Message(data, number, flags, questions, answered)
    raise Undecodable if is_cut else ForeignPayload


def _candidates(payload: bytes) -> Iterator[bytes]:
    """Yield the payload, and the part after its first two bytes if they can be its length.

    If they match the length exactly, that is not a coincidence, so this part comes first. A message
    that continues in the next segment is assumed only for a full segment.
    """
    rest = payload[_LENGTH_BYTES:]
    length = int.from_bytes(payload[:_LENGTH_BYTES])
    if length == len(rest):
        yield rest
    yield payload
    if length < len(rest) or len(payload) >= _FULL_SEGMENT:
        yield rest


@cache
def _dpkt() -> tuple[Callable[[bytes, int], tuple[str, int]], type[Exception]]:
    """Return how dpkt reads a name, and what it raises.

    Every task and the job load this module, but only tasks that read names load dpkt, which imports
    all of its eighty protocols.
    """
    from dpkt import UnpackError
    from dpkt.dns import unpack_name

    return unpack_name, UnpackError


def _name(data: bytes) -> bytes:
    unpack_name, unreadable = _dpkt()
    try:
        name = unpack_name(data, _HEADER.size)[0].encode()
    except UnicodeDecodeError as error:
        # labels are bytes; dpkt wants them to be UTF-8
        name = error.object
    except unreadable as error:
        raise Undecodable from error
    return host_name(name) or _ROOT


def _behind_name(message: _Message, offset: int) -> int | None:
    """Return the two bytes at ``offset`` after the first question's name."""
    if not message.questions:
        return None
    end = _end_of_name(message.data)
    if end is None or end + offset + 2 > len(message.data):
        raise Undecodable
    return int.from_bytes(message.data[end + offset : end + offset + 2])


def _behind_record_name(data: bytes, place: int) -> int:
    """Return where the name at ``place`` ends; a pointer ends it."""
    while place < len(data):
        length = data[place]
        if length == 0:
            return place + 1
        if length & _POINTER == _POINTER:
            return place + 2
        if length > _LONGEST_LABEL:
            raise Undecodable
        place += 1 + length
    raise Undecodable


def _end_of_name(data: bytes) -> int | None:
    """Return where the first question's name ends; None if it is invalid.

    A name that is cut off ends after the data. Pointers are invalid here: only the header precedes
    the name.
    """
    place = _HEADER.size
    while place < len(data):
        length = data[place]
        if length == 0:
            return place + 1
        if length > _LONGEST_LABEL:
            return None
        place += 1 + length
    return len(data) + 1
