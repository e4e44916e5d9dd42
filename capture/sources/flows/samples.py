"""Flow samples of sFlow version 5, as flow records.

Source: sFlow.org, *sFlow Version 5*, July 2004, section 5. What a record says of the sampled packet
comes from its header, which is decoded as a packet of a capture, or from the agent's own decoding
(sampled IPv4, IPv6 and Ethernet), and from the extended data of switch, router and gateway.
"""

from __future__ import annotations

from typing import NamedTuple

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import (
    be16,
    be32,
    ld8,
    ld64,
    select,
    st8,
    st16,
    st32,
    st64,
)
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS, CERTAIN
from gscope.capture.packet.layers import PacketIndex, locate
from gscope.capture.packet.payload import carries_ports, is_icmp
from gscope.capture.packet.record import (
    FRAGMENT_OFFSET_SHIFT,
    HAS_PORTS,
    INFO,
    L3,
    LINK,
    NOWHERE,
    PAYLOAD,
    PEND,
    VERSION_SHIFT,
)
from gscope.capture.sources.flows.addresses import put_ipv4, put_ipv6

_HEADER, _ETHERNET, _IPV4, _IPV6 = 1, 2, 3, 4
_SWITCH, _ROUTER, _GATEWAY = 1001, 1002, 1003
_LINK_ETHERNET, _LINK_IPV4, _LINK_IPV6 = 1, 11, 12
_LINKTYPE_ETHERNET, _LINKTYPE_RAW = 1, 101
_WORD, _ITEM_HEADER_BYTES = 4, 8
_FLOW_BYTES, _EXPANDED_FLOW_BYTES = 32, 44
"""Bytes of a flow sample before its records."""
_NO_INTERFACE = 0x3FFFFFFF
_MAX_SEGMENTS = 256

_SRC_IP, _DEST_IP = 1 << BITS[layout.SRC_IP], 1 << BITS[layout.DEST_IP]
_BYTES, _PACKETS, _VERSION = (
    1 << BITS[layout.BYTES],
    1 << BITS[layout.PACKETS],
    1 << BITS[layout.VERSION],
)
_PROTOCOL, _TOS, _FLAGS = (
    1 << BITS[layout.PROTOCOL],
    1 << BITS[layout.TOS],
    1 << BITS[layout.FLAGS],
)
_TYPE, _CODE = 1 << BITS[layout.TYPE], 1 << BITS[layout.CODE]
_VLAN, _NEXT_HOP = 1 << BITS[layout.VLAN], 1 << BITS[layout.NEXT_HOP]
_MASKS = 1 << BITS[layout.SRC_MASK] | 1 << BITS[layout.DEST_MASK]
_SRC_AS, _DEST_AS = 1 << BITS[layout.SRC_AS], 1 << BITS[layout.DEST_AS]
_INPUT, _OUTPUT = 1 << BITS[layout.INPUT], 1 << BITS[layout.OUTPUT]
_SAMPLE_BITS = (
    CERTAIN
    | _PACKETS
    | 1 << BITS[layout.EXPORTER]
    | 1 << BITS[layout.DOMAIN]
    | 1 << BITS[layout.FIRST]
    | 1 << BITS[layout.LAST]
)
_OF_PACKET = _SRC_IP | _DEST_IP | _VERSION | _PROTOCOL


class Inner(NamedTuple):
    """Memory in which sampled headers are located, as addresses.

    Attributes:
        record: room for the record of a packet.
        sampled: room for the index of one packet: 24 bytes.
        workspace: the workspace of ``locate``.
    """

    record: int
    sampled: int
    workspace: int


@kernel_part
def read_sample(is_expanded: bool, at: int, end: int, out: int, inner: Inner) -> int:
    """Decode a flow sample into ``out``; return the bits of its fields, 0 if it is damaged.

    Args:
        is_expanded: whether its interfaces have numbers of 32 bits.
        at: address of the sample.
        end: address behind it.
        out: address of the flow record.
        inner: memory for sampled headers.
    """
    if at + select(is_expanded, _EXPANDED_FLOW_BYTES, _FLOW_BYTES) > end:
        return 0
    # An expanded sample has its source, and then each interface, in two words.
    at += select(is_expanded, 12, 8)
    st32(out + layout.SAMPLING, max(be32(at), 1))
    at += 12
    if is_expanded:
        present = _interface(out + layout.INPUT, be32(at), be32(at + 4), _INPUT)
        present |= _interface(out + layout.OUTPUT, be32(at + 8), be32(at + 12), _OUTPUT)
        at += 16
    else:
        present = _interface(out + layout.INPUT, be32(at) >> 30, be32(at) & _NO_INTERFACE, _INPUT)
        word = be32(at + 4)
        present |= _interface(out + layout.OUTPUT, word >> 30, word & _NO_INTERFACE, _OUTPUT)
        at += 8
    present |= _SAMPLE_BITS
    st16(out + layout.SRC_PORT, 0)
    st16(out + layout.DEST_PORT, 0)
    records = be32(at)
    at += _WORD
    for _ in range(min(records, (end - at) // _ITEM_HEADER_BYTES + 1)):
        if at + _ITEM_HEADER_BYTES > end:
            return 0
        kind, length = be32(at), be32(at + 4)
        at += _ITEM_HEADER_BYTES
        if at + length > end:
            return 0
        found = _read_item(kind, at, length, out, present, inner)
        if found < 0:
            return 0
        present = found
        at += length
    return present


@kernel_part
def _interface(target: int, form: int, index: int, bit: int) -> int:
    """Store the index of an interface and return its bit.

    0 for none, several, or an unknown one.
    """
    if form != 0 or index in (0, _NO_INTERFACE):
        return 0
    st32(target, index)
    return bit


@kernel_part
def _read_item(kind: int, at: int, length: int, out: int, present: int, inner: Inner) -> int:
    """Decode a record of a sample; return the bits of all fields that are present.

    -1 if it is damaged.
    """
    end = at + length
    if kind == _HEADER:
        if length < 16 or be32(at + 12) > length - 16:
            return -1
        st64(out + layout.BYTES, be32(at + 4))
        link = be32(at)
        if link not in (_LINK_ETHERNET, _LINK_IPV4, _LINK_IPV6):
            return present | _BYTES
        linktype = select(link == _LINK_ETHERNET, _LINKTYPE_ETHERNET, _LINKTYPE_RAW)
        return _read_header(at + 16, be32(at + 12), be32(at + 4), linktype, out, present, inner)
    if kind == _ETHERNET:
        if length < 4:
            return -1
        if present & _BYTES == 0:
            st64(out + layout.BYTES, be32(at))
        return present | _BYTES
    if kind == _IPV4:
        return _read_ipv4(at, length, out, present)
    if kind == _IPV6:
        return _read_ipv6(at, length, out, present)
    if kind == _SWITCH:
        if length < 16:
            return -1
        if present & _VLAN != 0 or be32(at) > 0xFFFF:
            return present
        st16(out + layout.VLAN, be32(at))
        return present | _VLAN
    if kind == _ROUTER:
        width = _address(at, end, out + layout.NEXT_HOP)
        if width < 0 or at + width + 8 > end:
            return -1
        st8(out + layout.SRC_MASK, min(be32(at + width), 255))
        st8(out + layout.DEST_MASK, min(be32(at + width + 4), 255))
        return present | _MASKS | select(width > _WORD, _NEXT_HOP, 0)
    if kind == _GATEWAY:
        return _read_gateway(at, end, out, present)
    return present


@kernel_part
def _address(at: int, end: int, target: int) -> int:
    """Store an address that follows its type; return the bytes of both, -1 if damaged."""
    if at + _WORD > end:
        return -1
    family = be32(at)
    if family == 0:
        return _WORD
    if family == 1 and at + 8 <= end:
        put_ipv4(at + 4, target)
        return 8
    if family == 2 and at + 20 <= end:
        put_ipv6(at + 4, target)
        return 20
    return -1


@kernel_part
def _read_gateway(at: int, end: int, out: int, present: int) -> int:
    """Store the autonomous systems: that of the source, and the last one of the path."""
    # The address of the next hop in BGP is not that of the next router.
    family = be32(at) if at + _WORD <= end else 3
    if family > 2:
        return -1
    at += select(family == 0, 4, select(family == 1, 8, 20))
    if at + 16 > end:
        return -1
    st32(out + layout.SRC_AS, be32(at + 4))
    segments = be32(at + 12)
    at += 16
    for _ in range(min(segments, _MAX_SEGMENTS)):
        if at + 8 > end:
            return -1
        length = be32(at + 4)
        at += 8
        if length > (end - at) // _WORD:
            return -1
        if length > 0:
            st32(out + layout.DEST_AS, be32(at + _WORD * (length - 1)))
            present |= _DEST_AS
        at += _WORD * length
    return present | _SRC_AS


@kernel_part
def _read_ipv4(at: int, length: int, out: int, present: int) -> int:
    """Store what an agent has decoded of an IPv4 packet, unless its header was sampled."""
    if length < 32:
        return -1
    if present & _OF_PACKET != 0:
        return present
    put_ipv4(at + 8, out + layout.SRC_IP)
    put_ipv4(at + 12, out + layout.DEST_IP)
    return _decoded(at, at + 16, 4, out, present)


@kernel_part
def _read_ipv6(at: int, length: int, out: int, present: int) -> int:
    if length < 56:
        return -1
    if present & _OF_PACKET != 0:
        return present
    put_ipv6(at + 8, out + layout.SRC_IP)
    put_ipv6(at + 24, out + layout.DEST_IP)
    return _decoded(at, at + 40, 6, out, present)


@kernel_part
def _decoded(at: int, ports: int, version: int, out: int, present: int) -> int:
    """Store the length and the protocol at ``at``, and ports, flags and class at ``ports``."""
    protocol = be32(at + 4) & 255
    if present & _BYTES == 0:
        st64(out + layout.BYTES, be32(at))
    st8(out + layout.VERSION, version)
    st8(out + layout.PROTOCOL, protocol)
    st8(out + layout.TOS, be32(ports + 12) & 255)
    if carries_ports(protocol) != 0:
        st16(out + layout.SRC_PORT, be32(ports) & 0xFFFF)
        st16(out + layout.DEST_PORT, be32(ports + 4) & 0xFFFF)
    present |= _BYTES | _OF_PACKET | _TOS
    if protocol == 6:
        st8(out + layout.FLAGS, be32(ports + 8) & 255)
        present |= _FLAGS
    return present


@kernel_part
def _read_header(
    at: int, caplen: int, wire_bytes: int, linktype: int, out: int, present: int, inner: Inner
) -> int:
    """Decode a sampled header as a packet, and store the fields that its queries would see.

    They replace what the agent has decoded of the packet.
    """
    present = (present | _BYTES) & ~(_OF_PACKET | _TOS | _FLAGS | _TYPE | _CODE)
    st16(out + layout.SRC_PORT, 0)
    st16(out + layout.DEST_PORT, 0)
    st64(inner.sampled, 0)
    st32(inner.sampled + 8, caplen)
    st32(inner.sampled + 12, max(wire_bytes, caplen))
    st32(inner.sampled + 16, linktype)
    index = PacketIndex(inner.sampled, inner.sampled + 8, inner.sampled + 12, inner.sampled + 16)
    locate(at, index, 0, 1, inner.record, inner.workspace)
    info, link = ld64(inner.record + INFO), ld64(inner.record + LINK)
    vlan = (link >> 32) & 0xFFFF
    if vlan != NOWHERE:
        st16(out + layout.VLAN, vlan)
        present |= _VLAN
    version = (info >> VERSION_SHIFT) & 15
    if version == 0:
        return present
    l3, end = ld64(inner.record + L3), ld64(inner.record + PEND)
    payload = ld64(inner.record + PAYLOAD)
    protocol = info & 255
    present |= _OF_PACKET | _TOS
    st8(out + layout.VERSION, version)
    st8(out + layout.PROTOCOL, protocol)
    if version == 4:
        put_ipv4(l3 + 12, out + layout.SRC_IP)
        put_ipv4(l3 + 16, out + layout.DEST_IP)
        st8(out + layout.TOS, ld8(l3 + 1))
    else:
        put_ipv6(l3 + 8, out + layout.SRC_IP)
        put_ipv6(l3 + 24, out + layout.DEST_IP)
        st8(out + layout.TOS, (be16(l3) >> 4) & 255)
    if (info >> FRAGMENT_OFFSET_SHIFT) & 0x1FFF != 0:
        return present
    if info & HAS_PORTS != 0:
        st16(out + layout.SRC_PORT, be16(payload))
        st16(out + layout.DEST_PORT, be16(payload + 2))
        if protocol == 6 and payload + 14 <= end:
            st8(out + layout.FLAGS, ld8(payload + 13))
            present |= _FLAGS
    elif is_icmp(version, protocol) and payload + 2 <= end:
        st8(out + layout.TYPE, ld8(payload))
        st8(out + layout.CODE, ld8(payload + 1))
        present |= _TYPE | _CODE
    return present
