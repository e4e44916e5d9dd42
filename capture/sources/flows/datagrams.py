"""Datagrams of NetFlow v5, NetFlow v9 and IPFIX, decoded into flow records.

A datagram is recognised by its content, whatever its port: version, and a length or first set that
fits. Datagrams to a usual port of collectors that are not recognised are malformed.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import be16, be32, ld8, st8, st16, st32, st64
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import BITS, RECORD_BYTES
from gscope.capture.sources.flows import state
from gscope.capture.sources.flows.addresses import put_ipv4
from gscope.capture.sources.flows.output import Output, emit, emit_odd
from gscope.capture.sources.flows.records import (
    HEADER_BITS,
    Datagram,
    begin_record,
    finish_record,
    interval_of,
    note_version,
    read_record,
    take_options,
    time_from_uptime,
)
from gscope.capture.sources.flows.state import (
    ExportState,
    count_missing,
    find_stream,
    find_template,
)
from gscope.capture.sources.flows.templates import LEAST_DATA_SET, read_templates

NETFLOW_5, NETFLOW_9, IPFIX = 5, 9, 10
V5_HEADER_BYTES, V5_RECORD_BYTES, V5_MAX_RECORDS = 24, 48, 30
V9_HEADER_BYTES, IPFIX_HEADER_BYTES, SET_HEADER_BYTES = 20, 16, 4
_V9_TEMPLATES, _V9_OPTIONS, _IPFIX_TEMPLATES, _IPFIX_OPTIONS = 0, 1, 2, 3
MAX_DATAGRAM_RECORDS = 1 << 16
"""More records than a datagram can have, of one byte each, and than it can have sets."""

_SECOND_NS = 1_000_000_000
_MALFORMED, _WITHOUT_TEMPLATE = int(Reason.FLOW_MALFORMED), int(Reason.FLOW_WITHOUT_TEMPLATE)
_V5_BITS = HEADER_BITS
for _offset in (
    *(layout.SRC_IP, layout.DEST_IP, layout.NEXT_HOP, layout.FIRST, layout.LAST),
    *(layout.PACKETS, layout.BYTES, layout.SRC_AS, layout.DEST_AS, layout.INPUT, layout.OUTPUT),
    *(layout.PROTOCOL, layout.TOS, layout.FLAGS, layout.SRC_MASK, layout.DEST_MASK),
    layout.VERSION,
):
    _V5_BITS |= 1 << BITS[_offset]


@kernel_part
def is_export(at: int, size: int, is_cut: bool) -> bool:
    """Return whether a datagram begins as an export; of one that ``is_cut`` the end is missing."""
    if size < IPFIX_HEADER_BYTES:
        return False
    version, word = be16(at), be16(at + 2)
    if version == NETFLOW_5:
        whole = V5_HEADER_BYTES + V5_RECORD_BYTES * word
        return 1 <= word <= V5_MAX_RECORDS and (whole == size or (is_cut and whole > size))
    if version == IPFIX:
        if word != size and not (is_cut and word > size):
            return False
        return size < IPFIX_HEADER_BYTES + SET_HEADER_BYTES or _is_set(at + IPFIX_HEADER_BYTES, 2)
    if version == NETFLOW_9 and size >= V9_HEADER_BYTES + SET_HEADER_BYTES:
        return _is_set(at + V9_HEADER_BYTES, 0)
    return False


@kernel_part
def _is_set(at: int, templates: int) -> bool:
    number = be16(at)
    is_known = number in (templates, templates + 1) or number >= LEAST_DATA_SET
    return is_known and be16(at + 2) >= SET_HEADER_BYTES


@kernel_part
def read_datagram(
    tables: ExportState, at: int, end: int, high: int, low: int, to: Output, count: int
) -> int:
    """Decode an export; return the position behind its last record.

    Args:
        tables: the state of exports.
        at: address of the datagram.
        end: address behind its last byte that was captured.
        high: high half of the exporter's address.
        low: low half.
        to: where records are written.
        count: position of the first one; there is room for ``MAX_DATAGRAM_RECORDS``.
    """
    tables.counters[state.DATAGRAMS] += 1
    version = be16(at)
    if version == NETFLOW_5:
        return _read_v5(tables, at, end, high, low, to, count)
    is_ipfix = version == IPFIX
    if is_ipfix:
        domain, sequence = be32(at + 12), be32(at + 8)
        exported_ns, uptime_ms = be32(at + 4) * _SECOND_NS, -1
        stream = find_stream(tables, high, low, domain, version)
        source = Datagram(stream, high, low, domain, exported_ns, uptime_ms)
        begin, whole = at + IPFIX_HEADER_BYTES, at + be16(at + 2)
    else:
        domain, sequence = be32(at + 16), be32(at + 12)
        exported_ns, uptime_ms = be32(at + 8) * _SECOND_NS, be32(at + 4)
        stream = find_stream(tables, high, low, domain, version)
        source = Datagram(stream, high, low, domain, exported_ns, uptime_ms)
        begin, whole = at + V9_HEADER_BYTES, end
    count, records, is_sound, is_known = _read_sets(tables, source, begin, end, is_ipfix, to, count)
    if not is_sound or whole > end:
        count = emit_odd(to, count, _MALFORMED, end - at)
        is_known = False
    # IPFIX counts records, v9 datagrams.
    if is_ipfix:
        count_missing(tables, stream, sequence, records if is_known else -1)
    else:
        count_missing(tables, stream, sequence, 1)
    return count


@kernel_part
def _read_sets(
    tables: ExportState,
    source: Datagram,
    at: int,
    end: int,
    is_ipfix: bool,
    to: Output,
    count: int,
) -> tuple[int, int, bool, bool]:
    """Decode the sets of a datagram.

    Returns:
        The position behind the last record, the number of records including options, whether the
        datagram is sound, and whether the number of records is certain.
    """
    records = 0
    is_known = True
    while at + SET_HEADER_BYTES <= end:
        number, length = be16(at), be16(at + 2)
        stop = at + length
        if length < SET_HEADER_BYTES or stop > end:
            return count, records, False, False
        begin = at + SET_HEADER_BYTES
        if number in (_V9_TEMPLATES, _V9_OPTIONS, _IPFIX_TEMPLATES, _IPFIX_OPTIONS):
            if (number >= _IPFIX_TEMPLATES) == is_ipfix:
                is_options = number in (_V9_OPTIONS, _IPFIX_OPTIONS)
                is_sound, _ = read_templates(
                    tables, source.stream, begin, stop, is_ipfix, is_options
                )
                if not is_sound:
                    return count, records, False, False
        elif number >= LEAST_DATA_SET:
            slot = find_template(tables, source.stream, number, False)
            if slot < 0 or tables.templates[slot, state.LENGTH] == 0:
                count = emit_odd(to, count, _WITHOUT_TEMPLATE, length)
                is_known = False
            else:
                count, read = _read_data(tables, source, slot, begin, stop, to, count)
                if read < 0:
                    return count, records, False, False
                records += read
        at = stop
    return count, records, True, is_known


@kernel_part
def _read_data(
    tables: ExportState, source: Datagram, slot: int, at: int, end: int, to: Output, count: int
) -> tuple[int, int]:
    """Decode the records of a set; return the position behind them and their number.

    The number is -1 if the set is damaged.
    """
    length = tables.templates[slot, state.LENGTH]
    least = tables.templates[slot, state.LEAST_LENGTH]
    is_options = tables.templates[slot, state.IS_OPTIONS] != 0
    records = 0
    while at + least <= end:
        out = to.data + count * RECORD_BYTES
        following, present = read_record(tables, source, slot, at, end, length, out)
        if following < 0:
            # Padding of up to 3 bytes may look like the beginning of a record.
            return count, records if end - at <= 3 else -1
        if is_options:
            take_options(tables, source.stream)
        else:
            present = note_version(out, present)
            finish_record(out, present, interval_of(tables, source.stream))
            count = emit(to, count, following - at)
        records += 1
        at = following
    return count, records


@kernel_part
def _read_v5(
    tables: ExportState, at: int, end: int, high: int, low: int, to: Output, count: int
) -> int:
    records = be16(at + 2)
    size = end - at
    if size < V5_HEADER_BYTES:
        return emit_odd(to, count, _MALFORMED, size)
    domain = be16(at + 20)
    # Two bits of the sampling mode precede the interval.
    interval = be16(at + 22) & 0x3FFF
    exported_ns = be32(at + 8) * _SECOND_NS + min(be32(at + 12), _SECOND_NS - 1)
    stream = find_stream(tables, high, low, domain, NETFLOW_5)
    source = Datagram(stream, high, low, domain, exported_ns, be32(at + 4))
    count_missing(tables, stream, be32(at + 16), records)
    record = at + V5_HEADER_BYTES
    for _ in range(records):
        if record + V5_RECORD_BYTES > end:
            return emit_odd(to, count, _MALFORMED, size)
        _read_v5_record(source, record, to.data + count * RECORD_BYTES, interval)
        count = emit(to, count, V5_RECORD_BYTES)
        record += V5_RECORD_BYTES
    return count


@kernel_part
def _time(source: Datagram, switched_ms: int) -> int:
    return time_from_uptime(source.exported_ns, source.uptime_ms, switched_ms)


@kernel_part
def _read_v5_record(source: Datagram, at: int, out: int, interval: int) -> None:
    begin_record(out, source)
    put_ipv4(at, out + layout.SRC_IP)
    put_ipv4(at + 4, out + layout.DEST_IP)
    put_ipv4(at + 8, out + layout.NEXT_HOP)
    st32(out + layout.INPUT, be16(at + 12))
    st32(out + layout.OUTPUT, be16(at + 14))
    st64(out + layout.PACKETS, be32(at + 16))
    st64(out + layout.BYTES, be32(at + 20))
    st64(out + layout.FIRST, _time(source, be32(at + 24)))
    st64(out + layout.LAST, _time(source, be32(at + 28)))
    st16(out + layout.SRC_PORT, be16(at + 32))
    st16(out + layout.DEST_PORT, be16(at + 34))
    st8(out + layout.FLAGS, ld8(at + 37))
    st8(out + layout.PROTOCOL, ld8(at + 38))
    st8(out + layout.TOS, ld8(at + 39))
    st32(out + layout.SRC_AS, be16(at + 40))
    st32(out + layout.DEST_AS, be16(at + 42))
    st8(out + layout.SRC_MASK, ld8(at + 44))
    st8(out + layout.DEST_MASK, ld8(at + 45))
    st8(out + layout.VERSION, 4)
    finish_record(out, _V5_BITS, interval)
