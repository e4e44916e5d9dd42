"""The stage before all LFTAs: decode a batch of packets, list them by IP version, count them."""

from __future__ import annotations

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import ld32, ld64, prefetch, select, st64, ult

# Imported when running, too, so that kernels are compiled again when a field moves.
from gscope.capture.lfta.kernel_arguments import (  # noqa: TC001
    BatchMemory,
    PacketAddresses,
    PacketRange,
)
from gscope.capture.lfta.state import PACKETS_PER_BATCH, InterfaceState
from gscope.capture.packet.fast_path import is_plain_ipv4, is_plain_ipv6
from gscope.capture.packet.layers import PREFETCH_BYTES, PacketIndex, locate
from gscope.capture.packet.link import LINKTYPE_ETHERNET
from gscope.capture.packet.record import INFO, REASON_SHIFT, RECORD_BYTES, VERSION_SHIFT
from gscope.capture.packet.tunnels import locate_inner
from gscope.capture.packet.workspace import SLOTS, begin_batch
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

# Lists of packet numbers within a batch: a length, then the numbers.
LIST_BYTES = 8 * (PACKETS_PER_BATCH + 1)
LIST_IPV4, LIST_IPV6, LIST_OTHER, LIST_ALL, LIST_PLAIN_IPV4, LIST_PLAIN_IPV6 = range(6)
LOWEST_TIME = 6 * LIST_BYTES
HIGHEST_TIME = LOWEST_TIME + 8
"""Behind the lists: a range that holds the times of all packets in a list; if there are none, the
lowest is above the highest."""
IS_USUAL = HIGHEST_TIME + 8
"""Behind these: whether all packets of the batch are Ethernet and none is late."""
LISTS_BYTES = IS_USUAL + 8

_BATCH = PACKETS_PER_BATCH
_LATE = int(InterfaceState.LATE)
_WAITING = int(InterfaceState.WAITING)
_REASONS = int(InterfaceState.REASONS)
assert PACKETS_PER_BATCH <= SLOTS


@kernel
def stage(
    packets: PacketAddresses, span: PacketRange, memory: BatchMemory, interface: list[int]
) -> int:
    """Decode the next batch of ``span`` and list its packets.

    Late packets are counted and are in no list. A batch that is decoded again, because an LFTA ran
    out of room in it, is not counted again. Packets are decoded in one run and then listed: to list
    them first and leave the rest to ``stage_rest`` would make selections a sixth slower.

    Returns:
        The number of packets in the batch.
    """
    lists = memory.lists
    first = span.first
    count = 0
    limit = min(span.stop - first, _BATCH)
    while count < limit and ld64(packets.time_ns + 8 * (first + count)) < span.until_ns:
        count += 1
    begin_batch(memory.workspace)
    _locate(packets, first, count, memory.records, memory.workspace)
    ipv4 = ipv6 = other = listed = odd = 0
    lowest = MAX_TIME_NS
    highest = MIN_TIME_NS
    is_first = interface[_WAITING] < 0
    for i in range(count):
        info = ld64(memory.records + i * RECORD_BYTES + INFO)
        version = (info >> VERSION_SHIFT) & 15
        # Always written, kept only if the length grows: no branch to mispredict in mixed traffic.
        st64(lists + LIST_BYTES * LIST_IPV4 + 8 + 8 * ipv4, i)
        st64(lists + LIST_BYTES * LIST_IPV6 + 8 + 8 * ipv6, i)
        st64(lists + LIST_BYTES * LIST_OTHER + 8 + 8 * other, i)
        st64(lists + LIST_BYTES * LIST_ALL + 8 + 8 * listed, i)
        time_ns = ld64(packets.time_ns + 8 * (first + i))
        if time_ns < span.bound_ns:
            continue
        lowest = min(lowest, time_ns)
        highest = max(highest, time_ns)
        ipv4 += version == 4
        ipv6 += version == 6
        other += version == 0
        listed += 1
        reason = (info >> REASON_SHIFT) & 255
        if reason != 0 and is_first:
            interface[_REASONS + reason] += 1
            odd += 1
    if is_first:
        interface[_LATE] += count - listed
        interface[_REASONS] += listed - odd
    st64(lists + LIST_BYTES * LIST_IPV4, ipv4)
    st64(lists + LIST_BYTES * LIST_IPV6, ipv6)
    st64(lists + LIST_BYTES * LIST_OTHER, other)
    st64(lists + LIST_BYTES * LIST_ALL, listed)
    st64(lists + LOWEST_TIME, lowest)
    st64(lists + HIGHEST_TIME, highest)
    return count


@kernel
def _locate(packets: PacketAddresses, first: int, count: int, records: int, workspace: int) -> None:
    """Write the records of ``count`` packets from ``first`` on."""
    index = PacketIndex(
        offsets=packets.offset,
        caplens=packets.caplen,
        wirelens=packets.wirelen,
        linktypes=packets.linktype,
    )
    locate(packets.data, index, first, count, records, workspace)


@kernel
def stage_plain(
    packets: PacketAddresses, span: PacketRange, memory: BatchMemory, interface: list[int]
) -> int:
    """Decode the next batch as ``stage`` does, but list plain packets apart and without records.

    LIST_ALL then has only the others, which ``stage_rest`` decodes one by one.
    """
    lists = memory.lists
    limit = min(span.stop - span.first, _BATCH)
    count = limit
    ipv4 = ipv6 = 0
    lowest = MAX_TIME_NS
    highest = MIN_TIME_NS
    # One comparison of unsigned numbers tests both ends of the range of times.
    width = max(span.until_ns, span.bound_ns) - span.bound_ns
    for i in range(limit):
        index = span.first + i
        time_ns = ld64(packets.time_ns + 8 * index)
        is_in_time = ult(time_ns - span.bound_ns, width)
        if not is_in_time and time_ns >= span.until_ns:
            count = i
            break
        base = packets.data + ld64(packets.offset + 8 * index)
        caplen = ld32(packets.caplen + 4 * index)
        prefetch(base + PREFETCH_BYTES)
        usual = (ld32(packets.linktype + 4 * index) == LINKTYPE_ETHERNET) & is_in_time
        # Always written, kept only if the length grows, as in ``stage``.
        st64(lists + LIST_BYTES * LIST_PLAIN_IPV4 + 8 + 8 * ipv4, i)
        st64(lists + LIST_BYTES * LIST_PLAIN_IPV6 + 8 + 8 * ipv6, i)
        st64(lists + LIST_BYTES * LIST_ALL + 8 + 8 * (i - ipv4 - ipv6), i)
        ipv4 += select(usual & is_plain_ipv4(base, caplen), 1, 0)
        ipv6 += select(usual & is_plain_ipv6(base, caplen), 1, 0)
        lowest = min(lowest, time_ns)
        highest = max(highest, time_ns)
    rest = count - ipv4 - ipv6
    st64(lists + LIST_BYTES * LIST_PLAIN_IPV4, ipv4)
    st64(lists + LIST_BYTES * LIST_PLAIN_IPV6, ipv6)
    st64(lists + LIST_BYTES * LIST_ALL, rest)
    st64(lists + LOWEST_TIME, lowest)
    st64(lists + HIGHEST_TIME, highest)
    if interface[_WAITING] < 0:
        interface[_REASONS] += ipv4 + ipv6
    stage_rest(packets, span, memory, interface)
    return count


@kernel
def stage_rest(
    packets: PacketAddresses, span: PacketRange, memory: BatchMemory, interface: list[int]
) -> None:
    """Write records of the packets of LIST_ALL, and list those that are not late by IP version."""
    lists = memory.lists
    ipv4 = ipv6 = other = 0
    is_first = interface[_WAITING] < 0
    begin_batch(memory.workspace)
    for k in range(ld64(lists + LIST_BYTES * LIST_ALL)):
        i = ld64(lists + LIST_BYTES * LIST_ALL + 8 + 8 * k)
        index = span.first + i
        if ld64(packets.time_ns + 8 * index) < span.bound_ns:
            if is_first:
                interface[_LATE] += 1
            continue
        record = memory.records + i * RECORD_BYTES
        _locate(packets, index, 1, record, memory.workspace)
        info = ld64(record + INFO)
        version = (info >> VERSION_SHIFT) & 15
        st64(lists + LIST_BYTES * LIST_IPV4 + 8 + 8 * ipv4, i)
        st64(lists + LIST_BYTES * LIST_IPV6 + 8 + 8 * ipv6, i)
        st64(lists + LIST_BYTES * LIST_OTHER + 8 + 8 * other, i)
        ipv4 += version == 4
        ipv6 += version == 6
        other += version == 0
        if is_first:
            interface[_REASONS + ((info >> REASON_SHIFT) & 255)] += 1
    st64(lists + LIST_BYTES * LIST_IPV4, ipv4)
    st64(lists + LIST_BYTES * LIST_IPV6, ipv6)
    st64(lists + LIST_BYTES * LIST_OTHER, other)


@kernel
def measure(packets: PacketAddresses, span: PacketRange, lists: int) -> int:
    """Return the number of packets in the next batch of ``span``; store the extent of times."""
    times = packets.time_ns + 8 * span.first
    linktypes = packets.linktype + 4 * span.first
    count = min(span.stop - span.first, _BATCH)
    if _note_extent(times, linktypes, count, span.bound_ns, lists) >= span.until_ns:
        limit = count
        count = 0
        while count < limit and ld64(times + 8 * count) < span.until_ns:
            count += 1
        _note_extent(times, linktypes, count, span.bound_ns, lists)
    return count


@kernel
def _note_extent(times: int, linktypes: int, count: int, bound_ns: int, lists: int) -> int:
    """Write LOWEST_TIME, HIGHEST_TIME and IS_USUAL; return the highest time."""
    lowest = MAX_TIME_NS
    highest = MIN_TIME_NS
    others = 0
    for i in range(count):
        time_ns = ld64(times + 8 * i)
        lowest = min(lowest, time_ns)
        highest = max(highest, time_ns)
        others |= ld32(linktypes + 4 * i) ^ LINKTYPE_ETHERNET
    st64(lists + LOWEST_TIME, lowest)
    st64(lists + HIGHEST_TIME, highest)
    st64(lists + IS_USUAL, select((others == 0) & (lowest >= bound_ns), 1, 0))
    return highest


@kernel
def locate_inners(records: int, inner_records: int, count: int) -> None:
    """Decode the packets inside the batch's packets."""
    for i in range(count):
        locate_inner(records + i * RECORD_BYTES, inner_records + i * RECORD_BYTES)
