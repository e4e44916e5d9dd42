"""Where a log is served: a TCP address of another host, or a unix socket of this one."""

from __future__ import annotations

import ipaddress
from dataclasses import field
from typing import TYPE_CHECKING

from gscope.errors import UsageError
from gscope.records import dataclass

if TYPE_CHECKING:
    from pathlib import Path

MAX_PORT = 65_535


@dataclass(frozen=True, slots=True)
class TcpAddress:
    """A host and a port.

    Attributes:
        host: a host name, or an IPv4 or IPv6 address without brackets.
        port: the port; 0 for a free one, where one listens.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> TcpAddress:
        """Return the address in ``HOST:PORT``; an IPv6 address stands in brackets.

        Raises:
            UsageError: it is none.
        """
        host, colon, port = text.rpartition(":")
        is_bracketed = host.startswith("[") and host.endswith("]")
        host = host[1:-1] if is_bracketed else host
        is_port = port.isascii() and port.isdecimal() and int(port) <= MAX_PORT
        is_host = host.isascii() and host.isprintable() and not set(host) & set(" /[]@%")
        if not colon or not host or not is_host or not is_port or (":" in host) != is_bracketed:
            message = (
                f"invalid address {text!r}: expected HOST:PORT, such as sensor1:9470 or "
                "[2001:db8::1]:9470"
            )
            raise UsageError(message)
        return cls(host, int(port))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def is_loopback(self) -> bool:
        """Whether only this host can connect to it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def ensure_readable(self, *, has_tls: bool) -> None:
        """Refuse to read a log of another host without TLS.

        Raises:
            UsageError: the address is not on loopback, and no certificate is trusted.
        """
        if not has_tls and not self.is_loopback:
            message = (
                f"{self} is on another host, and would be read without TLS; name the certificates "
                "to trust with --tls-ca"
            )
            raise UsageError(message)


@dataclass(frozen=True, slots=True)
class LogAddress:
    """How to connect to the server of a log.

    Attributes:
        place: the TCP address, or the path of the unix socket.
        token: the token that a TCP server asks for; "" without one.
        certificates: the certificates to trust, in PEM; None: TLS is not used.
    """

    place: TcpAddress | Path
    token: str = field(default="", repr=False)
    certificates: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return str(self.place)
