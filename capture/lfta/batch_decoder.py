"""The stage before all LFTAs: decode a batch of packets, sort them by IP version, count what is odd."""

from __future__ import annotations

from gscope.capture.kernels.intrinsics import ld32, ld64, prefetch, select, st64, ult
from gscope.capture.kernels.jit import kernel
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
"""Behind the lists: a range that holds the times of all packets in a list; lowest above highest if there is none."""
IS_USUAL = HIGHEST_TIME + 8
"""Behind these: whether all packets of the batch are Ethernet and none is late."""
LISTS_BYTES = IS_USUAL + 8

_BATCH = PACKETS_PER_BATCH
_LATE = int(InterfaceState.LATE)
_RESUME = int(InterfaceState.RESUME)
_REASONS = int(InterfaceState.REASONS)
assert PACKETS_PER_BATCH <= SLOTS


@kernel
def stage(
    data: int,
    offsets: int,
    caplens: int,
    wirelens: int,
    times: int,
    linktypes: int,
    first: int,
    stop: int,
    until_ns: int,
    bound_ns: int,
    records: int,
    lists: int,
    workspace: int,
    run: list[int],
) -> int:
    """Decode the next batch: packets from ``first`` to ``stop`` or the first one at or after ``until_ns``.

    Packets earlier than ``bound_ns`` are late: counted, and in no list. A batch that is decoded again because
    an LFTA ran out of room in it is not counted again.

    Returns:
        How many packets the batch has.
    """
    count = 0
    limit = min(stop - first, _BATCH)
    while count < limit and ld64(times + 8 * (first + count)) < until_ns:
        count += 1
    begin_batch(workspace)
    packets = PacketIndex(offsets, caplens, wirelens, linktypes)
    locate(data, packets, first, count, records, workspace)
    ipv4 = ipv6 = other = all_ = odd = 0
    lowest = MAX_TIME_NS
    highest = MIN_TIME_NS
    is_first = run[_RESUME] < 0
    for i in range(count):
        info = ld64(records + i * RECORD_BYTES + INFO)
        version = (info >> VERSION_SHIFT) & 15
        # Written always, kept by the length: no branch to be guessed wrong in mixed traffic.
        st64(lists + LIST_BYTES * LIST_IPV4 + 8 + 8 * ipv4, i)
        st64(lists + LIST_BYTES * LIST_IPV6 + 8 + 8 * ipv6, i)
        st64(lists + LIST_BYTES * LIST_OTHER + 8 + 8 * other, i)
        st64(lists + LIST_BYTES * LIST_ALL + 8 + 8 * all_, i)
        time_ns = ld64(times + 8 * (first + i))
        if time_ns < bound_ns:
            continue
        lowest = min(lowest, time_ns)
        highest = max(highest, time_ns)
        ipv4 += version == 4
        ipv6 += version == 6
        other += version == 0
        all_ += 1
        reason = (info >> REASON_SHIFT) & 255
        if reason != 0 and is_first:
            run[_REASONS + reason] += 1
            odd += 1
    if is_first:
        run[_LATE] += count - all_
        run[_REASONS] += all_ - odd
    st64(lists + LIST_BYTES * LIST_IPV4, ipv4)
    st64(lists + LIST_BYTES * LIST_IPV6, ipv6)
    st64(lists + LIST_BYTES * LIST_OTHER, other)
    st64(lists + LIST_BYTES * LIST_ALL, all_)
    st64(lists + LOWEST_TIME, lowest)
    st64(lists + HIGHEST_TIME, highest)
    return count


@kernel
def stage_plain(
    data: int,
    offsets: int,
    caplens: int,
    wirelens: int,
    times: int,
    linktypes: int,
    first: int,
    stop: int,
    until_ns: int,
    bound_ns: int,
    records: int,
    lists: int,
    workspace: int,
    run: list[int],
) -> int:
    """As ``stage``, but plain packets get no record and have lists of their own; LIST_ALL is not made.

    What is neither plain nor in time goes through ``stage`` one by one.
    """
    limit = min(stop - first, _BATCH)
    count = limit
    ipv4 = ipv6 = 0
    lowest = MAX_TIME_NS
    highest = MIN_TIME_NS
    # From the bound up to the end in one comparison of unsigned numbers.
    span = max(until_ns, bound_ns) - bound_ns
    for i in range(limit):
        index = first + i
        time_ns = ld64(times + 8 * index)
        is_in_time = ult(time_ns - bound_ns, span)
        if not is_in_time and time_ns >= until_ns:
            count = i
            break
        base = data + ld64(offsets + 8 * index)
        caplen = ld32(caplens + 4 * index)
        prefetch(base + PREFETCH_BYTES)
        usual = (ld32(linktypes + 4 * index) == LINKTYPE_ETHERNET) & is_in_time
        # Written always, kept by the length, as in ``stage``.
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
    if run[_RESUME] < 0:
        run[_REASONS] += ipv4 + ipv6
    stage_rest(
        data,
        offsets,
        caplens,
        wirelens,
        times,
        linktypes,
        first,
        bound_ns,
        records,
        lists,
        workspace,
        run,
    )
    return count


@kernel
def stage_rest(
    data: int,
    offsets: int,
    caplens: int,
    wirelens: int,
    times: int,
    linktypes: int,
    first: int,
    bound_ns: int,
    records: int,
    lists: int,
    workspace: int,
    run: list[int],
) -> None:
    """Give the packets of LIST_ALL records and sort those that are not late."""
    ipv4 = ipv6 = other = 0
    is_first = run[_RESUME] < 0
    packets = PacketIndex(offsets, caplens, wirelens, linktypes)
    begin_batch(workspace)
    for k in range(ld64(lists + LIST_BYTES * LIST_ALL)):
        i = ld64(lists + LIST_BYTES * LIST_ALL + 8 + 8 * k)
        if ld64(times + 8 * (first + i)) < bound_ns:
            if is_first:
                run[_LATE] += 1
            continue
        record = records + i * RECORD_BYTES
        locate(data, packets, first + i, 1, record, workspace)
        info = ld64(record + INFO)
        version = (info >> VERSION_SHIFT) & 15
        st64(lists + LIST_BYTES * LIST_IPV4 + 8 + 8 * ipv4, i)
        st64(lists + LIST_BYTES * LIST_IPV6 + 8 + 8 * ipv6, i)
        st64(lists + LIST_BYTES * LIST_OTHER + 8 + 8 * other, i)
        ipv4 += version == 4
        ipv6 += version == 6
        other += version == 0
        if is_first:
            run[_REASONS + ((info >> REASON_SHIFT) & 255)] += 1
    st64(lists + LIST_BYTES * LIST_IPV4, ipv4)
    st64(lists + LIST_BYTES * LIST_IPV6, ipv6)
    st64(lists + LIST_BYTES * LIST_OTHER, other)


@kernel
def measure(
    times: int, linktypes: int, first: int, stop: int, until_ns: int, bound_ns: int, lists: int
) -> int:
    """How many packets the next batch has; notes the extent of their times, and whether they are usual."""
    count = min(stop - first, _BATCH)
    times += 8 * first
    linktypes += 4 * first
    if _note_extent(times, linktypes, count, bound_ns, lists) >= until_ns:
        limit = count
        count = 0
        while count < limit and ld64(times + 8 * count) < until_ns:
            count += 1
        _note_extent(times, linktypes, count, bound_ns, lists)
    return count


@kernel
def _note_extent(times: int, linktypes: int, count: int, bound_ns: int, lists: int) -> int:
    """Note what LOWEST_TIME, HIGHEST_TIME and IS_USUAL say; returns the highest time."""
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
