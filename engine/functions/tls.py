"""The ClientHello of TLS (RFC 8446, section 4.1.2), read as far as it was captured."""

from __future__ import annotations

from gscope.engine.functions.base import ForeignPayload, Undecodable, host_name

_RECORD_TYPES = range(20, 25)
_MAJOR_VERSION = 3
_HANDSHAKE = 22
_CLIENT_HELLO = 1
_SERVER_NAME = 0
_HOST_NAME = 0


def sni(payload: bytes) -> bytes | None:
    """Return the server name that a client requests; None in other records and if it names none."""
    data = _handshake(payload)
    if data is None or data[0] != _CLIENT_HELLO:
        return None
    hello = _Cursor(data)
    hello.skip(1)
    hello = _Cursor(hello.take(hello.number(3), cut=True))
    hello.skip(2 + 32)
    hello.skip(hello.number(1))
    hello.skip(hello.number(2))
    hello.skip(hello.number(1))
    if hello.is_at_end:
        return None
    extensions = _Cursor(hello.take(hello.number(2), cut=True))
    while not extensions.is_at_end:
        kind, size = extensions.number(2), extensions.number(2)
        if kind == _SERVER_NAME:
            return _name(_Cursor(extensions.take(size)))
        extensions.skip(size)
    if hello.is_cut:
        raise Undecodable
    return None


def _handshake(payload: bytes) -> bytes | None:
    """Return the bytes of all handshake records; None if there are none."""
    parts: list[bytes] = []
    cursor = _Cursor(payload)
    while not cursor.is_at_end:
        kind = cursor.number(1)
        if kind not in _RECORD_TYPES or cursor.number(1) != _MAJOR_VERSION:
            if not parts:
                raise ForeignPayload
            break
        cursor.skip(1)
        content = cursor.take(cursor.number(2), cut=True)
        parts.append(content if kind == _HANDSHAKE else b"")
    return b"".join(parts) or None


def _name(extension: _Cursor) -> bytes | None:
    names = _Cursor(extension.take(extension.number(2)))
    while not names.is_at_end:
        kind, name = names.number(1), names.take(names.number(2))
        if kind == _HOST_NAME:
            return host_name(name)
    return None


class _Cursor:
    """Reads bytes in order; raises ``Undecodable`` at the end of the data.

    Attributes:
        is_cut: whether a ``take`` with ``cut`` returned fewer bytes than it asked for.
    """

    __slots__ = ("_data", "_place", "is_cut")

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0
        self.is_cut = False

    @property
    def is_at_end(self) -> bool:
        return self._place >= len(self._data)

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size))

    def skip(self, size: int) -> None:
        if self._place + size > len(self._data):
            raise Undecodable
        self._place += size

    def take(self, size: int, *, cut: bool = False) -> bytes:
        """Return the next ``size`` bytes; with ``cut``, fewer at the end of the data."""
        if self._place + size > len(self._data):
            if not cut:
                raise Undecodable
            self.is_cut = True
        taken = self._data[self._place : self._place + size]
        self._place += size
        return taken
