"""The compiled loop of the pump: reads, indexes and processes blocks of a pcap file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from gscope.capture.kernels.intrinsics import address_of, call_at, copy_bytes, ld64
from gscope.capture.kernels.jit import kernel, libc, types
from gscope.capture.sources.files.file import ReadProgress
from gscope.capture.sources.files.pcap import index_usual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gscope.capture.sources.files.pcap import PcapLayout

_CLOCK_MONOTONIC = 1

_read = libc("read", types.int64, types.int32, types.int64, types.int64)
_clock_gettime = libc("clock_gettime", types.int32, types.int32, types.int64)


@kernel
def _monotonic_ns(clock: int) -> int:
    _clock_gettime(_CLOCK_MONOTONIC, clock)
    return ld64(clock) * 1_000_000_000 + ld64(clock + 8)


class ReadPosition(NamedTuple):
    """The file and the part of the block's data that reads fill.

    Attributes:
        descriptor: file descriptor to read from.
        filled: bytes at the beginning of the data that were read before.
        limit: bytes of the data that may be filled.
    """

    descriptor: int
    filled: int
    limit: int


class PacketTimes(NamedTuple):
    """The times that decide which packets are late and where the step of the clock ends.

    Attributes:
        latest_ns: greatest time of the packets so far.
        skew_ns: how far a packet may step back and still be on time.
        until_ns: end of the clock's step: the pump leaves a block with a packet at or after it.
        bound_ns: see ``LftaEngine.bound_ns``.
    """

    latest_ns: int
    skew_ns: int
    until_ns: int
    bound_ns: int


@kernel
def pump_blocks(
    entry: int,
    blocks: int,
    position: ReadPosition,
    layout: PcapLayout,
    times: PacketTimes,
    arrays: tuple[NDArray[Any], ...],
    last_arguments: tuple[Any, ...],
    clock: NDArray[np.int64],
) -> tuple[int, int, int, ReadProgress]:
    """Read, index and process up to ``blocks`` blocks.

    A ``read`` that returns no bytes ends the loop. Its reason (end of input or an error) is left to
    the next reader, which gets the same result.

    Args:
        entry: address of the LFTAs' kernel.
        blocks: number of blocks after which to return to Python.
        position: where to read from and to.
        layout: layout of the records.
        times: what decides whether packets are on time.
        arrays: arrays of the block.
        last_arguments: last arguments of the LFTAs' kernel.
        clock: room for two words.

    Returns:
        The LFTA whose output buffer is full, or -1; nanoseconds that the LFTAs worked; the greatest
        time of the blocks that are done; and how far the pump came.
    """
    descriptor, filled, limit = position
    latest_ns, skew_ns, until_ns, bound_ns = times
    data, offset, caplen, wirelen, time_ns, linktype = arrays
    index_arrays = (offset, caplen, wirelen, time_ns, linktype)
    begin = address_of(data)
    full = -1
    count, used, wire_bytes, least, greatest = 0, 0, 0, 0, 0
    read_bytes, used_bytes, packets, passed_wire_bytes, worked_ns = 0, 0, 0, 0, 0
    for _ in range(blocks):
        got = _read(descriptor, begin + filled, limit - filled)
        if got <= 0:
            break
        read_bytes += got
        filled += got
        count, used, wire_bytes, least, greatest = index_usual(begin, filled, layout, index_arrays)
        if count == 0 or greatest >= until_ns or least < max(latest_ns, greatest) - skew_ns:
            break
        began_ns = _monotonic_ns(address_of(clock))
        first = 0
        full = call_at(entry, (*arrays, first, count, until_ns, bound_ns, *last_arguments))
        worked_ns += _monotonic_ns(address_of(clock)) - began_ns
        if full >= 0:
            break
        packets += count
        passed_wire_bytes += wire_bytes
        latest_ns = max(latest_ns, greatest)
        count = 0
        if filled - used > used:
            # copy_bytes needs ranges that do not overlap.
            break
        copy_bytes(begin, begin + used, filled - used)
        used_bytes += used
        filled -= used
        used = 0
    passed = ReadProgress(
        read_bytes,
        used_bytes,
        packets,
        passed_wire_bytes,
        filled,
        used,
        count,
        wire_bytes,
        least,
        greatest,
    )
    return full, worked_ns, latest_ns, passed
