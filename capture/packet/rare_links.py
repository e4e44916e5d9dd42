"""Rare link types: a kernel for each, which returns the first step of the walk.

Behaviour follows Wireshark 4.0, against which it is tested; ``decode_states.py`` defines steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, be32, ld8
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.decode_states import (
    ARP,
    ETHERNET,
    ETHERTYPE,
    IPV4,
    IPV6,
    NOTHING,
    ODD,
    PPP,
    TYPE_ARP,
    TYPE_IPV4,
    TYPE_IPV6,
    TYPE_MPLS,
    TYPE_MPLS_MULTICAST,
)
from gscope.capture.packet.record import NO_LINK

if TYPE_CHECKING:
    from gscope.capture.packet.link_headers import Step

_TRUNCATED = int(Reason.LINK_TRUNCATED)
_MALFORMED = int(Reason.LINK_MALFORMED)

_UNNUMBERED = 0x03
_NLPID_IPV4, _NLPID_IPV6, _NLPID_SNAP, _NLPID_PPP = 0xCC, 0x8E, 0x80, 0xCF
_MOST_DLCI_BYTES = 4

_ARCNET_IPV4, _ARCNET_ARP, _ARCNET_IPV6 = 212, 213, 196
_ARCNET_IPV4_OLD, _ARCNET_ARP_OLD = 240, 241

_IPNET_BYTES, _SOLARIS_AF_INET, _SOLARIS_AF_INET6 = 24, 2, 26
_INFINIBAND_BYTES = 40
_JUNIPER_MAGIC = 0x4D4743
_JUNIPER_NO_L2, _JUNIPER_EXTENSIONS = 0x02, 0x80


@kernel
def after_frame_relay(at: int, end: int) -> Step:
    """Decode frame relay: a Q.922 address, then RFC 2427 (control, NLPID) or Cisco's type."""
    here = at
    count = 0
    is_last = False
    while not is_last:
        if here + 1 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        is_last = ld8(here) & 1 == 1
        here += 1
        count += 1
        if count == _MOST_DLCI_BYTES and not is_last:
            return ODD, at, end, _MALFORMED, NO_LINK
    if count == 1:
        return ODD, at, end, _MALFORMED, NO_LINK
    if here + 2 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    if ld8(here) != _UNNUMBERED:
        protocol = be16(here)
        if protocol in (TYPE_IPV4, TYPE_IPV6, TYPE_ARP, TYPE_MPLS, TYPE_MPLS_MULTICAST):
            return ETHERTYPE, here + 2, end, protocol, NO_LINK
        return NOTHING, at, end, 0, NO_LINK
    here += 1
    # An octet of padding aligns what follows.
    if ld8(here) == 0:
        here += 1
        if here + 1 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
    return _after_nlpid(here + 1, end, ld8(here))


@kernel
def _after_nlpid(at: int, end: int, nlpid: int) -> Step:
    if nlpid == _NLPID_IPV4:
        return IPV4, at, end, 0, NO_LINK
    if nlpid == _NLPID_IPV6:
        return IPV6, at, end, 0, NO_LINK
    if nlpid == _NLPID_PPP:
        return PPP, at, end, 0, NO_LINK
    if nlpid != _NLPID_SNAP:
        return NOTHING, at, end, 0, NO_LINK
    if at + 5 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    organization, protocol = be32(at) >> 8, be16(at + 3)
    if organization == 0:
        return ETHERTYPE, at + 5, end, protocol, NO_LINK
    # Bridged Ethernet, without the padding used over ATM.
    if organization == 0x0080C2 and (protocol == 1 or protocol == 7):
        return ETHERNET, at + 5, end, 0, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def after_arcnet(at: int, end: int) -> Step:
    """Decode ARCNET on Linux: source, destination, offset (2), protocol.

    RFC 1201 adds flag and sequence (2).
    """
    if at + 5 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    protocol = ld8(at + 4)
    here = at + 5
    if protocol == _ARCNET_IPV4_OLD:
        return IPV4, here, end, 0, NO_LINK
    if protocol == _ARCNET_ARP_OLD:
        return ARP, here, end, 0, NO_LINK
    if protocol not in (_ARCNET_IPV4, _ARCNET_ARP, _ARCNET_IPV6):
        return NOTHING, at, end, 0, NO_LINK
    if here + 3 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    flag = ld8(here)
    # Fragments after the first have even flags.
    if flag != 0 and flag & 1 == 0:
        return NOTHING, at, end, 0, NO_LINK
    if protocol == _ARCNET_IPV4:
        return IPV4, here + 3, end, 0, NO_LINK
    if protocol == _ARCNET_ARP:
        return ARP, here + 3, end, 0, NO_LINK
    return IPV6, here + 3, end, 0, NO_LINK


@kernel
def after_juniper_ethernet(at: int, end: int) -> Step:
    """Skip Juniper's header (magic, flags, optional extensions) before an Ethernet frame."""
    if at + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    if be32(at) >> 8 != _JUNIPER_MAGIC:
        return ODD, at, end, _MALFORMED, NO_LINK
    flags = ld8(at + 3)
    if flags & _JUNIPER_NO_L2:
        return NOTHING, at, end, 0, NO_LINK
    here = at + 4
    if flags & _JUNIPER_EXTENSIONS:
        if at + 6 > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
        here = at + 6 + be16(at + 4)
        if here > end:
            return ODD, at, end, _TRUNCATED, NO_LINK
    return ETHERNET, here, end, 0, NO_LINK


@kernel
def after_ipnet(at: int, end: int) -> Step:
    """Decode Solaris' ipnet header: version, family, hook (2), length (4), other ids (16)."""
    if at + _IPNET_BYTES > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    family = ld8(at + 1)
    if family == _SOLARIS_AF_INET:
        return IPV4, at + _IPNET_BYTES, end, 0, NO_LINK
    if family == _SOLARIS_AF_INET6:
        return IPV6, at + _IPNET_BYTES, end, 0, NO_LINK
    return NOTHING, at, end, 0, NO_LINK


@kernel
def after_infiniband(at: int, end: int) -> Step:
    """Decode IP over InfiniBand (RFC 4391): routing header (40), EtherType, reserved (2)."""
    here = at + _INFINIBAND_BYTES
    if here + 4 > end:
        return ODD, at, end, _TRUNCATED, NO_LINK
    return ETHERTYPE, here + 4, end, be16(here), NO_LINK
