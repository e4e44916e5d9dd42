"""Addresses of UDP ports that take the place of a device: ``udp://HOST:PORT``."""

from __future__ import annotations

import ipaddress
import re
import socket

from gscope.records import dataclass

SCHEME = "udp://"
"""What such an address begins with; no network interface has a slash in its name."""

DEFAULT_PORT = 2055
"""The usual port of collectors of NetFlow."""

_FORM = re.compile(r"(?:\[(?P<v6>[^\[\]]*)\]|(?P<v4>[^\[\]:]*))(?::(?P<port>[0-9]{1,5}))?")
_EXPECTED = "expected udp://ADDRESS:PORT, such as udp://0.0.0.0:2055 or udp://[::]:2055"


@dataclass(frozen=True, slots=True)
class UdpAddress:
    """An address of this machine, and a port.

    Attributes:
        host: IPv4 or IPv6 address; "" for all addresses of both.
        port: number of the port.
    """

    host: str
    port: int

    @classmethod
    def parse(cls, text: str) -> UdpAddress:
        """Return the address that ``text`` denotes.

        Raises:
            ValueError: it has another form; the message says what is expected.
        """
        match = _FORM.fullmatch(text.removeprefix(SCHEME))
        if not text.startswith(SCHEME) or match is None:
            raise ValueError(_EXPECTED)
        port = int(match["port"] or DEFAULT_PORT)
        if not 1 <= port <= 65535:
            message = f"invalid port {port}: expected 1 to 65535"
            raise ValueError(message)
        try:
            if match["v6"] is not None:
                ipaddress.IPv6Address(match["v6"])
            elif match["v4"]:
                ipaddress.IPv4Address(match["v4"])
        except ValueError as error:
            raise ValueError(_EXPECTED) from error
        return cls(match["v6"] or match["v4"] or "", port)

    @property
    def family(self) -> socket.AddressFamily:
        """The family of a socket for it: IPv6 for all addresses, as it receives IPv4 too."""
        return socket.AF_INET if "." in self.host and ":" not in self.host else socket.AF_INET6

    @property
    def interface(self) -> str:
        """The name of its interface if the user gives none."""
        return f"udp{self.port}"


def is_udp(device: str) -> bool:
    """Return whether ``device`` is meant as the address of a UDP port."""
    return device.startswith(SCHEME)
