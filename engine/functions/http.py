"""Requests of HTTP/1 (RFC 9112), read as far as they were captured."""

from __future__ import annotations

import re

from gscope.engine.functions.base import ForeignPayload, Undecodable, host_name
from gscope.records import dataclass

_REQUEST = re.compile(rb"([A-Z][A-Z-]{1,30}) ([^ \r\n]+) HTTP/\d\.\d\r?\n")
_CUT_REQUEST = re.compile(rb"([A-Z][A-Z-]{1,30}) ([^ \r\n]*)")
_METHODS = frozenset(
    {
        *(b"GET", b"HEAD", b"POST", b"PUT", b"DELETE", b"CONNECT", b"OPTIONS", b"TRACE", b"PATCH"),
        *(b"PROPFIND", b"PROPPATCH", b"MKCOL", b"COPY", b"MOVE", b"LOCK", b"UNLOCK", b"SEARCH"),
        *(b"REPORT", b"NOTIFY", b"M-SEARCH", b"SUBSCRIBE", b"UNSUBSCRIBE"),
    }
)
"""Methods that a truncated request line must begin with; a complete one may have any method."""

_HOST = re.compile(rb"\r?\nhost:([^\r\n]*)\r?\n", re.IGNORECASE)
_END_OF_FIELDS = re.compile(rb"\r?\n\r?\n")
_PORT = re.compile(rb":\d*$")
_ABSOLUTE = re.compile(rb"[A-Za-z][A-Za-z0-9+.-]*://([^/?#]*)")
_END_OF_PATH = re.compile(rb"[?#]")
_RESPONSE = b"HTTP/"
BEGINNING = r"^(?:[A-Z][A-Z-]{1,30} |HTTP/)"
"""How every decodable payload begins."""


@dataclass(frozen=True, slots=True)
class _Request:
    """A request line.

    Attributes:
        method: the method.
        target: the request target, as far as it was captured.
        fields: the bytes from the end of the line on; None if the line is truncated.
    """

    method: bytes
    target: bytes
    fields: bytes | None


def method(payload: bytes) -> bytes | None:
    """Return the method of a request; None in a response."""
    request = _request(payload)
    return None if request is None else request.method


def path(payload: bytes) -> bytes | None:
    """Return the path of a request without its query; None in a response and for CONNECT."""
    request = _request(payload)
    if request is None or request.method == b"CONNECT":
        return None
    absolute = _ABSOLUTE.match(request.target)
    rest = request.target[absolute.end() :] if absolute else request.target
    end = _END_OF_PATH.search(rest)
    if request.fields is None and end is None:
        raise Undecodable
    return rest[: end.start()] if end else rest or b"/"


def host(payload: bytes) -> bytes | None:
    """Return the host of a request without the port; None if it names none, and in a response."""
    request = _request(payload)
    if request is None:
        return None
    if request.fields is None:
        raise Undecodable
    absolute = _ABSOLUTE.match(request.target)
    if absolute:
        return _bare(absolute[1].rpartition(b"@")[2])
    if request.method == b"CONNECT":
        return _bare(request.target)
    end = _END_OF_FIELDS.search(request.fields)
    field = _HOST.search(request.fields[: end.start() + 2] if end else request.fields)
    if field is not None:
        return _bare(field[1].strip(b" \t"))
    if end is None:
        raise Undecodable
    return None


def _request(payload: bytes) -> _Request | None:
    """Return the request at the beginning of a payload; None for a response."""
    whole = _REQUEST.match(payload)
    if whole is not None:
        return _Request(whole[1], whole[2], payload[whole.end() - 1 :])
    cut = _CUT_REQUEST.fullmatch(payload)
    if cut is not None and cut[1] in _METHODS:
        return _Request(cut[1], cut[2], None)
    if payload.startswith(_RESPONSE):
        return None
    first = payload.partition(b" ")[0]
    raise Undecodable if first in _METHODS and len(first) < len(payload) else ForeignPayload


def _bare(authority: bytes) -> bytes | None:
    return host_name(_PORT.sub(b"", authority)) or None
