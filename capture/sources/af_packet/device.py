"""What the kernel says of a network device, asked through any socket, without privileges."""

from __future__ import annotations

import fcntl
import socket
import struct
from dataclasses import dataclass

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

ANY = "any"
"""All devices of the network namespace at once, as tcpdump calls them."""


@dataclass(frozen=True, slots=True)
class Device:
    """A network device as it is now.

    Attributes:
        index: its number, 0 for all devices.
        link_type: of its packets.
        is_up: whether it is switched on.
        is_loopback: whether what it sends comes back by itself.
    """

    index: int
    link_type: LinkType
    is_up: bool
    is_loopback: bool


def look_up(asked: socket.socket, name: str) -> Device | None:
    """The device of that name in the network namespace of the socket, None if there is none."""
    if name == ANY:
        return Device(0, COOKED, is_up=True, is_loopback=False)
    try:
        (index,) = struct.unpack_from("i", _ask(asked, SIOCGIFINDEX, name), NAME_BYTES)
        (flags,) = struct.unpack_from("H", _ask(asked, SIOCGIFFLAGS, name), NAME_BYTES)
        (kind,) = struct.unpack_from("H", _ask(asked, SIOCGIFHWADDR, name), NAME_BYTES)
    except OSError:
        return None
    return Device(index, link_type_of(kind), bool(flags & IFF_UP), bool(flags & IFF_LOOPBACK))


def unknown_device(name: str) -> str:
    """The sentence for a device that does not exist."""
    names = [each for _, each in socket.if_nameindex()]
    hint = suggestion(name, names, f"there are {', '.join(names)}")
    return f"there is no network interface {name!r}; {hint}"


def request(name: str) -> bytes:
    """A ``struct ifreq`` for the device of that name."""
    return name.encode()[: NAME_BYTES - 1].ljust(IFREQ_BYTES, b"\0")


def _ask(asked: socket.socket, command: int, name: str) -> bytes:
    if len(name.encode()) >= NAME_BYTES:
        raise OSError
    return fcntl.ioctl(asked, command, request(name))
