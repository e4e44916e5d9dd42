"""The interfaces of this host, and whether this process may capture on them."""

from __future__ import annotations

import ipaddress
import socket

from gscope.capture.sources.af_packet.device import ANY
from gscope.capture.sources.af_packet.kernel_api import IFF_RUNNING, IFF_UP
from gscope.capture.sources.af_packet.link_type import COOKED, LinkType, link_type_of
from gscope.capture.sources.af_packet.netlink import (
    ADDRESS,
    IFA_ADDRESS,
    IFA_LOCAL,
    IFLA_ADDRESS,
    IFLA_IFNAME,
    LINK,
    RTM_GETADDR,
    RTM_GETLINK,
    dump,
)
from gscope.capture.sources.af_packet.packet_socket import refusal
from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class Interface:
    """A network interface as it is now.

    Attributes:
        name: the kernel's name of the interface.
        state: ``up``, ``down``, or ``no carrier`` for one that is up without a working link.
        link_type: link type of its packets.
        hardware_address: MAC address, such as ``02:00:00:00:00:01``; "" if it has none.
        addresses: IPv4 and IPv6 with prefix lengths.
        why_not: reason why this process cannot capture on it, and the remedy; "" if it can.
            Capturing on an interface that is down is possible: packets arrive once it is up.
    """

    name: str
    state: str
    link_type: LinkType
    hardware_address: str
    addresses: tuple[str, ...]
    why_not: str


def list_interfaces() -> list[Interface]:
    """Return all interfaces in the kernel's order, followed by ``any``.

    Raises:
        CaptureError: the kernel refuses to list them.
    """
    why_not = _why_not()
    addresses = _addresses()
    found = []
    for (_, kind, index, flags, _), attributes in dump(RTM_GETLINK, LINK):
        name = attributes.get(IFLA_IFNAME, b"").rstrip(b"\0").decode(errors="replace")
        hardware = attributes.get(IFLA_ADDRESS, b"")
        found.append(
            Interface(
                name,
                _state(flags),
                link_type_of(kind),
                hardware.hex(":") if any(hardware) else "",
                tuple(addresses.get(index, ())),
                why_not,
            )
        )
    return [*found, Interface(ANY, "up", COOKED, "", (), why_not)]


def _why_not() -> str:
    try:
        socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0).close()
    except OSError as error:
        return refusal(error)
    return ""


def _state(flags: int) -> str:
    if not flags & IFF_UP:
        return "down"
    return "up" if flags & IFF_RUNNING else "no carrier"


def _addresses() -> dict[int, list[str]]:
    """Return addresses with prefix lengths, by the number of the interface."""
    found: dict[int, list[str]] = {}
    for (family, prefix, _, _, index), attributes in dump(RTM_GETADDR, ADDRESS):
        # If there are both, IFA_ADDRESS is the other end of the link.
        packed = attributes.get(IFA_LOCAL) or attributes.get(IFA_ADDRESS, b"")
        if family in (socket.AF_INET, socket.AF_INET6) and len(packed) in (4, 16):
            found.setdefault(index, []).append(f"{ipaddress.ip_address(packed)}/{prefix}")
    return found
