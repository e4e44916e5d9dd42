"""The compiled loop of the walk over an uncompressed pcap file, which compares times.

In Python, each block would need the interpreter's lock three times. While kernels load, that lock
is busy and each acquisition takes up to 5 ms: the walk would begin only after everything else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import native_kernel
from gscope.capture.kernels.language.intrinsics import External, copy_bytes, ld32, prefetch
from gscope.capture.kernels.language.kinds import Kind, RecordKind
from gscope.capture.sources.files.pcap import LAYOUT, PREFETCH_BYTES

if TYPE_CHECKING:
    from gscope.capture.sources.files.pcap import PcapLayout

_read = External("read", 64, 32, 64, 64)


@native_kernel(
    *(Kind.INT,) * 5,
    LAYOUT,
    *(Kind.INT,) * 2,
    result=RecordKind(None, (Kind.INT,) * 8),
)
def walk_blocks(
    blocks: int,
    descriptor: int,
    begin: int,
    filled: int,
    limit: int,
    layout: PcapLayout,
    latest_ns: int,
    deepest_ns: int,
) -> tuple[int, int, int, int, int, int, int, int]:
    """Read up to ``blocks`` blocks of records as ``index_usual`` does, and compare times.

    Stops early when ``read`` returns no bytes, and at a record that is incomplete or claims too
    much.

    Args:
        blocks: largest number of blocks to read.
        descriptor: file descriptor to read from.
        begin: address of the buffer.
        filled: bytes at its beginning that were read before.
        limit: bytes of the buffer that may be filled.
        layout: layout of the records.
        latest_ns: greatest time so far; times in pcap files are never negative.
        deepest_ns: largest backward step so far.

    Returns:
        ``latest_ns`` and ``deepest_ns`` at the end, the number of packets and their bytes, bytes
        read, bytes of the finished blocks, bytes in the buffer, and how many of these are finished.
    """
    header_bytes, fraction_ns, most_captured, _ = layout
    packets, packet_bytes, read_bytes, used_bytes, used = 0, 0, 0, 0, 0
    for _ in range(blocks):
        got = _read(descriptor, begin + filled, limit - filled)
        if got <= 0:
            break
        read_bytes += got
        filled += got
        last = filled - header_bytes
        while used <= last:
            record = begin + used
            prefetch(record + PREFETCH_BYTES)
            captured = ld32(record + 8)
            following = used + header_bytes + captured
            if captured > most_captured or following > filled:
                break
            time = ld32(record) * 1_000_000_000 + ld32(record + 4) * fraction_ns
            if time >= latest_ns:
                latest_ns = time
            else:
                deepest_ns = max(deepest_ns, latest_ns - time)
            packets += 1
            packet_bytes += captured
            used = following
        if filled - used > used:
            # copy_bytes needs ranges that do not overlap.
            break
        copy_bytes(begin, begin + used, filled - used)
        used_bytes += used
        filled -= used
        used = 0
    return latest_ns, deepest_ns, packets, packet_bytes, read_bytes, used_bytes, filled, used
