"""``locate_inner``: the first IP packet encapsulated in another, for the ``inner.*`` fields.

GRE (with Ethernet, MPLS, PPP, ERSPAN I to III), IP in IP, 6in4, MPLS in IP, VXLAN (with GPE),
Geneve, GTP-U, Teredo.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8, ld64
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_loop import walk
from gscope.capture.packet.decode_states import (
    ETHERNET,
    ETHERTYPE,
    IP,
    IPV4,
    IPV6,
    MPLS,
    NOTHING,
    ODD,
    PPP_HDLC,
    TYPE_PPP,
    TYPE_TRANSPARENT_BRIDGING,
)
from gscope.capture.packet.network import record_nothing
from gscope.capture.packet.record import (
    FRAGMENT_OFFSET_SHIFT,
    HAS_PORTS,
    INFO,
    NO_LINK,
    PAYLOAD,
    PEND,
)

if TYPE_CHECKING:
    from gscope.capture.packet.link_headers import Step

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)
_NONE = int(Reason.NONE)

_IPIP, _UDP, _IPV6, _GRE, _MPLS_IN_IP = 4, 17, 41, 47, 137

_GTPU_PORT, _TEREDO_PORT, _VXLAN_PORT, _VXLAN_GPE_PORT, _GENEVE_PORT = 2152, 3544, 4789, 4790, 6081
_UDP_HEADER_BYTES = 8

_GRE_CHECKSUM, _GRE_ROUTING, _GRE_KEY, _GRE_SEQUENCE = 0x8000, 0x4000, 0x2000, 0x1000
_PPTP_ACKNOWLEDGE = 0x0080
_TYPE_ERSPAN, _TYPE_ERSPAN_III, _TYPE_WCCP = 0x88BE, 0x22EB, 0x883E


@kernel
def locate_inner(record: int, inner: int) -> int:
    """Write the record of the packet inside that of ``record`` to ``inner``; return the reason."""
    info = ld64(record + INFO)
    payload, pend = ld64(record + PAYLOAD), ld64(record + PEND)
    if (info >> FRAGMENT_OFFSET_SHIFT) & 0x1FFF:
        return record_nothing(inner, pend, 0, NO_LINK, _NONE)
    step, at, end, kind, link = _enter_tunnel(info & 255, info & HAS_PORTS, payload, pend)
    return walk(inner, at, step, at, end, kind, link)


@kernel
def _enter_tunnel(protocol: int, has_ports: int, at: int, end: int) -> Step:
    # Protocol 0 means truncated IPv6 hop-by-hop options, or no IP at all.
    if protocol == _IPIP:
        return IPV4, at, end, 0, NO_LINK
    if protocol == _IPV6:
        return IPV6, at, end, 0, NO_LINK
    if protocol == _GRE:
        return _after_gre(at, end)
    if protocol == _MPLS_IN_IP:
        return MPLS, at, end, 0, NO_LINK
    if protocol == _UDP and has_ports and at + _UDP_HEADER_BYTES <= end:
        step, inner, inner_end, kind, link = _after_udp(be16(at + 2), at + _UDP_HEADER_BYTES, end)
        if step == NOTHING:
            return _after_udp(be16(at), at + _UDP_HEADER_BYTES, end)
        return step, inner, inner_end, kind, link
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _after_gre(at: int, end: int) -> Step:
    """Decode GRE (RFC 2784, 2890); version 1 is PPTP (RFC 2637)."""
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    flags, protocol = be16(at), be16(at + 2)
    version = flags & 7
    if version > 1 or flags & _GRE_ROUTING:
        return NOTHING, at, end, 0, NO_LINK
    here = at + 4
    if flags & _GRE_CHECKSUM:
        here += 4
    if flags & _GRE_KEY:
        here += 4
    if flags & _GRE_SEQUENCE:
        here += 4
    if version == 1 and flags & _PPTP_ACKNOWLEDGE:
        here += 4
    if protocol == TYPE_PPP:
        return PPP_HDLC, here, end, 0, NO_LINK
    if protocol == _TYPE_ERSPAN:
        # Type II has a header and a sequence number; type I has neither.
        return ETHERNET, here + (8 if flags & _GRE_SEQUENCE else 0), end, 0, NO_LINK
    if protocol == _TYPE_ERSPAN_III:
        return _after_erspan_iii(here, end)
    if protocol == _TYPE_WCCP:
        # Version 2 puts a redirect header of 4 bytes before the packet.
        if here + 1 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        return IPV4, here + (0 if ld8(here) >> 4 == 4 else 4), end, 0, NO_LINK
    return ETHERTYPE, here, end, protocol, NO_LINK


@kernel
def _after_erspan_iii(at: int, end: int) -> Step:
    if at + 12 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    has_subheader = ld8(at + 11) & 1
    return ETHERNET, at + (20 if has_subheader else 12), end, 0, NO_LINK


@kernel
def _after_udp(port: int, at: int, end: int) -> Step:
    if port == _VXLAN_PORT:
        return ETHERNET, at + 8, end, 0, NO_LINK
    if port == _GENEVE_PORT:
        return _after_geneve(at, end)
    if port == _GTPU_PORT:
        return _after_gtpu(at, end)
    if port == _VXLAN_GPE_PORT:
        return _after_vxlan_gpe(at, end)
    if port == _TEREDO_PORT:
        return _after_teredo(at, end)
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _after_geneve(at: int, end: int) -> Step:
    """Decode Geneve (RFC 8926)."""
    if at + 8 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    if ld8(at) >> 6 != 0:
        return NOTHING, at, end, 0, NO_LINK
    here = at + 8 + ((ld8(at) & 0x3F) << 2)
    protocol = be16(at + 2)
    if protocol == TYPE_TRANSPARENT_BRIDGING:
        return ETHERNET, here, end, 0, NO_LINK
    return ETHERTYPE, here, end, protocol, NO_LINK


@kernel
def _after_gtpu(at: int, end: int) -> Step:
    """Decode GTP-U (3GPP TS 29.281) version 1, message 255 (G-PDU), with extension headers."""
    if at + 8 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    flags = ld8(at)
    if flags >> 5 != 1 or flags & 0x10 == 0 or ld8(at + 1) != 255:
        return NOTHING, at, end, 0, NO_LINK
    here = at + 8
    if flags & 7:
        if here + 4 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        extension = ld8(here + 3) if flags & 4 else 0
        here += 4
        while extension != 0:
            if here + 1 > end:
                return ODD, at, end, _TRUNCATED, NO_LINK
            length = ld8(here) << 2
            if length == 0:
                return ODD, at, end, _MALFORMED, NO_LINK
            if here + length > end:
                return ODD, at, end, _TRUNCATED, NO_LINK
            extension = ld8(here + length - 1)
            here += length
    return IP, here, end, 0, NO_LINK


@kernel
def _after_vxlan_gpe(at: int, end: int) -> Step:
    if at + 8 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    following = ld8(at + 3)
    if following == 3:
        return ETHERNET, at + 8, end, 0, NO_LINK
    if following == 1:
        return IPV4, at + 8, end, 0, NO_LINK
    if following == 2:
        return IPV6, at + 8, end, 0, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def _after_teredo(at: int, end: int) -> Step:
    """Decode Teredo (RFC 4380): authentication (0001), origin (0000) indication, then IPv6."""
    if at + 4 <= end and be16(at) == 1:
        at += 13 + ld8(at + 2) + ld8(at + 3)
    if at + 2 <= end and be16(at) == 0:
        at += 8
    return IPV6, at, end, 0, NO_LINK
