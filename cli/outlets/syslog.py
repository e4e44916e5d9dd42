"""Rows as syslog messages: RFC 5424, over UDP (RFC 5426), TCP (RFC 6587) or TLS (RFC 5425).

Syslog has no acknowledgement. Over TCP and TLS each batch has a connection of its own: gscope
closes its side behind the last message and waits until the server closes the other, which says that
the server has read everything. A server that dies before that resets the connection, and the batch
is sent again. Over UDP nothing says whether a message has arrived.
"""

from __future__ import annotations

import errno
import os
import socket
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from gscope.cli.config.destinations import FACILITIES, SEVERITIES
from gscope.cli.outlets.outlet import OutletError, RowsRefused, reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.config.destinations import Destination
    from gscope.cli.outlets.outlet import Batch

TIMEOUT_S = 10.0
"""The longest wait for a connection, for space in its buffers and for its end, in seconds."""

MOST_DATAGRAM = 65_507
"""Bytes of the largest UDP message."""

_DATA_ID = "gscope@32473"
"""The name of the structured data, with the enterprise number that RFC 5612 sets aside."""


class _Messages:
    """Forms messages for one destination."""

    def __init__(self, destination: Destination) -> None:
        facility = FACILITIES.index(destination.options.get("facility", "user"))
        severity = SEVERITIES.index(destination.options.get("severity", "info"))
        host = socket.gethostname().encode("ascii", "replace").decode()[:255] or "-"
        self._priority = f"<{8 * facility + severity}>1"
        self._origin = f"{host} gscope {os.getpid()}"

    def of(self, batch: Batch) -> Iterator[bytes]:
        """Yield a message for each row."""
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        begin = f"{self._priority} {now} {self._origin} row [{_DATA_ID}"
        begin += f' run="{_quoted(batch.run)}" token="{batch.token}"'
        begin += f' query="{_quoted(batch.block.query)}" number="'
        for number, line in enumerate(batch.block.lines, batch.block.number):
            yield f'{begin}{number}"] '.encode() + line


class SyslogDatagrams:
    """Sends each row in a UDP datagram; see ``Outlet``.

    A row counts as accepted when the kernel has taken it. Where the host of a destination reports
    that nothing listens, the row after the lost one is the first to be sent again.
    """

    MOST_ROWS = 500
    MOST_BYTES = 1 << 20

    def __init__(self, destination: Destination) -> None:
        self._destination = destination
        self._messages = _Messages(destination)
        self._socket: socket.socket | None = None
        self._done: tuple[str, int] = ("", 0)

    def send(self, batch: Batch) -> None:
        """Send a batch from its first row on that was not sent; see ``Outlet.send``."""
        key, done = self._done
        too_long = 0
        for index, message in enumerate(self._messages.of(batch)):
            if len(message) > MOST_DATAGRAM:
                too_long += 1
            elif key != batch.key or index >= done:
                try:
                    self._open().send(message)
                except OSError as error:
                    self._done = batch.key, index
                    self.close()
                    raise OutletError(reason_of(error)) from error
        if too_long:
            sentence = f"larger than a datagram of {MOST_DATAGRAM:,} bytes"
            raise RowsRefused(sentence, too_long)

    def close(self) -> None:
        """Close the socket."""
        opened, self._socket = self._socket, None
        if opened is not None:
            opened.close()

    def _open(self) -> socket.socket:
        if self._socket is None:
            where = self._destination.host, self._destination.port
            family, kind, protocol, _, address = socket.getaddrinfo(*where, type=socket.SOCK_DGRAM)[
                0
            ]
            self._socket = socket.socket(family, kind, protocol)
            self._socket.connect(address)
        return self._socket


class SyslogStream:
    """Sends batches over TCP or TLS, with a connection for each; see ``Outlet``.

    Args:
        destination: the URL.
        context: how certificates are verified; None for TCP without TLS.
    """

    MOST_ROWS = 1000
    MOST_BYTES = 1 << 20

    def __init__(self, destination: Destination, context: ssl.SSLContext | None = None) -> None:
        self._destination = destination
        self._messages = _Messages(destination)
        self._context = context
        self._socket: socket.socket | None = None

    def send(self, batch: Batch) -> None:
        """Send a batch, each message with its length before it; see ``Outlet.send``."""
        frames = b"".join(b"%d %b" % (len(each), each) for each in self._messages.of(batch))
        try:
            self._exchange(frames)
        except TimeoutError as error:
            sentence = f"the server did not read everything within {TIMEOUT_S:.0f} s"
            raise OutletError(sentence) from error
        except OSError as error:
            # A connection that was reset before the end is no longer connected.
            is_reset = error.errno == errno.ENOTCONN
            reason = os.strerror(errno.ECONNRESET).lower() if is_reset else reason_of(error)
            raise OutletError(reason) from error
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        opened, self._socket = self._socket, None
        if opened is not None:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
            opened.close()

    def _exchange(self, frames: bytes) -> None:
        """Send ``frames`` and wait until the server has read them and closes the connection."""
        where = self._destination.host, self._destination.port
        connected = self._socket = socket.create_connection(where, TIMEOUT_S)
        if self._context is None:
            connected.sendall(frames)
        else:
            secured = self._context.wrap_socket(connected, server_hostname=where[0])
            connected = self._socket = secured
            secured.sendall(frames)
            # Sends the alert that announces the end; the server may close without one.
            secured.settimeout(0)
            with suppress(ssl.SSLError):
                secured.unwrap()
            secured.settimeout(TIMEOUT_S)
        connected.shutdown(socket.SHUT_WR)
        _await_end(connected)


def _await_end(connected: socket.socket) -> None:
    """Read until the server closes the connection.

    Raises:
        OSError: it resets the connection, or leaves it open.
    """
    # Not through TLS: what a server says at the end is of no interest.
    with socket.socket(fileno=os.dup(connected.fileno())) as raw:
        raw.settimeout(TIMEOUT_S)
        while raw.recv(1 << 12):
            pass


def _quoted(value: str) -> str:
    """Return the value of a parameter of structured data (RFC 5424, 6.3.3)."""
    for character in '\\"]':
        value = value.replace(character, f"\\{character}")
    return value
