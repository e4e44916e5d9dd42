"""The walk from a step to the IP header: follows shims to IP, ARP or something else."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16
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
    MPLS,
    NOTHING,
    ODD,
    PPP,
    PPP_HDLC,
    PPPOE,
)
from gscope.capture.packet.link_headers import (
    Step,
    after_ethertype,
    after_length_or_type,
    after_llc,
    after_mpls,
    after_ppp,
    after_ppp_hdlc,
    after_pppoe,
    is_tag,
)
from gscope.capture.packet.network import record_arp, record_ip, record_nothing
from gscope.capture.packet.wireless import mac_link

MAX_LAYERS = 256
"""Longest walk, in steps; Wireshark stops at a similar depth."""

ETHERNET_HEADER_BYTES = 14

_NONE = int(Reason.NONE)
_TRUNCATED = int(Reason.LINK_TRUNCATED)
_TOO_DEEP = int(Reason.TOO_DEEP)


@kernel
def walk(record: int, base: int, step: int, at: int, end: int, kind: int, link: int) -> int:
    """Follow the headers from a step, write the packet's record, and return the reason.

    ``kind`` is the step's type. The record's EtherType is the first that is not a tag.
    """
    ethertype = 0
    for _ in range(MAX_LAYERS):
        if step == IP:
            return record_ip(record, at, end, ethertype, link, 0)
        if step == IPV4:
            return record_ip(record, at, end, ethertype, link, 4)
        if step == IPV6:
            return record_ip(record, at, end, ethertype, link, 6)
        if step == ARP:
            return record_arp(record, at, end, ethertype, link)
        if step == NOTHING:
            return record_nothing(record, end, ethertype, link, _NONE)
        if step == ODD:
            return record_nothing(record, end, ethertype, link, kind)
        if step == ETHERTYPE:
            if ethertype == 0 and not is_tag(kind):
                ethertype = kind
            step, at, end, kind, link = after_ethertype(at, end, kind, link)
        elif step == ETHERNET:
            step, at, end, kind, link = _after_ethernet(base, at, end, link)
        elif step == LENGTH_OR_TYPE:
            step, at, end, kind, link = after_length_or_type(at, end, kind, link)
        elif step == LLC:
            step, at, end, kind, link = after_llc(at, end, link)
        elif step == MPLS:
            step, at, end, kind, link = after_mpls(at, end, link)
        elif step == PPPOE:
            step, at, end, kind, link = after_pppoe(at, end, link)
        elif step == PPP:
            step, at, end, kind, link = after_ppp(at, end, link)
        elif step == PPP_HDLC:
            step, at, end, kind, link = after_ppp_hdlc(at, end, link)
    return record_nothing(record, end, ethertype, link, _TOO_DEEP)


@kernel
def _after_ethernet(base: int, at: int, end: int, link: int) -> Step:
    if at + ETHERNET_HEADER_BYTES > end:
        return ODD, at, end, _TRUNCATED, link
    # The outermost addresses count; NOWHERE in both means that there were none yet.
    if link & 0xFFFFFFFF == 0xFFFFFFFF:
        vlans = link >> 32
        link = mac_link(at - base, at + 6 - base) & 0xFFFFFFFF | vlans << 32
    return LENGTH_OR_TYPE, at + ETHERNET_HEADER_BYTES, end, be16(at + 12), link
