"""A bound on what a peer can make the server hold and do at the same time.

Arrow's gRPC server accepts any number of requests of any size, reads them before it asks for a
token, and works on each in a thread of its own. So whatever a peer sends passes through here first:
of HTTP/2 frames only the headers are read, in both directions (RFC 9113, section 4.1). The DATA of
incomplete requests is added up, and unanswered requests are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_REQUEST_BYTES = 1 << 20
"""Limit of all incomplete requests of a connection together; a ticket has a few kilobytes."""

MAX_REQUESTS = 16
"""Limit of the number of unanswered requests of a connection; a reader has up to three."""

OVERSIZED, TOO_MANY = "oversized_requests", "too_many_requests"
"""Why a peer is refused."""

_PREFACE_BYTES = 24
_HEADER_BYTES = 9
_DATA, _HEADERS, _RESET = 0x0, 0x1, 0x3
_END_STREAM = 0x1


class RequestBound:
    """Follows the frames of one connection.

    Attributes:
        requests: number of requests that the peer has begun.
    """

    def __init__(self) -> None:
        self.requests = 0
        self._sent = _Frames(_PREFACE_BYTES)
        self._replied = _Frames(0)
        self._latest = 0
        self._incomplete: dict[int, int] = {}
        self._unanswered: set[int] = set()

    def refusal(self, data: bytes) -> str | None:
        """Return why the peer exceeds the bound with ``data``, the next it has sent; or None."""
        for size, kind, flags, stream in self._sent.begun(data):
            if kind == _HEADERS and stream > self._latest:
                self._latest = stream
                self.requests += 1
                # A request that the peer resets stays: the server may still work on it.
                self._unanswered.add(stream)
            if kind == _RESET or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
                self._incomplete.pop(stream, None)
                held = size
            else:
                if kind in (_DATA, _HEADERS):
                    added = size if kind == _DATA else 0
                    self._incomplete[stream] = self._incomplete.get(stream, 0) + added
                held = sum(self._incomplete.values())
            if held > MAX_REQUEST_BYTES:
                return OVERSIZED
            if max(len(self._incomplete), len(self._unanswered)) > MAX_REQUESTS:
                return TOO_MANY
        return None

    def on_replies(self, data: bytes) -> None:
        """Note which requests are answered with ``data``, the next that the server has sent."""
        for _, kind, flags, stream in self._replied.begun(data):
            if kind == _RESET or (kind in (_DATA, _HEADERS) and flags & _END_STREAM):
                self._unanswered.discard(stream)


class _Frames:
    """Finds the headers of frames in bytes that are cut at any place.

    Args:
        skip: number of bytes before the first frame.
    """

    def __init__(self, skip: int) -> None:
        self._skip = skip
        self._header = b""

    def begun(self, data: bytes) -> Iterator[tuple[int, int, int, int]]:
        """Yield size, kind, flags and stream of the frames whose header is complete in ``data``."""
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
            if len(self._header) == _HEADER_BYTES:
                header, self._header = self._header, b""
                self._skip = int.from_bytes(header[:3], "big")
                stream = int.from_bytes(header[5:], "big") & 0x7FFF_FFFF
                yield self._skip, header[3], header[4], stream
