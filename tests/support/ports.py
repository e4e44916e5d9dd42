"""Ports for servers that tests stop and start again."""

from __future__ import annotations

import random
import socket
from pathlib import Path

_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")


def lasting_port(host: str = "127.0.0.1") -> int:
    """Return a free TCP port that the kernel gives to no connection.

    While a server is down, the other end of any connection could get a port of the kernel's range:
    even the client that tries to reach the server.
    """
    first = int(_RANGE.read_text().split()[0])
    while True:
        port = random.randrange(max(first - 12_000, 1024), first)
        try:
            with socket.create_server((host, port)):
                return port
        except OSError:
            continue
