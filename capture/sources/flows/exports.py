"""The kernel that finds exports among the packets of a block, and decodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import address_of, be16, be32, be64, ld32, ld64
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.layers import PacketIndex, locate
from gscope.capture.packet.payload import ipv6_low
from gscope.capture.packet.record import (
    FRAGMENT_OFFSET_SHIFT,
    INFO,
    L3,
    MORE_FRAGMENTS,
    PAYLOAD,
    PEND,
    VERSION_SHIFT,
)
from gscope.capture.packet.workspace import begin_batch
from gscope.capture.sources.flows import state
from gscope.capture.sources.flows.addresses import MAPPED
from gscope.capture.sources.flows.datagrams import is_export, read_datagram
from gscope.capture.sources.flows.output import Output, emit_odd
from gscope.capture.sources.flows.samples import Inner
from gscope.capture.sources.flows.sflow import is_sflow, read_sflow

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gscope.capture.sources.block import IndexArrays
    from gscope.capture.sources.flows.state import ExportState

COLLECTOR_PORTS = (2055, 2056, 4739, 6343, 9995, 9996)
"""Ports to which exporters send by default."""

LOCATED_BYTES = 192
"""Bytes for what ``locate`` finds: a packet's record, and the record and index of a sampled
header."""

_UDP, _UDP_HEADER_BYTES = 17, 8
_MALFORMED = int(Reason.FLOW_MALFORMED)


@kernel
def read_exports(
    data: NDArray[np.uint8],
    packets: IndexArrays,
    first: int,
    count: int,
    flows: NDArray[np.uint8],
    records: IndexArrays,
    limit: int,
    tables: ExportState,
    workspace: NDArray[np.uint8],
) -> tuple[int, int]:
    """Decode the exports among packets ``first`` to ``count`` of a block into flow records.

    Args:
        data: bytes of the packets.
        packets: their index arrays.
        first: index of the first packet.
        count: index behind the last one.
        flows: bytes of the block of flow records.
        records: its index arrays.
        limit: number of records at which to stop; a whole datagram more has room.
        tables: the state of exports, which is updated.
        workspace: ``LOCATED_BYTES`` for the records of a packet and of a sampled header, and then
            the workspace of ``locate``.

    Returns:
        The index of the first packet that was not read, and the number of flow records.
    """
    base = address_of(data)
    index = PacketIndex(
        offsets=address_of(packets[0]),
        caplens=address_of(packets[1]),
        wirelens=address_of(packets[2]),
        linktypes=address_of(packets[4]),
    )
    record = address_of(workspace)
    inner = Inner(record + 64, record + 128, record + LOCATED_BYTES)
    work = inner.workspace
    found = 0
    while first < count and found < limit:
        begin_batch(work)
        locate(base, index, first, 1, record, work)
        tables.counters[state.PACKETS] += 1
        info = ld64(record + INFO)
        at, end = ld64(record + PAYLOAD), ld64(record + PEND)
        is_first = (info >> FRAGMENT_OFFSET_SHIFT) & 0x1FFF == 0
        if info & 255 == _UDP and is_first and at + _UDP_HEADER_BYTES <= end:
            to = Output(
                data=address_of(flows),
                offset=address_of(records[0]),
                caplen=address_of(records[1]),
                wirelen=address_of(records[2]),
                time_ns=address_of(records[3]),
                linktype=address_of(records[4]),
                arrived_ns=ld64(address_of(packets[3]) + 8 * first),
            )
            stop = at + be16(at + 4)
            is_cut = (stop > end) | (info & MORE_FRAGMENTS != 0)
            port = be16(at + 2)
            at += _UDP_HEADER_BYTES
            stop = min(stop, end)
            wire_bytes = ld32(index.wirelens + 4 * first)
            if is_export(at, stop - at, is_cut):
                high, low = _sender(ld64(record + L3), (info >> VERSION_SHIFT) & 15)
                found = read_datagram(tables, at, stop, high, low, to, found)
            elif is_sflow(at, stop - at, is_cut):
                tables.counters[state.DATAGRAMS] += 1
                found = read_sflow(tables, at, stop, is_cut, to, found, inner)
            elif port in COLLECTOR_PORTS and (stop > at or is_cut):
                found = emit_odd(to, found, _MALFORMED, wire_bytes)
        first += 1
    return first, found


@kernel
def _sender(l3: int, version: int) -> tuple[int, int]:
    """Return the two halves of the source address of an IP header."""
    if version == 4:
        return 0, MAPPED | be32(l3 + 12)
    high = be64(l3 + 8)
    return high, ipv6_low(high, be64(l3 + 16))
