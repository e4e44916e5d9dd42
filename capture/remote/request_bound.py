"""A bound on what a peer can make the server hold before its request is complete.

Arrow's gRPC server accepts requests of any size, and reads them before it asks for a token. So
whatever a peer sends passes through here first: HTTP/2 frames are followed by their headers alone,
and the DATA of requests that are not complete is added up (RFC 9113, section 4.1).
"""

from __future__ import annotations

MAX_REQUEST_BYTES = 1 << 20
"""Limit of all incomplete requests of a connection together; a ticket has a few kilobytes."""

MAX_REQUESTS = 64
"""Limit of the number of incomplete requests of a connection."""

_PREFACE_BYTES = 24
_HEADER_BYTES = 9
_DATA, _HEADERS, _RESET = 0x0, 0x1, 0x3
_END_STREAM = 0x1


class RequestBound:
    """Follows the frames that a peer sends on one connection."""

    def __init__(self) -> None:
        self._skip = _PREFACE_BYTES
        self._header = b""
        self._incomplete: dict[int, int] = {}

    def admits(self, data: bytes) -> bool:
        """Return whether the peer stays within the bound with ``data``, the next it has sent."""
        position = 0
        while position < len(data):
            if self._skip:
                skipped = min(self._skip, len(data) - position)
                self._skip -= skipped
                position += skipped
                continue
            end = position + _HEADER_BYTES - len(self._header)
            self._header += data[position:end]
            position = end
            if len(self._header) == _HEADER_BYTES and not self._begin_frame():
                return False
        return True

    def _begin_frame(self) -> bool:
        """Count a frame whose header is complete; return whether that is within the bound."""
        header, self._header = self._header, b""
        self._skip = int.from_bytes(header[:3], "big")
        kind, flags = header[3], header[4]
        stream = int.from_bytes(header[5:], "big") & 0x7FFF_FFFF
        if kind == _RESET or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
            self._incomplete.pop(stream, None)
            return self._skip <= MAX_REQUEST_BYTES
        if kind in (_DATA, _HEADERS):
            held = self._skip if kind == _DATA else 0
            self._incomplete[stream] = self._incomplete.get(stream, 0) + held
        return (
            len(self._incomplete) <= MAX_REQUESTS
            and sum(self._incomplete.values()) <= MAX_REQUEST_BYTES
        )
