"""Headers between the link layer and IP: a kernel for each kind, which returns the next step.

Behaviour follows Wireshark 4.0, against which it is tested; ``decode_states.py`` defines steps.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, be32, ld8
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import (
    ARP,
    ETHERNET,
    ETHERTYPE,
    IP,
    IPV4,
    IPV6,
    LENGTH_OR_TYPE,
    LLC,
    MAX_ETHERNET_LENGTH,
    MIN_ETHERTYPE,
    MPLS,
    NOTHING,
    ODD,
    PPP,
    PPPOE,
    TYPE_ARISTA,
    TYPE_ARP,
    TYPE_BACKBONE,
    TYPE_ETAG,
    TYPE_IPV4,
    TYPE_IPV6,
    TYPE_JUMBO_LLC,
    TYPE_MACSEC,
    TYPE_MPLS,
    TYPE_MPLS_MULTICAST,
    TYPE_NSH,
    TYPE_OLD_VLAN,
    TYPE_PPP,
    TYPE_PPPOE,
    TYPE_PROVIDER_VLAN,
    TYPE_TRANSPARENT_BRIDGING,
    TYPE_VLAN,
    TYPE_VNTAG,
)
from gscope.capture.packet.record import NOWHERE

Step = tuple[int, int, int, int, int]

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)


@kernel
def is_vlan(ethertype: int) -> bool:
    """Return whether the type announces a VLAN tag."""
    return ethertype in (TYPE_VLAN, TYPE_PROVIDER_VLAN, TYPE_OLD_VLAN)


@kernel
def is_tag(ethertype: int) -> bool:
    """Return whether the type announces a tag, so that the type after the tag counts."""
    return is_vlan(ethertype) or ethertype in (TYPE_VNTAG, TYPE_ETAG, TYPE_ARISTA)


@kernel
def after_ethertype(at: int, end: int, ethertype: int, link: int) -> Step:
    """Choose the step for an EtherType."""
    if ethertype == TYPE_IPV4:
        return IPV4, at, end, ethertype, link
    if ethertype == TYPE_IPV6:
        return IPV6, at, end, ethertype, link
    if is_vlan(ethertype):
        return _after_vlan(at, end, link)
    if ethertype == TYPE_ARP:
        return ARP, at, end, ethertype, link
    if ethertype in (TYPE_MPLS, TYPE_MPLS_MULTICAST):
        return MPLS, at, end, ethertype, link
    if ethertype == TYPE_PPPOE:
        return PPPOE, at, end, ethertype, link
    if ethertype == TYPE_TRANSPARENT_BRIDGING:
        return ETHERNET, at, end, ethertype, link
    if ethertype == TYPE_PPP:
        return PPP, at, end, ethertype, link
    if ethertype == TYPE_JUMBO_LLC:
        return LLC, at, end, ethertype, link
    if ethertype == TYPE_ARISTA:
        return _after_arista(at, end, link)
    if ethertype == TYPE_MACSEC:
        return _after_macsec(at, end, link)
    if ethertype == TYPE_NSH:
        return _after_nsh(at, end, link)
    skip = 0
    if ethertype == TYPE_BACKBONE:
        skip = 16
    elif ethertype == TYPE_VNTAG:
        skip = 4
    elif ethertype == TYPE_ETAG:
        skip = 6
    else:
        return NOTHING, at, end, ethertype, link
    if at + skip + 2 > end:
        return ODD, at, end, _TRUNCATED, link
    return ETHERTYPE, at + skip + 2, end, be16(at + skip), link


@kernel
def _after_arista(at: int, end: int, link: int) -> Step:
    """Skip a switch's timestamp: subtype, version, seconds, nanoseconds.

    Then the type of the next header.
    """
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, link
    kind = be32(at)
    skip = 0
    if kind in (0x0001_0010, 0x0001_0110):
        skip = 12
    elif kind in (0x0001_0020, 0x0001_0120):
        skip = 10
    else:
        return NOTHING, at, end, 0, link
    if at + skip + 2 > end:
        return ODD, at, end, _TRUNCATED, link
    return ETHERTYPE, at + skip + 2, end, be16(at + skip), link


@kernel
def _after_macsec(at: int, end: int, link: int) -> Step:
    """Decode IEEE 802.1AE with integrity only, not encrypted or changed payloads.

    The integrity check value stays within ``end``: it is beyond the length that the IP header
    gives.
    """
    if at + 6 > end:
        return ODD, at, end, _TRUNCATED, link
    control, short = ld8(at), ld8(at + 1) & 0x3F
    # Version 0, neither encrypted nor changed.
    if control & 0x8C != 0:
        return NOTHING, at, end, 0, link
    here = at + (14 if control & 0x20 else 6)
    if here + 2 > end:
        return ODD, at, end, _TRUNCATED, link
    if short != 0:
        end = min(end, max(here + 2, here + short))
    return ETHERTYPE, here + 2, end, be16(here), link


@kernel
def _after_nsh(at: int, end: int, link: int) -> Step:
    """Decode a network service header (RFC 8300)."""
    if at + 8 > end:
        return ODD, at, end, _TRUNCATED, link
    length, protocol = (ld8(at + 1) & 0x3F) << 2, ld8(at + 3)
    if length < 8:
        return ODD, at, end, _MALFORMED, link
    here = at + length
    if here > end:
        return ODD, at, end, _TRUNCATED, link
    if protocol == 1:
        return IPV4, here, end, 0, link
    if protocol == 2:
        return IPV6, here, end, 0, link
    if protocol == 3:
        return ETHERNET, here, end, 0, link
    if protocol == 4:
        return ETHERTYPE, here, end, TYPE_NSH, link
    if protocol == 5:
        return MPLS, here, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def _after_vlan(at: int, end: int, link: int) -> Step:
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, link
    vlan = be16(at) & 0xFFF
    if (link >> 32) & NOWHERE == NOWHERE:
        link = link & ~(NOWHERE << 32) | vlan << 32
    elif (link >> 48) & NOWHERE == NOWHERE:
        link = link & ((1 << 48) - 1) | vlan << 48
    return LENGTH_OR_TYPE, at + 4, end, be16(at + 2), link


@kernel
def after_length_or_type(at: int, end: int, length_or_type: int, link: int) -> Step:
    """Decode IEEE 802.3: a length up to 1500, a type from 0x600."""
    if length_or_type >= MIN_ETHERTYPE:
        return ETHERTYPE, at, end, length_or_type, link
    if length_or_type > MAX_ETHERNET_LENGTH:
        return ODD, at, end, _MALFORMED, link
    if length_or_type == 0:
        return NOTHING, at, end, 0, link
    end = min(end, at + length_or_type)
    # Novell's raw 802.3: IPX without LLC begins with a checksum of all ones.
    if at + 2 <= end and be16(at) == 0xFFFF:
        return NOTHING, at, end, 0, link
    return LLC, at, end, 0, link


@kernel
def after_llc(at: int, end: int, link: int) -> Step:
    """Decode IEEE 802.2 with SNAP (RFC 1042) or the SAP of IP."""
    if at + 3 > end:
        return ODD, at, end, _TRUNCATED, link
    destination, source, control = ld8(at), ld8(at + 1), ld8(at + 2)
    is_unnumbered = control & 3 == 3
    here = at + (3 if is_unnumbered else 4)
    is_information = control & 1 == 0 or control & 0xEF == 3
    if not is_information:
        return NOTHING, at, end, 0, link
    if destination == 0xAA and source == 0xAA:
        return _after_snap(here, end, link)
    if destination == 6:
        return IP, here, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def _after_snap(at: int, end: int, link: int) -> Step:
    if at + 5 > end:
        return ODD, at, end, _TRUNCATED, link
    organization = be32(at) >> 8
    protocol = be16(at + 3)
    if organization == 0 or organization == 0x0000F8:
        return ETHERTYPE, at + 5, end, protocol, link
    # Bridged Ethernet (RFC 2684) with two octets of padding.
    if organization == 0x0080C2 and (protocol == 1 or protocol == 7):
        return ETHERNET, at + 7, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def after_ppp(at: int, end: int, link: int) -> Step:
    """Decode PPP (RFC 1661); an odd first octet is a compressed protocol number."""
    if at + 1 > end:
        return ODD, at, end, _TRUNCATED, link
    protocol = ld8(at)
    here = at + 1
    if protocol & 1 == 0:
        if at + 2 > end:
            return ODD, at, end, _TRUNCATED, link
        protocol = be16(at)
        here = at + 2
    if protocol == 0x21 or protocol == TYPE_IPV4:
        return IP, here, end, 0, link
    if protocol == 0x57 or protocol == TYPE_IPV6:
        return IPV6, here, end, 0, link
    if protocol == 0x281 or protocol == 0x283:
        return MPLS, here, end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def after_ppp_hdlc(at: int, end: int, link: int) -> Step:
    """Decode PPP in HDLC (RFC 1662), with or without address and control, or Cisco's framing."""
    if at + 2 > end:
        return ODD, at, end, _TRUNCATED, link
    if ld8(at) == 0xFF:
        return PPP, at + 2, end, 0, link
    if ld8(at) == 0x0F or ld8(at) == 0x8F:
        return after_chdlc(at, end, link)
    return PPP, at, end, 0, link


@kernel
def after_chdlc(at: int, end: int, link: int) -> Step:
    """Decode Cisco HDLC (RFC 1547 section 4.3.1): address, control, Ethernet type.

    Only some types are used.
    """
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, link
    protocol = be16(at + 2)
    if protocol in (TYPE_IPV4, TYPE_IPV6, TYPE_MPLS, TYPE_MPLS_MULTICAST):
        return ETHERTYPE, at + 4, end, protocol, link
    return NOTHING, at, end, protocol, link


@kernel
def after_pppoe(at: int, end: int, link: int) -> Step:
    """Decode PPPoE (RFC 2516), session stage; the payload length bounds the frame."""
    if at + 6 > end:
        return ODD, at, end, _TRUNCATED, link
    return PPP, at + 6, min(end, at + 6 + be16(at + 4)), 0, link


@kernel
def after_mpls(at: int, end: int, link: int) -> Step:
    """Decode MPLS (RFC 3032); the first four bits after the labels decide (RFC 4928)."""
    label = 0
    is_bottom = False
    while not is_bottom:
        if at + 4 > end:
            return ODD, at, end, _TRUNCATED, link
        label = be32(at) >> 12
        is_bottom = (be32(at) >> 8) & 1 == 1
        at += 4
    if at + 1 > end:
        return ODD, at, end, _TRUNCATED, link
    nibble = ld8(at) >> 4
    # Generic associated channel, OAM alert, or a pseudowire's associated channel.
    if label in (13, 14) or nibble == 1:
        return NOTHING, at, end, 0, link
    if nibble == 4 or nibble == 6:
        return IP, at, end, 0, link
    if nibble == 0:
        return ETHERNET, _pseudowire_frame(at, end), end, 0, link
    return NOTHING, at, end, 0, link


@kernel
def _pseudowire_frame(at: int, end: int) -> int:
    """Return where a pseudowire's frame begins: after a control word (RFC 4448), if any.

    A control word begins with four zero bits. If a common EtherType is only where a frame without
    one has it, the zeros begin a MAC address.
    """
    if at + 14 <= end and _is_usual_type(be16(at + 12)):
        has_control_word = at + 18 <= end and _is_usual_type(be16(at + 16))
        return at + 4 if has_control_word else at
    return at + 4


@kernel
def _is_usual_type(ethertype: int) -> bool:
    return ethertype in (TYPE_IPV4, TYPE_IPV6, TYPE_ARP, TYPE_MPLS) or is_vlan(ethertype)
