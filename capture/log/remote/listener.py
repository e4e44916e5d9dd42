"""The TCP listener of a log: opened by the supervisor, prepared before privileges are dropped.

The supervisor opens the socket and keeps it while daemons come and go, so that the port stays the
same and peers that connect meanwhile wait. The daemon reads key and token when it starts, while it
may; from then on it needs neither files nor further sockets of the internet.
"""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.capture.log.remote.credentials import Tokens, read_tokens, server_context
from gscope.errors import CaptureError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    import ssl

    from gscope.capture.log.remote.address import TcpAddress
    from gscope.capture.settings import ListenerSettings

BACKLOG = 64


@dataclass(frozen=True, slots=True)
class Listener:
    """An open socket, and what a peer must show to use it.

    Attributes:
        socket: the listening socket.
        tls: the TLS settings; None on loopback only.
        tokens: the tokens that are accepted.
        address: the address, for people.
    """

    socket: socket.socket
    tls: ssl.SSLContext | None
    tokens: Tokens
    address: str


def open_socket(address: TcpAddress) -> socket.socket:
    """Return a socket that listens on ``address``.

    Raises:
        UsageError: it cannot.
    """
    try:
        found = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
        family, kind, protocol, _, place = found[0]
        opened = socket.socket(family, kind, protocol)
        try:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                # [::] accepts IPv4 as well.
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            opened.bind(place)
            opened.listen(BACKLOG)
        except BaseException:
            opened.close()
            raise
    except (OSError, UnicodeError) as error:
        reason = os_reason(error)
        message = f"cannot listen on {address}: {reason}"
        raise UsageError(message) from error
    return opened


def ensure_protected(address: TcpAddress, *, has_tls: bool) -> None:
    """Refuse to speak without TLS to other hosts.

    Raises:
        UsageError: the address is not on loopback, and there is no certificate.
    """
    if not has_tls and not address.is_loopback:
        message = (
            f"cannot listen on {address} without TLS, which other hosts can reach: name a "
            "certificate and its key with --tls-certificate and --tls-key, or listen on 127.0.0.1 "
            "and forward the port, such as with ssh"
        )
        raise UsageError(message)


def take_listener(settings: ListenerSettings) -> Listener:
    """Return the listener that the supervisor opened, with its key and token read.

    Raises:
        CaptureError: the descriptor is not a listening socket.
        UsageError: key, certificate or token cannot be used.
    """
    tls = None
    if settings.certificate:
        tls = server_context(Path(settings.certificate), Path(settings.key))
    tokens = Tokens(read_tokens(Path(settings.token)))
    try:
        taken = socket.socket(fileno=settings.descriptor)
        taken.setblocking(False)
    except OSError as error:
        message = f"cannot listen on {settings.address}: {os_reason(error)}"
        raise CaptureError(message) from error
    return Listener(taken, tls, tokens, settings.address)
