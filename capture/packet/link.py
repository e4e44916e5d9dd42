"""The link layer: from the pcap link type of a packet to the first step of the walk."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, be32, bswap32, ld8, ld16, ld32, ld64
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import (
    ETHERNET,
    ETHERTYPE,
    IP,
    IPV4,
    IPV6,
    LLC,
    MAX_ETHERNET_LENGTH,
    NOTHING,
    ODD,
    PPP_HDLC,
)
from gscope.capture.packet.flow.layout import LINKTYPE_FLOW, REASON_SHIFT
from gscope.capture.packet.link_headers import Step, after_chdlc, after_ppp_hdlc, after_pppoe
from gscope.capture.packet.lowpan import after_802154
from gscope.capture.packet.rare_links import (
    after_arcnet,
    after_frame_relay,
    after_infiniband,
    after_ipnet,
    after_juniper_ethernet,
)
from gscope.capture.packet.record import NO_LINK
from gscope.capture.packet.wireless import after_radiotap, after_wlan, mac_link

LINKTYPE_NULL = 0
LINKTYPE_ETHERNET = 1
LINKTYPE_PPP = 9
LINKTYPE_FDDI = 10
LINKTYPE_RAW_BSD = 12
LINKTYPE_RAW_OPENBSD = 14
LINKTYPE_PPP_HDLC = 50
LINKTYPE_PPP_ETHER = 51
LINKTYPE_RAW = 101
LINKTYPE_C_HDLC = 104
LINKTYPE_IEEE802_11 = 105
LINKTYPE_FRELAY = 107
LINKTYPE_LOOP = 108
LINKTYPE_LINUX_SLL = 113
LINKTYPE_RADIOTAP = 127
LINKTYPE_ARCNET_LINUX = 129
LINKTYPE_JUNIPER_ETHER = 178
LINKTYPE_PPI = 192
LINKTYPE_IEEE802_15_4_WITHFCS = 195
LINKTYPE_IPNET = 226
LINKTYPE_IPV4 = 228
LINKTYPE_IPV6 = 229
LINKTYPE_IEEE802_15_4_NOFCS = 230
LINKTYPE_NFLOG = 239
LINKTYPE_IPOIB = 242
LINKTYPE_PKTAP = 258
LINKTYPE_LINUX_SLL2 = 276

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)
_UNKNOWN = int(Reason.UNKNOWN_LINKTYPE)

_AF_INET, _LINUX_AF_INET6 = 2, 10
_NFLOG_PAYLOAD = 9
_PKTAP_PACKET = 1
_SLL_LLC, _SLL_PPP_HDLC, _SLL_ETHERNET = 4, 7, 3
_MAX_LINUX_TYPE = 1536
_ARPHRD_NETLINK, _ARPHRD_IPGRE = 824, 778
_SLL_HEADER_BYTES, _SLL2_HEADER_BYTES = 16, 20


@kernel
def enter(linktype: int, base: int, end: int, wire_end: int, workspace: int) -> Step:
    """Return the first step for a packet of ``linktype`` captured from ``base`` to ``end``.

    ``wire_end`` is ``end`` unless the packet was truncated; for ``workspace`` see ``workspace.py``.
    """
    at = base
    if linktype == LINKTYPE_PPI:
        # The header gives the link type of the next one; a second PPI header is not supported.
        if at + 8 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        length = ld16(at + 2)
        if length < 8:
            return ODD, at, end, _MALFORMED, NO_LINK
        linktype = ld32(at + 4)
        at += length
        if at > end:
            return ODD, base, end, _TRUNCATED, NO_LINK
    elif linktype == LINKTYPE_PKTAP:
        # Apple's header: length, kind of record, link type; in the byte order of the capturing
        # machine, a Mac.
        if at + 12 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        length, kind = ld32(at), ld32(at + 4)
        if length < 12:
            return ODD, at, end, _MALFORMED, NO_LINK
        if kind != _PKTAP_PACKET:
            return NOTHING, at, end, 0, NO_LINK
        linktype = ld32(at + 8)
        at += length
        if at > end:
            return ODD, base, end, _TRUNCATED, NO_LINK
    if linktype == LINKTYPE_ETHERNET:
        return ETHERNET, at, end, 0, NO_LINK
    if linktype in (LINKTYPE_RAW, LINKTYPE_RAW_BSD, LINKTYPE_RAW_OPENBSD):
        return IP, at, end, 0, NO_LINK
    if linktype == LINKTYPE_IPV4:
        return IPV4, at, end, 0, NO_LINK
    if linktype == LINKTYPE_IPV6:
        return IPV6, at, end, 0, NO_LINK
    if linktype == LINKTYPE_LINUX_SLL:
        return _after_sll(base, at, end)
    if linktype == LINKTYPE_LINUX_SLL2:
        return _after_sll2(base, at, end)
    if linktype == LINKTYPE_NULL:
        return _after_null(at, end)
    if linktype == LINKTYPE_LOOP:
        return _after_loop(at, end)
    if linktype in (LINKTYPE_PPP, LINKTYPE_PPP_HDLC):
        return after_ppp_hdlc(at, end, NO_LINK)
    if linktype == LINKTYPE_PPP_ETHER:
        return after_pppoe(at, end, NO_LINK)
    if linktype == LINKTYPE_C_HDLC:
        return after_chdlc(at, end, NO_LINK)
    if linktype == LINKTYPE_IEEE802_11:
        return after_wlan(base, at, end, 0)
    if linktype == LINKTYPE_RADIOTAP:
        return after_radiotap(base, at, end)
    if linktype == LINKTYPE_FDDI:
        return _after_fddi(base, at, end)
    if linktype == LINKTYPE_NFLOG:
        return _after_nflog(at, end)
    if linktype == LINKTYPE_IEEE802_15_4_WITHFCS:
        return after_802154(at, end, wire_end, 2, workspace)
    if linktype == LINKTYPE_IEEE802_15_4_NOFCS:
        return after_802154(at, end, wire_end, 0, workspace)
    if linktype == LINKTYPE_FLOW and at == base:
        # Never by the header of a packet, whose link type has 32 bits: the record is gscope's own.
        return _enter_flow(at, end)
    return _enter_rare(linktype, at, end)


@kernel
def _enter_rare(linktype: int, at: int, end: int) -> Step:
    if linktype == LINKTYPE_FRELAY:
        return after_frame_relay(at, end)
    if linktype == LINKTYPE_ARCNET_LINUX:
        return after_arcnet(at, end)
    if linktype == LINKTYPE_JUNIPER_ETHER:
        return after_juniper_ethernet(at, end)
    if linktype == LINKTYPE_IPNET:
        return after_ipnet(at, end)
    if linktype == LINKTYPE_IPOIB:
        return after_infiniband(at, end)
    return ODD, at, end, _UNKNOWN, NO_LINK


@kernel
def _enter_flow(at: int, end: int) -> Step:
    """Return nothing for a flow record, and its reason for one that could not be decoded."""
    reason = (ld64(at) >> REASON_SHIFT) & 255
    if reason != 0:
        return ODD, at, end, reason, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _after_sll(base: int, at: int, end: int) -> Step:
    """Decode Linux cooked capture: packet and hardware type, address (2 + 8), protocol."""
    if at + _SLL_HEADER_BYTES > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    link = NO_LINK
    if be16(at + 4) == 6:
        link = mac_link(-1, at + 6 - base)
    return _after_cooked(at + _SLL_HEADER_BYTES, end, be16(at + 2), be16(at + 14), link)


@kernel
def _after_sll2(base: int, at: int, end: int) -> Step:
    """Decode its version 2: protocol, reserved, interface (4), types (2 + 1), address (1 + 8)."""
    if at + _SLL2_HEADER_BYTES > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    link = NO_LINK
    if ld8(at + 11) == 6:
        link = mac_link(-1, at + 12 - base)
    return _after_cooked(at + _SLL2_HEADER_BYTES, end, be16(at + 8), be16(at), link)


@kernel
def _after_cooked(at: int, end: int, hardware: int, protocol: int, link: int) -> Step:
    if hardware == _ARPHRD_NETLINK:
        return NOTHING, at, end, 0, link
    if protocol > _MAX_LINUX_TYPE or hardware == _ARPHRD_IPGRE:
        return ETHERTYPE, at, end, protocol, link
    if protocol == _SLL_LLC:
        return LLC, at, end, 0, link
    if protocol == _SLL_PPP_HDLC:
        return PPP_HDLC, at, end, 0, link
    if protocol == _SLL_ETHERNET:
        return ETHERNET, at, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def _after_null(at: int, end: int) -> Step:
    """Decode BSD loopback: the address family, 32 bits in the capturing machine's byte order.

    IRIX wrote a 16-bit family and 16 zero bits, old Linux an Ethernet type in the last two bytes,
    FreeBSD's ISDN driver PPP.
    """
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    if be16(at) == 0xFF03:
        return PPP_HDLC, at, end, 0, NO_LINK
    family = ld32(at)
    if family >> 16 != 0:
        if family >> 24 == 0 and (family >> 16) < 6:
            family >>= 16
        else:
            family = bswap32(family)
    elif family & 0xFF == 0 and family < 0x600:
        family >>= 8
    if family > MAX_ETHERNET_LENGTH:
        return ETHERTYPE, at + 4, end, family & 0xFFFF, NO_LINK
    return _after_family(at + 4, end, family)


@kernel
def _after_loop(at: int, end: int) -> Step:
    """Decode OpenBSD loopback: the address family in network byte order."""
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    return _after_family(at + 4, end, be32(at))


@kernel
def _after_family(at: int, end: int, family: int) -> Step:
    if family == _AF_INET:
        return IPV4, at, end, 0, NO_LINK
    # IPv6 is 24 on NetBSD and OpenBSD, 28 on FreeBSD, 30 on Darwin.
    if family in (24, 28, 30):
        return IPV6, at, end, 0, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _after_fddi(base: int, at: int, end: int) -> Step:
    if at + 13 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    link = mac_link(at + 1 - base, at + 7 - base)
    # Only asynchronous LLC frames hold data.
    if ld8(at) & 0xF0 == 0x50:
        return LLC, at + 13, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def _after_nflog(at: int, end: int) -> Step:
    """Decode Linux netfilter log: family, version, resource id, then attributes.

    The last payload counts.
    """
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    family = ld8(at)
    # Lengths and types are in the byte order of the capturing machine.
    is_big = _is_order_plausible(at + 4, end, 1) or not _is_order_plausible(at + 4, end, 0)
    here = at + 4
    payload, payload_end = 0, 0
    while here + 4 <= end:
        length = be16(here) if is_big else ld16(here)
        kind = (be16(here + 2) if is_big else ld16(here + 2)) & 0x7FFF
        if length < 4:
            return ODD, at, end, _MALFORMED, NO_LINK
        if kind == _NFLOG_PAYLOAD:
            if here + length > end:
                # Truncated by the snap length.
                length = end - here
            payload, payload_end = here + 4, here + length
        here += (length + 3) & ~3
    if payload == 0:
        return NOTHING, at, end, 0, NO_LINK
    if family == _AF_INET:
        return IPV4, payload, payload_end, 0, NO_LINK
    if family == _LINUX_AF_INET6:
        return IPV6, payload, payload_end, 0, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _is_order_plausible(at: int, end: int, is_big: int) -> bool:
    """Return whether the first attribute with a type has a small type in this byte order."""
    while at + 4 < end:
        length = be16(at) if is_big else ld16(at)
        kind = (be16(at + 2) if is_big else ld16(at + 2)) & 0x7FFF
        if length < 4 or kind >= 0x100:
            return False
        if kind != 0:
            return True
        at += (length + 3) & ~3
    return False
