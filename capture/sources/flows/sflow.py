"""Datagrams of sFlow version 5: their streams and samples.

Source: sFlow.org, *sFlow Version 5*, July 2004. A flow sample is one packet of those that an agent
samples; it becomes a record of one packet, whose sampling interval is the sample's rate
(``samples.py``). Counter samples are skipped.
"""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel, kernel_part
from gscope.capture.kernels.language.intrinsics import be32, be64, select, st32, st64
from gscope.capture.packet.decode_errors import Reason
from gscope.capture.packet.flow import layout
from gscope.capture.packet.flow.layout import RECORD_BYTES
from gscope.capture.packet.payload import ipv6_low
from gscope.capture.sources.flows.addresses import MAPPED
from gscope.capture.sources.flows.output import Output, emit, emit_odd
from gscope.capture.sources.flows.samples import Inner, read_sample
from gscope.capture.sources.flows.state import ExportState, count_missing, find_stream

SFLOW_5 = 5 << 16
"""The version in streams: that of the datagram in 32 bits, so that it differs from NetFlow's."""

_FLOW_SAMPLE, _EXPANDED_FLOW_SAMPLE = 1, 3
_WORD, _ITEM_HEADER_BYTES = 4, 8
_LEAST_BYTES = 28
"""Bytes of the header of a datagram whose agent has an IPv4 address."""

_MALFORMED = int(Reason.FLOW_MALFORMED)


@kernel_part
def is_sflow(at: int, size: int, is_cut: bool) -> bool:
    """Return whether a datagram begins as one of sFlow 5.

    Of one that ``is_cut`` the end is missing.
    """
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
            present = read_sample(form == _EXPANDED_FLOW_SAMPLE, at, at + length, out, inner)
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
