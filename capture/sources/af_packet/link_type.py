"""Link types of interfaces, by hardware type (``ARPHRD_…``)."""

from __future__ import annotations

from gscope.records import dataclass

LINKTYPE_ETHERNET = 1
LINKTYPE_C_HDLC = 104
LINKTYPE_IEEE802_11 = 105
LINKTYPE_RAW = 101
LINKTYPE_LINUX_SLL = 113
LINKTYPE_RADIOTAP = 127


@dataclass(frozen=True, slots=True)
class LinkType:
    """The outermost header of the packets of an interface.

    Attributes:
        number: pcap link type.
        name: tcpdump's name of it.
        is_cooked: whether the kernel removes the link header, and a cooked one replaces it.
    """

    number: int
    name: str
    is_cooked: bool = False


COOKED = LinkType(LINKTYPE_LINUX_SLL, "LINUX_SLL", is_cooked=True)
"""For hardware types without a link type of their own, and for ``any``."""

_ETHERNET = LinkType(LINKTYPE_ETHERNET, "EN10MB")
_RAW = LinkType(LINKTYPE_RAW, "RAW")

# Numbers of linux/if_arp.h. All others are cooked: their headers are not decoded by gscope, or are
# not always present (PPP).
_BY_HARDWARE_TYPE = {
    1: _ETHERNET,
    # Loopback: Ethernet headers of zeros.
    772: _ETHERNET,
    513: LinkType(LINKTYPE_C_HDLC, "C_HDLC"),
    519: _RAW,
    801: LinkType(LINKTYPE_IEEE802_11, "IEEE802_11"),
    803: LinkType(LINKTYPE_RADIOTAP, "IEEE802_11_RADIO"),
    # Tunnels without a link header: IPIP, IPv6 tunnels, SIT, and ARPHRD_NONE (tun, WireGuard).
    768: _RAW,
    769: _RAW,
    776: _RAW,
    65534: _RAW,
}


def link_type_of(hardware_type: int) -> LinkType:
    """Return the link type of packets of interfaces of ``hardware_type``."""
    return _BY_HARDWARE_TYPE.get(hardware_type, COOKED)
