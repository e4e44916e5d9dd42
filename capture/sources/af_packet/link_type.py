"""Which link type the packets of an interface have, by its hardware type (``ARPHRD_…``)."""

from __future__ import annotations

from dataclasses import dataclass

LINKTYPE_ETHERNET = 1
LINKTYPE_C_HDLC = 104
LINKTYPE_IEEE802_11 = 105
LINKTYPE_RAW = 101
LINKTYPE_LINUX_SLL = 113
LINKTYPE_RADIOTAP = 127


@dataclass(frozen=True, slots=True)
class LinkType:
    """How the packets of an interface begin.

    Attributes:
        number: pcap link type.
        name: what tcpdump calls it.
        is_cooked: the kernel leaves the link header out, and a cooked one takes its place.
    """

    number: int
    name: str
    is_cooked: bool = False


COOKED = LinkType(LINKTYPE_LINUX_SLL, "LINUX_SLL", is_cooked=True)
"""For what has no link type of its own, and for all interfaces at once."""

_ETHERNET = LinkType(LINKTYPE_ETHERNET, "EN10MB")
_RAW = LinkType(LINKTYPE_RAW, "RAW")

# Numbers of linux/if_arp.h. What is missing is cooked: its packets come with headers that nobody decodes, or
# sometimes with and sometimes without (PPP).
_BY_HARDWARE_TYPE = {
    1: _ETHERNET,
    # Loopback has Ethernet headers of zeros.
    772: _ETHERNET,
    513: LinkType(LINKTYPE_C_HDLC, "C_HDLC"),
    519: _RAW,
    801: LinkType(LINKTYPE_IEEE802_11, "IEEE802_11"),
    803: LinkType(LINKTYPE_RADIOTAP, "IEEE802_11_RADIO"),
    # Tunnels without link header: IPIP, IPv6 tunnels, SIT, and those that say none (tun, WireGuard).
    768: _RAW,
    769: _RAW,
    776: _RAW,
    65534: _RAW,
}


def link_type_of(hardware_type: int) -> LinkType:
    """The link type of packets of interfaces of ``hardware_type``."""
    return _BY_HARDWARE_TYPE.get(hardware_type, COOKED)
