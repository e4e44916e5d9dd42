"""Where decoded flow records are written: a block, and its index arrays."""

from __future__ import annotations

from typing import NamedTuple

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import st32, st64
from gscope.capture.packet.flow.layout import LINKTYPE_FLOW, REASON_SHIFT, RECORD_BYTES


class Output(NamedTuple):
    """Where flow records are written: addresses of the arrays of a block, and the arrival.

    Attributes:
        data: ``Block.data``.
        offset: ``Block.offset``.
        caplen: ``Block.caplen``.
        wirelen: ``Block.wirelen``.
        time_ns: ``Block.time_ns``.
        linktype: ``Block.linktype``.
        arrived_ns: when the datagram arrived.
    """

    data: int
    offset: int
    caplen: int
    wirelen: int
    time_ns: int
    linktype: int
    arrived_ns: int


@kernel_part
def emit(to: Output, count: int, wire_bytes: int) -> int:
    """Index the record at position ``count``; return the position of the next one."""
    st64(to.offset + 8 * count, count * RECORD_BYTES)
    st32(to.caplen + 4 * count, RECORD_BYTES)
    st32(to.wirelen + 4 * count, wire_bytes)
    st64(to.time_ns + 8 * count, to.arrived_ns)
    st32(to.linktype + 4 * count, LINKTYPE_FLOW)
    return count + 1


@kernel_part
def emit_odd(to: Output, count: int, reason: int, wire_bytes: int) -> int:
    """Index something undecodable at position ``count``; return the position of the next one.

    An earlier record may have been there, and ports are loaded from any record.
    """
    record = to.data + count * RECORD_BYTES
    for offset in range(8, RECORD_BYTES, 8):
        st64(record + offset, 0)
    st64(record, reason << REASON_SHIFT)
    return emit(to, count, wire_bytes)
