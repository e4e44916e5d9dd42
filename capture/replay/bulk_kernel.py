"""The compiled loop of the pump: one block of a pcap file after the other is read, indexed and processed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.capture.kernels.intrinsics import address_of, call_at, copy_bytes, ld64
from gscope.capture.kernels.jit import kernel, libc, types
from gscope.capture.sources.files.pcap import index_usual

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_CLOCK_MONOTONIC = 1

_read = libc("read", types.int64, types.int32, types.int64, types.int64)
_clock_gettime = libc("clock_gettime", types.int32, types.int32, types.int64)


@kernel
def _monotonic_ns(clock: int) -> int:
    _clock_gettime(_CLOCK_MONOTONIC, clock)
    return ld64(clock) * 1_000_000_000 + ld64(clock + 8)


@kernel
def pump_blocks(
    entry: int,
    blocks: int,
    descriptor: int,
    filled: int,
    limit: int,
    header_bytes: int,
    fraction_ns: int,
    most_captured: int,
    link: int,
    latest_ns: int,
    skew_ns: int,
    until_ns: int,
    bound_ns: int,
    arrays: tuple[NDArray[Any], ...],
    behind: tuple[Any, ...],
    clock: NDArray[np.int64],
) -> tuple[int, ...]:
    """Read, index and process up to ``blocks`` blocks.

    Whatever ``read`` says but that there are bytes is left to the next who reads: he will be told the same.

    Args:
        entry: of the LFTAs' kernel.
        blocks: after so many it is time to look around.
        descriptor: to read from.
        filled: bytes at the beginning of the data that were read before.
        limit: bytes of the data that may be filled.
        header_bytes: these four: see ``index_usual``.
        fraction_ns: of times.
        most_captured: of a record.
        link: type of the link.
        latest_ns: greatest time so far.
        skew_ns: by how much a packet may step back.
        until_ns: where the clock's step ends.
        bound_ns: see ``LftaEngine.bound_ns``.
        arrays: of the block.
        behind: last arguments of the LFTAs' kernel.
        clock: room for two words.

    Returns:
        The LFTA that wants room or -1, nanoseconds that LFTAs worked, the greatest time of the blocks that are done
        with, and the fields of ``Passed``.
    """
    data, offset, caplen, wirelen, time_ns, linktype = arrays
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
        count, used, wire_bytes, least, greatest = index_usual(
            begin,
            filled,
            header_bytes,
            fraction_ns,
            most_captured,
            link,
            offset.size,
            address_of(offset),
            address_of(caplen),
            address_of(wirelen),
            address_of(time_ns),
            address_of(linktype),
        )
        if count == 0 or greatest >= until_ns or least < max(latest_ns, greatest) - skew_ns:
            break
        began_ns = _monotonic_ns(address_of(clock))
        first = 0
        full = call_at(entry, (*arrays, first, count, until_ns, bound_ns, *behind))
        worked_ns += _monotonic_ns(address_of(clock)) - began_ns
        if full >= 0:
            break
        packets += count
        passed_wire_bytes += wire_bytes
        latest_ns = max(latest_ns, greatest)
        count = 0
        if filled - used > used:
            # Copying must not overlap.
            break
        copy_bytes(begin, begin + used, filled - used)
        used_bytes += used
        filled -= used
        used = 0
    return (
        full,
        worked_ns,
        latest_ns,
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
