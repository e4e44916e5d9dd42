"""The kernel that turns the records in a block of a file into flow records.

A flow record of the file is a header and elements, each with its type and size; the sizes are
checked, and elements that gscope does not know are skipped. Records about exporters and samplers
precede the flow records that refer to them by a number.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.kernels.language.intrinsics import (
    address_of,
    ld8,
    ld16,
    ld32,
    ld64,
    select,
    st8,
    st16,
    st32,
    st64,
)
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS, CERTAIN, REASON_SHIFT, RECORD_BYTES
from gscope.capture.packet.payload import ipv6_low
from gscope.capture.sources.flows.addresses import MAPPED
from gscope.capture.sources.flows.records import finish_record, note_version
from gscope.capture.sources.nfcapd import layout as stored
from gscope.queries.int64 import MAX_INT, MAX_TIME_NS

if TYPE_CHECKING:
    from numpy.typing import NDArray

ENTRY_BYTES = 16 + RECORD_BYTES
"""What is written for a record: its time in nanoseconds since 1970, its size in the file, both in 8
bytes, and the flow record."""

EXPORTERS = 1 << 16
"""Numbers that a file has for exporters."""
HIGH, LOW, DOMAIN, SAMPLERS, INTERVAL, EXPORTER_WORDS = range(6)
"""Words of an exporter: the halves of its address, both 0 if it is unknown, its domain, the number
of its samplers, and the sampling interval of the latest."""

_IS_SAMPLED = 2
_HEADER_BYTES, _ELEMENT_BYTES = 12, 4
_EXPORTER_BYTES, _SAMPLER_BYTES, _OLD_SAMPLER_BYTES = 32, 24, 16
_IPV4_FAMILY, _IPV6_FAMILY = 2, 10
_MILLISECOND_NS = 1_000_000
_MAX_MS = MAX_TIME_NS // _MILLISECOND_NS - 1
_ODD = int(Reason.FLOW_MALFORMED) << REASON_SHIFT


def _bits(*offsets: int) -> int:
    return sum(1 << BITS[offset] for offset in offsets)


_GENERIC = _bits(layout.PACKETS, layout.BYTES, layout.PROTOCOL, layout.FLAGS, layout.TOS)
_FIRST, _LAST = _bits(layout.FIRST), _bits(layout.LAST)
_ADDRESSES = _bits(layout.SRC_IP, layout.DEST_IP)
_MISC = _bits(
    *(layout.INPUT, layout.OUTPUT, layout.SRC_MASK, layout.DEST_MASK, layout.DIRECTION),
)
_VLAN, _AS, _NEXT_HOP = (
    _bits(layout.VLAN),
    _bits(layout.SRC_AS, layout.DEST_AS),
    _bits(layout.NEXT_HOP),
)
_EXPORTER, _DOMAIN = _bits(layout.EXPORTER), _bits(layout.DOMAIN)


def new_exporters() -> NDArray[np.int64]:
    """Return the table of exporters of a file that was not read yet; memory is taken as used."""
    return np.zeros((EXPORTERS, EXPORTER_WORDS), np.int64)


@kernel
def decode_records(
    block: NDArray[np.uint8],
    used: int,
    out: NDArray[np.uint8],
    exporters: NDArray[np.int64],
    latest_ns: int,
) -> tuple[int, int, int]:
    """Decode the records of a block from ``used`` on, until the end or until ``out`` is full.

    Args:
        block: content of the block.
        used: position of the first record.
        out: memory for entries of ``ENTRY_BYTES``, at least one.
        exporters: what the file has said about exporters, which is updated.
        latest_ns: time of a record that states none.

    Returns:
        The position behind the last record that was read, -1 if the rest of the block is damaged;
        the number of bytes written; and the time of the last record.
    """
    base, to = address_of(block), address_of(out)
    begin, limit = to, to + out.size - ENTRY_BYTES
    end = block.size
    while used < end and to <= limit:
        at = base + used
        if used + _ELEMENT_BYTES > end:
            return -1, _put_odd(to, latest_ns, end - used) - begin, latest_ns
        kind, size = ld16(at), ld16(at + 2)
        if size < _ELEMENT_BYTES or used + size > end:
            return -1, _put_odd(to, latest_ns, end - used) - begin, latest_ns
        if kind == stored.FLOW_RECORD:
            time_ns = _read_flow(at, at + size, to + 16, exporters, latest_ns)
            if time_ns < 0:
                to = _put_odd(to, latest_ns, size)
            else:
                latest_ns = time_ns
                st64(to, time_ns)
                st64(to + 8, size)
                to += ENTRY_BYTES
        elif kind == stored.EXPORTER_RECORD and size >= _EXPORTER_BYTES:
            _note_exporter(at, exporters)
        elif kind == stored.SAMPLER_RECORD and size >= _SAMPLER_BYTES:
            packets, space = ld32(at + 16), ld32(at + 20)
            if packets > 0:
                _note_sampler(exporters, ld16(at + 4), (packets + space) // packets)
        elif kind == stored.OLD_SAMPLER_RECORD and size >= _OLD_SAMPLER_BYTES:
            _note_sampler(exporters, ld16(at + 14), ld32(at + 8))
        used += size
    return used, to - begin, latest_ns


@kernel_part
def _put_odd(to: int, time_ns: int, size: int) -> int:
    """Write an entry for something undecodable; return the address behind it."""
    st64(to, time_ns)
    st64(to + 8, size)
    st64(to + 16, _ODD)
    return to + ENTRY_BYTES


@kernel_part
def _note_exporter(at: int, exporters: NDArray[np.int64]) -> None:
    row = exporters[ld16(at + 26)]
    family = ld16(at + 24)
    high, low = ld64(at + 8), ld64(at + 16)
    if family == _IPV4_FAMILY:
        high, low = 0, MAPPED | (low & 0xFFFFFFFF)
    elif family == _IPV6_FAMILY:
        low = ipv6_low(high, low)
    else:
        high, low = 0, 0
    row[HIGH], row[LOW], row[DOMAIN] = high, low, ld32(at + 28)
    row[SAMPLERS], row[INTERVAL] = 0, 0


@kernel_part
def _note_sampler(exporters: NDArray[np.int64], number: int, interval: int) -> None:
    row = exporters[number]
    if interval != row[INTERVAL]:
        row[SAMPLERS] += 1
        row[INTERVAL] = interval


@kernel_part
def _read_flow(at: int, end: int, out: int, exporters: NDArray[np.int64], latest_ns: int) -> int:
    """Decode a record into ``out``; return its time in nanoseconds since 1970, -1 if damaged."""
    if at + _HEADER_BYTES > end:
        return -1
    elements, flags = ld16(at + 4), ld8(at + 10)
    row = exporters[ld16(at + 8)]
    present = CERTAIN
    if row[LOW] != 0 or row[HIGH] != 0:
        st64(out + layout.EXPORTER, row[HIGH])
        st64(out + layout.EXPORTER + 8, row[LOW])
        st32(out + layout.DOMAIN, row[DOMAIN])
        present |= _EXPORTER | _DOMAIN
    st16(out + layout.SRC_PORT, 0)
    st16(out + layout.DEST_PORT, 0)
    received_ms = 0
    at += _HEADER_BYTES
    for _ in range(elements):
        if at + _ELEMENT_BYTES > end:
            return -1
        kind, size = ld16(at), ld16(at + 2)
        if size < _ELEMENT_BYTES or at + size > end:
            return -1
        data, room = at + _ELEMENT_BYTES, size - _ELEMENT_BYTES
        if kind == stored.FLOW and room >= 48:
            received_ms = ld64(data + 16)
            present |= _take_flow(data, out)
        else:
            present |= _take_element(kind, data, room, out)
        at += size
    present = note_version(out, present)
    finish_record(out, present, _exported_interval(out, present, flags, row))
    if 0 < received_ms <= _MAX_MS:
        return received_ms * _MILLISECOND_NS
    if present & _LAST != 0:
        return ld64(out + layout.LAST)
    return latest_ns


@kernel_part
def _take_flow(at: int, out: int) -> int:
    """Store the element that all records have; return the bits of its fields."""
    present = _GENERIC
    first_ms, last_ms = ld64(at), ld64(at + 8)
    if 0 < first_ms <= _MAX_MS:
        st64(out + layout.FIRST, first_ms * _MILLISECOND_NS)
        present |= _FIRST
    if 0 < last_ms <= _MAX_MS:
        st64(out + layout.LAST, last_ms * _MILLISECOND_NS)
        present |= _LAST
    st64(out + layout.PACKETS, _clamped(ld64(at + 24)))
    st64(out + layout.BYTES, _clamped(ld64(at + 32)))
    st16(out + layout.SRC_PORT, ld16(at + 40))
    st16(out + layout.DEST_PORT, ld16(at + 42))
    st8(out + layout.PROTOCOL, ld8(at + 44))
    st8(out + layout.FLAGS, ld8(at + 45))
    st8(out + layout.TOS, ld8(at + 47))
    return present


@kernel_part
def _clamped(value: int) -> int:
    """Return a number of 64 bits without sign as the nearest one with sign."""
    return select(value < 0, MAX_INT, value)


@kernel_part
def _put_ipv4(at: int, out: int) -> None:
    st64(out, 0)
    st64(out + 8, MAPPED | ld32(at))


@kernel_part
def _put_ipv6(at: int, out: int) -> None:
    high, low = ld64(at), ld64(at + 8)
    st64(out, high)
    st64(out + 8, ipv6_low(high, low))


@kernel_part
def _take_element(kind: int, at: int, room: int, out: int) -> int:
    """Store an element of ``room`` bytes, if it is known; return the bits of its fields."""
    if kind == stored.IPV4 and room >= 8:
        _put_ipv4(at, out + layout.SRC_IP)
        _put_ipv4(at + 4, out + layout.DEST_IP)
        return _ADDRESSES
    if kind == stored.IPV6 and room >= 32:
        _put_ipv6(at, out + layout.SRC_IP)
        _put_ipv6(at + 16, out + layout.DEST_IP)
        return _ADDRESSES
    if kind == stored.MISC and room >= 12:
        st32(out + layout.INPUT, ld32(at))
        st32(out + layout.OUTPUT, ld32(at + 4))
        st8(out + layout.SRC_MASK, ld8(at + 8))
        st8(out + layout.DEST_MASK, ld8(at + 9))
        st8(out + layout.DIRECTION, ld8(at + 10))
        return _MISC
    if kind == stored.VLAN and room >= 8:
        st16(out + layout.VLAN, min(ld32(at), 0xFFFF))
        return _VLAN
    if kind == stored.AS and room >= 8:
        st32(out + layout.SRC_AS, ld32(at))
        st32(out + layout.DEST_AS, ld32(at + 4))
        return _AS
    if kind == stored.NEXT_HOP_4 and room >= 4:
        _put_ipv4(at, out + layout.NEXT_HOP)
        return _NEXT_HOP
    if kind == stored.NEXT_HOP_6 and room >= 16:
        _put_ipv6(at, out + layout.NEXT_HOP)
        return _NEXT_HOP
    if kind == stored.RECEIVED_4 and room >= 4:
        _put_ipv4(at, out + layout.EXPORTER)
        return _EXPORTER
    if kind == stored.RECEIVED_6 and room >= 16:
        _put_ipv6(at, out + layout.EXPORTER)
        return _EXPORTER
    return 0


@kernel_part
def _exported_interval(out: int, present: int, flags: int, row: NDArray[np.int64]) -> int:
    """Return the sampling interval of a record, and restore its counts as they were exported.

    nfcapd multiplies the counts of a record by the interval of its sampler, and marks it. If the
    exporter has one sampler, and the counts are multiples of its interval, they are divided.
    """
    interval = row[INTERVAL]
    if flags & _IS_SAMPLED == 0 or row[SAMPLERS] != 1 or interval <= 1:
        return 1
    if present & _GENERIC == 0:
        return 1
    packets, octets = ld64(out + layout.PACKETS), ld64(out + layout.BYTES)
    if packets % interval != 0 or octets % interval != 0:
        return 1
    st64(out + layout.PACKETS, packets // interval)
    st64(out + layout.BYTES, octets // interval)
    return int(interval)
