"""The compiled walk over the blocks of a pcapng section."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import ld64, st32, st64
from gscope.capture.kernels.language.kinds import Kind, RecordKind, record_of_ints
from gscope.capture.sources.block import INDEX
from gscope.capture.sources.files.format import (
    MAX_INT32,
    MAX_RECORD_BYTES,
    compiled_largest_packet,
    u16,
    u32,
)
from gscope.capture.sources.files.pcapng_time import scaled_time

if TYPE_CHECKING:
    from gscope.capture.sources.block import IndexAddresses

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


class InterfaceTable(NamedTuple):
    """The interfaces of a section: the address of their table, and how many rows it has."""

    begin: int
    rows: int


@native_kernel(
    *(Kind.INT,) * 4,
    record_of_ints(InterfaceTable),
    *(Kind.INT,) * 2,
    INDEX,
    result=RecordKind(None, (Kind.INT,) * 3),
)
def index_pcapng(
    data: int,
    position: int,
    end: int,
    swapped: bool,
    interfaces: InterfaceTable,
    state: int,
    count: int,
    arrays: IndexAddresses,
) -> tuple[int, int, int]:
    """Index the packets between two positions, after the first ``count`` entries.

    Blocks that neither hold packets nor stop the walk are skipped.

    Args:
        data: the address of the bytes.
        position: where to begin.
        end: where to end.
        swapped: whether numbers are big-endian.
        interfaces: the interfaces described so far.
        state: the address of the state.
        count: number of entries that are there.
        arrays: the index arrays.

    Returns:
        Number of entries, position of the first block not used, and why the walk stopped. ``state``
        has the counters, and in ``NEEDED`` the size of the block where the walk stopped.
    """
    while True:
        st64(state + 8 * NEEDED, _LEAST_BLOCK_BYTES)
        if position + 4 <= end and u32(data + position, False) == _SECTION_TYPE:
            return count, position, SECTION
        if position + _LEAST_BLOCK_BYTES > end:
            return count, position, INCOMPLETE
        kind = u32(data + position, swapped)
        length = u32(data + position + 4, swapped)
        if length < _LEAST_BLOCK_BYTES or length > MAX_RECORD_BYTES:
            return count, position, BROKEN
        if position + length > end:
            st64(state + 8 * NEEDED, length)
            return count, position, INCOMPLETE
        if u32(data + position + length - 4, swapped) != length:
            return count, position, BROKEN
        if kind == _INTERFACE_TYPE:
            return count, position, INTERFACE
        if kind in (_ENHANCED_TYPE, _OBSOLETE_TYPE, _SIMPLE_TYPE):
            if count == arrays.room:
                return count, position, INCOMPLETE
            header_bytes = 12 if kind == _SIMPLE_TYPE else 28
            held = length - header_bytes - 4
            if held < 0:
                _count(state, MALFORMED)
                position += length
                continue
            number = 0
            if kind == _ENHANCED_TYPE:
                number = u32(data + position + 8, swapped)
            elif kind == _OBSOLETE_TYPE:
                number = u16(data + position + 8, swapped)
            if number >= interfaces.rows:
                _count(state, UNKNOWN_INTERFACE)
                position += length
                continue
            described = interfaces.begin + 8 * INTERFACE_COLUMNS * number
            wire = u32(data + position + header_bytes - 4, swapped)
            claimed = wire if kind == _SIMPLE_TYPE else u32(data + position + 20, swapped)
            largest = compiled_largest_packet(ld64(described + 8 * LINKTYPE))
            if min(claimed, held) > largest:
                _count(state, TOO_LARGE)
                position += length
                continue
            if kind == _SIMPLE_TYPE:
                captured = min(wire, held)
                if ld64(described + 8 * SNAPLEN) > 0:
                    captured = min(captured, ld64(described + 8 * SNAPLEN))
                _count(state, NO_TIME)
            else:
                captured = claimed
                if captured > held:
                    _count(state, MALFORMED)
                    position += length
                    continue
                time, is_right = scaled_time(
                    u32(data + position + 12, swapped),
                    u32(data + position + 16, swapped),
                    ld64(described + 8 * KIND),
                    ld64(described + 8 * FACTOR),
                    ld64(described + 8 * OFFSET),
                )
                st64(state + 8 * LAST_TIME, time)
                if not is_right:
                    _count(state, CLAMPED_TIMES)
            st64(arrays.time_ns + 8 * count, ld64(state + 8 * LAST_TIME))
            st64(arrays.offset + 8 * count, position + header_bytes)
            st32(arrays.caplen + 4 * count, captured)
            st32(arrays.wirelen + 4 * count, min(wire, MAX_INT32))
            st32(arrays.linktype + 4 * count, ld64(described + 8 * LINKTYPE))
            count += 1
        position += length


@kernel_part
def _count(state: int, counter: int) -> None:
    """Add 1 to a counter of the state."""
    st64(state + 8 * counter, ld64(state + 8 * counter) + 1)
