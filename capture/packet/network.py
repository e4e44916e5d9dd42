"""From an IP or ARP header to the packet's record."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.record import (
    ETHERTYPE_SHIFT,
    FRAGMENT_OFFSET_SHIFT,
    HAS_PORTS,
    IS_ARP,
    MORE_FRAGMENTS,
    REASON_SHIFT,
    VERSION_SHIFT,
    write_record,
)

IPV4_HEADER_BYTES = 20
IPV6_HEADER_BYTES = 40
ARP_FIXED_BYTES = 8
PORTS_BYTES = 4

_NONE = int(Reason.NONE)
_IP_TRUNCATED = int(Reason.IP_TRUNCATED)
_IP_BAD_VERSION = int(Reason.IP_BAD_VERSION)
_IP_BAD_LENGTH = int(Reason.IP_BAD_LENGTH)
_EXTENSION_TRUNCATED = int(Reason.EXTENSION_TRUNCATED)
_TRANSPORT_TRUNCATED = int(Reason.TRANSPORT_TRUNCATED)

_HOP_BY_HOP, _ROUTING, _FRAGMENT, _DESTINATION_OPTIONS = 0, 43, 44, 60


@kernel
def record_nothing(record: int, end: int, ethertype: int, link: int, reason: int) -> int:
    """Write the record of a packet without IP or ARP, and return the reason."""
    info = ethertype << ETHERTYPE_SHIFT | reason << REASON_SHIFT
    write_record(record, end, end, end, info, link)
    return reason


@kernel
def record_arp(record: int, at: int, end: int, ethertype: int, link: int) -> int:
    """Write the record of the ARP packet at ``at``, and return the reason."""
    if at + ARP_FIXED_BYTES > end:
        return record_nothing(record, end, ethertype, link, _IP_TRUNCATED)
    write_record(record, at, end, end, IS_ARP | ethertype << ETHERTYPE_SHIFT, link)
    return _NONE


@kernel
def record_ip(record: int, at: int, end: int, ethertype: int, link: int, only: int) -> int:
    """Write the record of the IP packet at ``at``, or of one without IP; return the reason.

    ``end`` is one past the last captured byte of the enclosing layer; ``only`` is the one version
    allowed here, or 0 for both.
    """
    if at + 1 > end:
        return record_nothing(record, end, ethertype, link, _IP_TRUNCATED)
    version = ld8(at) >> 4
    if only not in (0, version):
        return record_nothing(record, end, ethertype, link, _IP_BAD_VERSION)
    if version == 6:
        return _record_ipv6(record, at, end, ethertype, link)
    if version == 4:
        return _record_ipv4(record, at, end, ethertype, link)
    return record_nothing(record, end, ethertype, link, _IP_BAD_VERSION)


@kernel
def _record_ipv4(record: int, at: int, end: int, ethertype: int, link: int) -> int:
    if at + IPV4_HEADER_BYTES > end:
        return record_nothing(record, end, ethertype, link, _IP_TRUNCATED)
    header_length = (ld8(at) & 15) << 2
    total_length = be16(at + 2)
    pend = end
    # Segmentation offload writes 0; the packet then fills the frame.
    if total_length != 0:
        if total_length < header_length:
            return record_nothing(record, end, ethertype, link, _IP_BAD_LENGTH)
        pend = min(end, at + total_length)
    if header_length < IPV4_HEADER_BYTES:
        return record_nothing(record, end, ethertype, link, _IP_BAD_LENGTH)
    fragment = be16(at + 6)
    more = MORE_FRAGMENTS if fragment & 0x2000 else 0
    info = 4 << VERSION_SHIFT | ethertype << ETHERTYPE_SHIFT | more
    return _record_transport(
        record, at, at + header_length, pend, info, ld8(at + 9), fragment & 0x1FFF, link
    )


@kernel
def _record_ipv6(record: int, at: int, end: int, ethertype: int, link: int) -> int:
    """Write the record of an IPv6 packet, with the first protocol after extension headers.

    See RFC 8200 section 4. AH, ESP and mobility headers are final. A later fragment ends the walk,
    because its payload does not begin with a header.
    """
    if at + IPV6_HEADER_BYTES > end:
        return record_nothing(record, end, ethertype, link, _IP_TRUNCATED)
    payload_length = be16(at + 4)
    pend = end
    if payload_length != 0:
        pend = min(end, at + IPV6_HEADER_BYTES + payload_length)
    protocol = ld8(at + 6)
    here = at + IPV6_HEADER_BYTES
    fragment_offset = 0
    info = 6 << VERSION_SHIFT | ethertype << ETHERTYPE_SHIFT
    while fragment_offset == 0 and (
        protocol in (_HOP_BY_HOP, _ROUTING, _FRAGMENT, _DESTINATION_OPTIONS)
    ):
        if here + 8 > pend:
            # Truncated; but the first byte of options, if captured, identifies the next header.
            if here + 2 <= pend and protocol != _FRAGMENT:
                protocol = ld8(here)
            here = pend + 1
            break
        if protocol == _FRAGMENT:
            fragment_offset = be16(here + 2) >> 3
            if be16(here + 2) & 1:
                info |= MORE_FRAGMENTS
            length = 8
        else:
            length = (ld8(here + 1) + 1) << 3
        protocol = ld8(here)
        here += length
        if here > pend:
            break
    return _record_transport(record, at, here, pend, info, protocol, fragment_offset, link)


@kernel
def _record_transport(
    record: int,
    l3: int,
    payload: int,
    pend: int,
    info: int,
    protocol: int,
    fragment_offset: int,
    link: int,
) -> int:
    """Write the record; ``payload`` beyond ``pend`` means incomplete headers before it."""
    reason = _NONE
    if payload > pend:
        reason = _EXTENSION_TRUNCATED
        payload = pend
    elif fragment_offset == 0 and (protocol == 6 or protocol == 17 or protocol == 132):
        if payload + PORTS_BYTES <= pend:
            info |= HAS_PORTS
        else:
            reason = _TRANSPORT_TRUNCATED
    info |= protocol | fragment_offset << FRAGMENT_OFFSET_SHIFT | reason << REASON_SHIFT
    write_record(record, l3, payload, pend, info, link)
    return reason
