"""Datagrams of sFlow version 5, decoded into flow records (sFlow.org, *sFlow Version 5*, July 2004).

A flow sample is one packet of those that an agent samples; it becomes a record of one packet, whose
sampling interval is the sample's rate. What the record says of the packet comes from the sampled
header, which is decoded as a packet of a capture, or from the agent's own decoding (sampled IPv4,
IPv6 and Ethernet), and from the extended data of switch, router and gateway.
"""

from __future__ import annotations

from typing import NamedTuple

from gscope.capture.kernels.intrinsics import (
    be16,
    be32,
    be64,
    ld8,
    ld64,
    select,
    st8,
    st16,
    st32,
    st64,
)
from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS, CERTAIN, RECORD_BYTES
from gscope.capture.packet.layers import PacketIndex, locate
from gscope.capture.packet.payload import carries_ports, ipv6_low, is_icmp
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
from gscope.capture.sources.flows.output import Output, emit, emit_odd
from gscope.capture.sources.flows.records import MAPPED
from gscope.capture.sources.flows.state import ExportState, count_missing, find_stream

SFLOW_5 = 5 << 16
"""The version in streams: that of the datagram in 32 bits, so that it differs from NetFlow's."""

_FLOW_SAMPLE, _EXPANDED_FLOW_SAMPLE = 1, 3
_HEADER, _ETHERNET, _IPV4, _IPV6 = 1, 2, 3, 4
_SWITCH, _ROUTER, _GATEWAY = 1001, 1002, 1003
_LINK_ETHERNET, _LINK_IPV4, _LINK_IPV6 = 1, 11, 12
_LINKTYPE_ETHERNET, _LINKTYPE_RAW = 1, 101
_WORD, _ITEM_HEADER_BYTES = 4, 8
_LEAST_BYTES = 28
"""Bytes of the header of a datagram whose agent has an IPv4 address."""
_FLOW_BYTES, _EXPANDED_FLOW_BYTES = 32, 44
"""Bytes of a flow sample before its records."""
_NO_INTERFACE = 0x3FFFFFFF
_MAX_SEGMENTS = 256

_MALFORMED = int(Reason.FLOW_MALFORMED)
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
def is_sflow(at: int, size: int, is_cut: bool) -> bool:
    """Return whether a datagram begins as one of sFlow 5; of one that ``is_cut`` the end is missing."""
    if size < _LEAST_BYTES or be32(at) != 5:
        return False
    family = be32(at + 4)
    head = _LEAST_BYTES + select(family == 2, 12, 0)
    if family not in (1, 2) or size < head:
        return False
    samples = be32(at + head - _WORD)
    return is_cut or samples * _ITEM_HEADER_BYTES <= size - head


@kernel
def read_sflow(
    tables: ExportState, at: int, end: int, is_cut: bool, to: Output, count: int, inner: Inner
) -> int:
    """Decode a datagram that ``is_sflow``; return the position behind its last record.

    Args:
        tables: the state of exports.
        at: address of the datagram.
        end: address behind its last byte that was captured.
        is_cut: whether the rest of it was not captured.
        to: where records are written.
        count: position of the first one; there is room for one in each 8 bytes.
        inner: memory for sampled headers.
    """
    begin = at
    family = be32(at + 4)
    if family == 1:
        high, low = 0, MAPPED | be32(at + 8)
        at += 12
    else:
        high = be64(at + 8)
        low = ipv6_low(high, be64(at + 16))
        at += 24
    domain, sequence, samples = be32(at), be32(at + 4), be32(at + 12)
    stream = find_stream(tables, high, low, domain, SFLOW_5)
    count_missing(tables, stream, sequence, 1)
    at += 16
    for _ in range(samples):
        if at + _ITEM_HEADER_BYTES > end:
            return emit_odd(to, count, _MALFORMED, end - begin)
        form, length = be32(at), be32(at + 4)
        at += _ITEM_HEADER_BYTES
        if at + length > end:
            return emit_odd(to, count, _MALFORMED, end - begin)
        if form in (_FLOW_SAMPLE, _EXPANDED_FLOW_SAMPLE):
            out = to.data + count * RECORD_BYTES
            st64(out + layout.EXPORTER, high)
            st64(out + layout.EXPORTER + 8, low)
            st32(out + layout.DOMAIN, domain)
            present = _read_sample(form, at, at + length, out, inner)
            if present == 0:
                count = emit_odd(to, count, _MALFORMED, length)
            else:
                st64(out + layout.FIRST, to.arrived_ns)
                st64(out + layout.LAST, to.arrived_ns)
                st64(out + layout.PACKETS, 1)
                st64(out, present)
                count = emit(to, count, length)
        at += length
    if is_cut:
        count = emit_odd(to, count, _MALFORMED, end - begin)
    return count


@kernel_part
def _read_sample(form: int, at: int, end: int, out: int, inner: Inner) -> int:
    """Decode a flow sample into ``out``; return the bits of its fields, 0 if it is damaged."""
    is_expanded = form == _EXPANDED_FLOW_SAMPLE
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
    """Store the index of an interface and return its bit; 0 for none, several, or an unknown one."""
    if form != 0 or index in (0, _NO_INTERFACE):
        return 0
    st32(target, index)
    return bit


@kernel_part
def _read_item(kind: int, at: int, length: int, out: int, present: int, inner: Inner) -> int:
    """Decode a record of a sample; return the bits of all fields that are present, -1 if damaged."""
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
        st64(target, 0)
        st64(target + 8, MAPPED | be32(at + 4))
        return 8
    if family == 2 and at + 20 <= end:
        high = be64(at + 4)
        st64(target, high)
        st64(target + 8, ipv6_low(high, be64(at + 12)))
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
    st64(out + layout.SRC_IP, 0)
    st64(out + layout.SRC_IP + 8, MAPPED | be32(at + 8))
    st64(out + layout.DEST_IP, 0)
    st64(out + layout.DEST_IP + 8, MAPPED | be32(at + 12))
    return _decoded(at, at + 16, 4, out, present)


@kernel_part
def _read_ipv6(at: int, length: int, out: int, present: int) -> int:
    if length < 56:
        return -1
    if present & _OF_PACKET != 0:
        return present
    for target, begin in ((layout.SRC_IP, 8), (layout.DEST_IP, 24)):
        high = be64(at + begin)
        st64(out + target, high)
        st64(out + target + 8, ipv6_low(high, be64(at + begin + 8)))
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
        st64(out + layout.SRC_IP, 0)
        st64(out + layout.SRC_IP + 8, MAPPED | be32(l3 + 12))
        st64(out + layout.DEST_IP, 0)
        st64(out + layout.DEST_IP + 8, MAPPED | be32(l3 + 16))
        st8(out + layout.TOS, ld8(l3 + 1))
    else:
        for target, begin in ((layout.SRC_IP, 8), (layout.DEST_IP, 24)):
            high = be64(l3 + begin)
            st64(out + target, high)
            st64(out + target + 8, ipv6_low(high, be64(l3 + begin + 8)))
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
