"""Records of NetFlow v9 and IPFIX, decoded by their templates."""

from __future__ import annotations

from typing import NamedTuple

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import (
    be16,
    be32,
    be64,
    ld8,
    ld16,
    ld64,
    lshr,
    select,
    st8,
    st16,
    st32,
    st64,
)
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS, CERTAIN
from gscope.capture.packet.payload import carries_ports, ipv6_low
from gscope.capture.sources.flows import state
from gscope.capture.sources.flows.addresses import MAPPED
from gscope.capture.sources.flows.elements import (
    ICMP,
    IPV4,
    IPV6,
    LOW_BYTE,
    MICROSECONDS_BACK,
    MILLISECONDS,
    NTP_TIME,
    SAMPLER,
    SECONDS,
    SKIP,
    UPTIME,
)
from gscope.capture.sources.flows.state import FIELDS, FIRST_FIELD, SCRATCH, ExportState
from gscope.capture.sources.flows.templates import ACTION_SHIFT, VARIABLE
from gscope.queries.int64 import MAX_INT, MAX_TIME_NS

_SRC_IP, _DEST_IP = 1 << BITS[layout.SRC_IP], 1 << BITS[layout.DEST_IP]
_TYPE, _CODE = 1 << BITS[layout.TYPE], 1 << BITS[layout.CODE]
_VERSION, _PROTOCOL = 1 << BITS[layout.VERSION], 1 << BITS[layout.PROTOCOL]
_HEADER = 1 << BITS[layout.EXPORTED] | 1 << BITS[layout.EXPORTER] | 1 << BITS[layout.DOMAIN]
HEADER_BITS = CERTAIN | _HEADER
"""The bits of what every record of a datagram has."""

_NTP_EPOCH_S = 2_208_988_800
_SECOND_NS, _MILLISECOND_NS, _MICROSECOND_NS = 1_000_000_000, 1_000_000, 1_000
_MAX_MS = MAX_TIME_NS // _MILLISECOND_NS - 1


class Datagram(NamedTuple):
    """What the records of a datagram have in common.

    Attributes:
        stream: row of its stream; -1 for none.
        exporter_high: high half of the exporter's address.
        exporter_low: low half.
        domain: its observation domain.
        exported_ns: when it was exported, in nanoseconds since 1970.
        uptime_ms: the exporter's uptime then, in milliseconds; -1 if the header has none.
    """

    stream: int
    exporter_high: int
    exporter_low: int
    domain: int
    exported_ns: int
    uptime_ms: int


@kernel_part
def unsigned(at: int, length: int) -> int:
    """Return the number of ``length`` bytes at ``at``; of more than 8, the last 8.

    A number of 64 bits may be negative.
    """
    if length == 4:
        return be32(at)
    if length == 8:
        return be64(at)
    if length == 2:
        return be16(at)
    value = 0
    for index in range(max(0, length - 8), length):
        value = value << 8 | ld8(at + index)
    return value


@kernel_part
def time_from_uptime(exported_ns: int, uptime_ms: int, switched_ms: int) -> int:
    """Return when the exporter's uptime was ``switched_ms``, which was ``uptime_ms`` at the export.

    Of uptimes only 32 bits count, so that they may have begun again between the two.
    """
    back_ms = (uptime_ms - switched_ms) & 0xFFFFFFFF
    back_ms = select(back_ms >= 1 << 31, back_ms - (1 << 32), back_ms)
    return exported_ns - back_ms * _MILLISECOND_NS


@kernel_part
def begin_record(out: int, source: Datagram) -> None:
    """Store what the records of a datagram have in common."""
    st64(out + layout.EXPORTER, source.exporter_high)
    st64(out + layout.EXPORTER + 8, source.exporter_low)
    st64(out + layout.EXPORTED, source.exported_ns)
    st32(out + layout.DOMAIN, source.domain)
    st16(out + layout.SRC_PORT, 0)
    st16(out + layout.DEST_PORT, 0)


@kernel_part
def finish_record(out: int, present: int, interval: int) -> None:
    """Store the first word, the sampling interval, and fields that follow from others."""
    protocol = ld8(out + layout.PROTOCOL)
    is_known = present & _PROTOCOL != 0
    if is_known and carries_ports(protocol) == 0:
        # Exporters put the type and code of ICMP into the destination port.
        port = ld16(out + layout.DEST_PORT)
        if (protocol in (1, 58)) and present & _TYPE == 0:
            st8(out + layout.TYPE, port >> 8)
            st8(out + layout.CODE, port & 255)
            present |= _TYPE | _CODE
        st16(out + layout.SRC_PORT, 0)
        st16(out + layout.DEST_PORT, 0)
    st32(out + layout.SAMPLING, min(max(interval, 1), 0xFFFFFFFF))
    st64(out, present)


@kernel_part
def _store_number(out: int, kind: int, value: int) -> None:
    if kind == 4:
        st64(out, select(value < 0, MAX_INT, value))
    elif kind == 3:
        st32(out, select(lshr(value, 32) != 0, 0xFFFFFFFF, value))
    elif kind == 2:
        st16(out, select(lshr(value, 16) != 0, 0xFFFF, value))
    elif kind == 1:
        st8(out, select(lshr(value, 8) != 0, 0xFF, value))
    else:
        st8(out, value & 255)


@kernel_part
def _time(source: Datagram, kind: int, value: int, start_ms: int) -> int:
    """Return a time in nanoseconds since 1970, -1 if it is unknown or beyond 64 bits."""
    if kind == UPTIME:
        uptime_ms = source.uptime_ms
        if uptime_ms < 0:
            if start_ms <= 0:
                return -1
            uptime_ms = source.exported_ns // _MILLISECOND_NS - start_ms
        return time_from_uptime(source.exported_ns, uptime_ms, value)
    if kind == SECONDS:
        return -1 if value < 0 or value > _MAX_MS // 1000 else value * _SECOND_NS
    if kind == MILLISECONDS:
        return -1 if value < 0 or value > _MAX_MS else value * _MILLISECOND_NS
    if kind == NTP_TIME:
        # Seconds since 1900, and 32 bits of their fraction; since 2036 in the next era.
        seconds = lshr(value, 32)
        seconds += select(seconds < _NTP_EPOCH_S, 1 << 32, 0) - _NTP_EPOCH_S
        fraction_ns = lshr((value & 0xFFFFFFFF) * _SECOND_NS, 32)
        return seconds * _SECOND_NS + fraction_ns
    return source.exported_ns - (value & 0xFFFFFFFF) * _MICROSECOND_NS


@kernel_part
def _store_address(out: int, high: int, low: int, is_present: bool) -> bool:
    """Store an address; of two versions in one record, the one that is not zero counts."""
    if is_present and high == 0 and low in (0, MAPPED):
        return False
    st64(out, high)
    st64(out + 8, low)
    return True


@kernel_part
def _take(
    tables: ExportState,
    source: Datagram,
    action: int,
    at: int,
    length: int,
    out: int,
    present: int,
) -> int:
    """Store the value of one element, and return the bits of the fields that are present."""
    kind, offset, bit = action & 255, (action >> 8) & 255, 1 << (action >> 16)
    if length == 0:
        return present
    if kind <= LOW_BYTE:
        value = unsigned(at, length)
        _store_number(out + offset, kind, value)
        return present | bit
    if kind == IPV4:
        if length == 4 and _store_address(out + offset, 0, MAPPED | be32(at), present & bit != 0):
            return present | bit
        return present
    if kind == IPV6:
        if length == 16:
            high, low = be64(at), be64(at + 8)
            if _store_address(out + offset, high, ipv6_low(high, low), present & bit != 0):
                return present | bit
        return present
    value = unsigned(at, length)
    if kind <= MICROSECONDS_BACK:
        start_ms = tables.scratch[state.START_OF_UPTIME]
        if start_ms <= 0 and source.stream >= 0:
            start_ms = tables.streams[source.stream, state.START_MS]
        if kind == NTP_TIME and length != 8:
            return present
        time_ns = _time(source, kind, value, start_ms)
        if time_ns < 0:
            return present
        st64(out + offset, time_ns)
        return present | bit
    if kind == ICMP:
        # A record has the element of the other version, too, with zero.
        if value == 0 and present & _TYPE:
            return present
        st8(out + layout.TYPE, (value >> 8) & 255)
        st8(out + layout.CODE, value & 255)
        return present | _TYPE | _CODE
    tables.scratch[kind - SAMPLER] = select(value < 0, 0, value)
    return present


@kernel_part
def read_record(
    tables: ExportState, source: Datagram, slot: int, at: int, end: int, length: int, out: int
) -> tuple[int, int]:
    """Decode a record into ``out``; return the address behind it, -1 if damaged, and its bits.

    Args:
        tables: the state of exports.
        source: what the datagram's records have in common.
        slot: row of the template.
        at: address of the record.
        end: end of the set.
        length: bytes of the record; -1 if they are in the record.
        out: address of the flow record.
    """
    program = tables.templates[slot]
    for word in range(SCRATCH):
        tables.scratch[word] = -1
    present = HEADER_BITS
    begin_record(out, source)
    begin = at
    for index in range(program[FIELDS]):
        field = program[FIRST_FIELD + index]
        size = (field >> 16) & 0xFFFF
        if length >= 0:
            at = begin + (field & 0xFFFF)
        else:
            if size == VARIABLE:
                if at + 1 > end:
                    return -1, present
                size = ld8(at)
                at += 1
                if size == 255:
                    if at + 2 > end:
                        return -1, present
                    size = be16(at)
                    at += 2
            if at + size > end:
                return -1, present
        action = field >> ACTION_SHIFT
        if action != SKIP:
            present = _take(tables, source, action, at, size, out, present)
        at += size
    return select(length >= 0, begin + length, at), present


@kernel_part
def note_version(out: int, present: int) -> int:
    """Store the IP version that follows from the addresses; return the bits with it."""
    if present & _VERSION != 0 or present & (_SRC_IP | _DEST_IP) == 0:
        return present
    at = select(present & _SRC_IP != 0, layout.SRC_IP, layout.DEST_IP)
    is_v4 = (ld64(out + at) == 0) & (lshr(ld64(out + at + 8), 32) == 0xFFFF)
    st8(out + layout.VERSION, select(is_v4, 4, 6))
    return present | _VERSION


@kernel_part
def _interval_seen(tables: ExportState) -> int:
    """Return the sampling interval that the record's elements state, 0 if they state none."""
    seen = tables.scratch
    interval = seen[state.INTERVAL_SEEN]
    if seen[state.POPULATION_SEEN] > 0 and seen[state.SIZE_SEEN] > 0:
        return int(max(1, seen[state.POPULATION_SEEN] // seen[state.SIZE_SEEN]))
    if interval > 0 and seen[state.SPACE_SEEN] > 0:
        # One in INTERVAL consecutive packets is taken, then SPACE packets are not.
        return int((interval + min(seen[state.SPACE_SEEN], 0xFFFFFFFF)) // interval)
    return int(max(interval, 0))


@kernel_part
def interval_of(tables: ExportState, stream: int) -> int:
    """Return the sampling interval of the record that was read last."""
    interval = _interval_seen(tables)
    if interval > 0 or stream < 0:
        return max(interval, 1)
    row = tables.streams[stream]
    sampler = tables.scratch[state.SAMPLER_ID]
    if sampler >= 0:
        for index in range(state.SAMPLER_SLOTS):
            if row[state.SAMPLERS + 2 * index] == sampler + 1:
                return int(row[state.SAMPLERS + 2 * index + 1])
    return int(max(row[state.INTERVAL], 1))


@kernel_part
def take_options(tables: ExportState, stream: int) -> None:
    """Keep what a record of options, which was read last, states for later records."""
    if stream < 0:
        return
    row = tables.streams[stream]
    if tables.scratch[state.START_OF_UPTIME] > 0:
        row[state.START_MS] = tables.scratch[state.START_OF_UPTIME]
    interval = _interval_seen(tables)
    if interval == 0:
        return
    sampler = tables.scratch[state.SAMPLER_ID]
    if sampler < 0:
        row[state.INTERVAL] = interval
        return
    for index in range(state.SAMPLER_SLOTS):
        known = row[state.SAMPLERS + 2 * index]
        if known in (0, sampler + 1):
            row[state.SAMPLERS + 2 * index] = sampler + 1
            row[state.SAMPLERS + 2 * index + 1] = interval
            break
    # Records that name no sampler are those of the only one, or of the latest.
    row[state.INTERVAL] = interval
