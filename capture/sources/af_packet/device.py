"""Network devices as the kernel describes them; any socket can ask, without privileges."""

from __future__ import annotations

import fcntl
import socket
import struct

from gscope.capture.sources.af_packet.kernel_api import (
    IFF_LOOPBACK,
    IFF_UP,
    IFREQ_BYTES,
    NAME_BYTES,
    SIOCGIFFLAGS,
    SIOCGIFHWADDR,
    SIOCGIFINDEX,
)
from gscope.capture.sources.af_packet.link_type import COOKED, LinkType, link_type_of
from gscope.queries.did_you_mean import suggestion
from gscope.records import dataclass

ANY = "any"
"""The name for all devices of the network namespace at once, as in tcpdump."""


@dataclass(frozen=True, slots=True)
class Device:
    """A network device as it is now.

    Attributes:
        index: the kernel's number of it; 0 stands for all devices.
        link_type: link type of its packets.
        is_up: whether it is administratively up.
        is_loopback: whether it receives the packets that it sends.
    """

    index: int
    link_type: LinkType
    is_up: bool
    is_loopback: bool


def look_up(any_socket: socket.socket, name: str) -> Device | None:
    """Return the device of that name in the network namespace of the socket.

    None if there is none.
    """
    if name == ANY:
        return Device(0, COOKED, is_up=True, is_loopback=False)
    try:
        (index,) = struct.unpack_from(
            "i", _interface_request(any_socket, SIOCGIFINDEX, name), NAME_BYTES
        )
        (flags,) = struct.unpack_from(
            "H", _interface_request(any_socket, SIOCGIFFLAGS, name), NAME_BYTES
        )
        (kind,) = struct.unpack_from(
            "H", _interface_request(any_socket, SIOCGIFHWADDR, name), NAME_BYTES
        )
    except OSError:
        return None
    return Device(index, link_type_of(kind), bool(flags & IFF_UP), bool(flags & IFF_LOOPBACK))


def unknown_device(name: str) -> str:
    """Return the error message for a device that does not exist."""
    names = [each for _, each in socket.if_nameindex()]
    hint = suggestion(name, names, f"available: {', '.join(names)}")
    return f"unknown network interface {name!r}; {hint}"


def request(name: str) -> bytes:
    """Return a ``struct ifreq`` for the device of that name."""
    return name.encode()[: NAME_BYTES - 1].ljust(IFREQ_BYTES, b"\0")


def _interface_request(any_socket: socket.socket, command: int, name: str) -> bytes:
    if len(name.encode()) >= NAME_BYTES:
        raise OSError
    return fcntl.ioctl(any_socket, command, request(name))
