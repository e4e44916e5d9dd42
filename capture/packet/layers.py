"""``locate``: decode a run of packets of a block into records.

Ordinary packets, Ethernet with plain IPv4 or IPv6 and complete port numbers, take a short path
without a loop; all others take the walk.
"""

from __future__ import annotations

from typing import NamedTuple

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import be16, ld8, ld16, ld32, ld64, prefetch, st64
from gscope.capture.packet.decode_loop import walk
from gscope.capture.packet.decode_states import TYPE_IPV4, TYPE_IPV6
from gscope.capture.packet.link import LINKTYPE_ETHERNET, enter
from gscope.capture.packet.record import (
    ETHERNET_LINK,
    ETHERTYPE_SHIFT,
    HAS_PORTS,
    RECORD_BYTES,
    VERSION_SHIFT,
    write_record,
)

PREFETCH_BYTES = 4096
"""Distance of prefetching ahead of the current packet: about 40 packets truncated to 96 bytes."""

_ETHERNET_BYTES = 14
_V4_BYTES, _V6_BYTES = 20, 40
_PORTS_BYTES = 4

# Ethernet type 0800, version 4, header length 20 and any type of service, as loaded little-endian.
_V4_MASK, _V4_PLAIN = 0x00FF_FFFF, 0x0045_0008
# Ethernet type 86DD and version 6.
_V6_MASK, _V6_PLAIN = 0x00F0_FFFF, 0x0060_DD86
# More-fragments bit and fragment offset, as loaded little-endian.
_FRAGMENT_MASK = 0xFF3F

_V4_INFO = 4 << VERSION_SHIFT | TYPE_IPV4 << ETHERTYPE_SHIFT
_V6_INFO = 6 << VERSION_SHIFT | TYPE_IPV6 << ETHERTYPE_SHIFT


class PacketIndex(NamedTuple):
    """Addresses of the index arrays of a block that decoding reads.

    Between kernels it costs nothing.

    Attributes:
        offsets: address of ``offset`` (int64).
        caplens: address of ``caplen`` (int32).
        wirelens: address of ``wirelen`` (int32).
        linktypes: address of ``linktype`` (int32).
    """

    offsets: int
    caplens: int
    wirelens: int
    linktypes: int


@kernel
def locate(
    data: int,
    packets: PacketIndex,
    first: int,
    count: int,
    records: int,
    workspace: int,
) -> None:
    """Write the records of packets ``first`` to ``first + count`` of a block.

    Args:
        data: address of the block's ``data``.
        packets: addresses of its index arrays.
        first: index of the first packet.
        count: number of packets.
        records: address of room for ``count`` records of ``RECORD_BYTES``.
        workspace: address of ``WORKSPACE_BYTES`` bytes (see ``workspace.py``). The counter of a
            packet's reason is incremented, except that packets without a reason (``Reason.NONE``)
            are not counted on the short path.
    """
    for i in range(count):
        index = first + i
        base = data + ld64(packets.offsets + 8 * index)
        caplen = ld32(packets.caplens + 4 * index)
        record = records + RECORD_BYTES * i
        prefetch(base + PREFETCH_BYTES)
        if not (
            ld32(packets.linktypes + 4 * index) == LINKTYPE_ETHERNET
            and _locate_plain(record, base, base + caplen)
        ):
            linktype = ld32(packets.linktypes + 4 * index)
            wire_end = base + max(caplen, ld32(packets.wirelens + 4 * index))
            reason = _locate_any(record, linktype, base, base + caplen, wire_end, workspace)
            st64(workspace + 8 * reason, ld64(workspace + 8 * reason) + 1)


@kernel
def _locate_plain(record: int, base: int, end: int) -> bool:
    """Write the record if the packet is an ordinary one, and return whether it is."""
    l3 = base + _ETHERNET_BYTES
    if l3 + _V4_BYTES + _PORTS_BYTES > end:
        return False
    # Type, version and header length in one load.
    begin = ld32(base + 12)
    if begin & _V4_MASK == _V4_PLAIN:
        length = be16(l3 + 2)
        if ld16(l3 + 6) & _FRAGMENT_MASK or length < _V4_BYTES + _PORTS_BYTES:
            return False
        info = _V4_INFO | _with_ports(ld8(l3 + 9))
        write_record(record, l3, l3 + _V4_BYTES, min(end, l3 + length), info, ETHERNET_LINK)
        return True
    if begin & _V6_MASK == _V6_PLAIN and l3 + _V6_BYTES + _PORTS_BYTES <= end:
        length = be16(l3 + 4)
        protocol = ld8(l3 + 6)
        if length < _PORTS_BYTES or protocol not in (6, 17, 58):
            return False
        info = _V6_INFO | _with_ports(protocol)
        payload = l3 + _V6_BYTES
        write_record(record, l3, payload, min(end, payload + length), info, ETHERNET_LINK)
        return True
    return False


@kernel
def _with_ports(protocol: int) -> int:
    if protocol in (6, 17, 132):
        return protocol | HAS_PORTS
    return protocol


@kernel
def _locate_any(
    record: int, linktype: int, base: int, end: int, wire_end: int, workspace: int
) -> int:
    step, at, end, kind, link = enter(linktype, base, end, wire_end, workspace)
    return walk(record, base, step, at, end, kind, link)
