"""The compiled walk over the blocks of a pcapng section."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel
from gscope.capture.sources.files.format import (
    MAX_INT32,
    MAX_RECORD_BYTES,
    compiled_largest_packet,
    u16,
    u32,
)
from gscope.capture.sources.files.pcapng_time import scaled_time

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from gscope.capture.sources.block import IndexArrays

# Why the walk stopped.
INCOMPLETE = 0
"""The block there is incomplete, or the index arrays are full."""
SECTION = 1
"""A section header begins there, possibly incomplete."""
INTERFACE = 2
"""A whole interface description begins there."""
BROKEN = 3
"""The block there has invalid lengths."""

# State that the kernel keeps between calls.
NEEDED, LAST_TIME, UNKNOWN_INTERFACE, MALFORMED, CLAMPED_TIMES, NO_TIME, TOO_LARGE = range(7)
STATE_SIZE = 7

# Columns of the interface table: link type, snap length, and the three numbers of ``time_scale``.
LINKTYPE, SNAPLEN, KIND, FACTOR, OFFSET = range(5)
INTERFACE_COLUMNS = 5

_SECTION_TYPE = 0x0A0D0D0A
_INTERFACE_TYPE, _OBSOLETE_TYPE, _SIMPLE_TYPE, _ENHANCED_TYPE = 1, 2, 3, 6
_LEAST_BLOCK_BYTES = 12


@kernel
def index_pcapng(
    data: NDArray[np.uint8],
    position: int,
    end: int,
    swapped: bool,
    interfaces: NDArray[np.int64],
    state: NDArray[np.int64],
    count: int,
    arrays: IndexArrays,
) -> tuple[int, int, int]:
    """Index the packets of ``data[position:end]`` after the first ``count`` entries.

    Blocks that neither hold packets nor stop the walk are skipped.

    Returns:
        Number of entries, position of the first block not used, and why the walk stopped. ``state``
        has the counters, and in ``NEEDED`` the size of the block where the walk stopped.
    """
    offset, caplen, wirelen, time_ns, linktype = arrays
    room = offset.size
    while True:
        state[NEEDED] = _LEAST_BLOCK_BYTES
        if position + 4 <= end and u32(data, position, False) == _SECTION_TYPE:
            return count, position, SECTION
        if position + _LEAST_BLOCK_BYTES > end:
            return count, position, INCOMPLETE
        kind = u32(data, position, swapped)
        length = u32(data, position + 4, swapped)
        if length < _LEAST_BLOCK_BYTES or length > MAX_RECORD_BYTES:
            return count, position, BROKEN
        if position + length > end:
            state[NEEDED] = length
            return count, position, INCOMPLETE
        if u32(data, position + length - 4, swapped) != length:
            return count, position, BROKEN
        if kind == _INTERFACE_TYPE:
            return count, position, INTERFACE
        if kind in (_ENHANCED_TYPE, _OBSOLETE_TYPE, _SIMPLE_TYPE):
            if count == room:
                return count, position, INCOMPLETE
            header_bytes = 12 if kind == _SIMPLE_TYPE else 28
            held = length - header_bytes - 4
            if held < 0:
                state[MALFORMED] += 1
                position += length
                continue
            number = 0
            if kind == _ENHANCED_TYPE:
                number = u32(data, position + 8, swapped)
            elif kind == _OBSOLETE_TYPE:
                number = u16(data, position + 8, swapped)
            if number >= interfaces.shape[0]:
                state[UNKNOWN_INTERFACE] += 1
                position += length
                continue
            wire = u32(data, position + header_bytes - 4, swapped)
            claimed = wire if kind == _SIMPLE_TYPE else u32(data, position + 20, swapped)
            largest = compiled_largest_packet(interfaces[number, LINKTYPE])
            if min(claimed, held) > largest:
                state[TOO_LARGE] += 1
                position += length
                continue
            if kind == _SIMPLE_TYPE:
                captured = min(wire, held)
                if interfaces[number, SNAPLEN] > 0:
                    captured = min(captured, interfaces[number, SNAPLEN])
                state[NO_TIME] += 1
            else:
                captured = claimed
                if captured > held:
                    state[MALFORMED] += 1
                    position += length
                    continue
                time, is_right = scaled_time(
                    u32(data, position + 12, swapped),
                    u32(data, position + 16, swapped),
                    interfaces[number, KIND],
                    interfaces[number, FACTOR],
                    interfaces[number, OFFSET],
                )
                state[LAST_TIME] = time
                if not is_right:
                    state[CLAMPED_TIMES] += 1
            time_ns[count] = state[LAST_TIME]
            offset[count] = position + header_bytes
            caplen[count] = captured
            wirelen[count] = min(wire, MAX_INT32)
            linktype[count] = interfaces[number, LINKTYPE]
            count += 1
        position += length
