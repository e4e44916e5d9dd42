"""Classic pcap: microsecond, nanosecond and modified (Kuznetzov) records, both byte orders.

Layout: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcap-04.html
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import native_kernel
from gscope.capture.kernels.language.intrinsics import ld32, prefetch, st32, st64
from gscope.capture.kernels.language.kinds import Kind, RecordKind
from gscope.capture.packet.link_names import READ_LINK_TYPES
from gscope.capture.sources.block import INDEX, PacketSums
from gscope.capture.sources.files.format import MAX_INT32, largest_packet, u32
from gscope.queries.int64 import MAX_TIME_NS

if TYPE_CHECKING:
    from gscope.capture.sources.block import Block, IndexAddresses

HEADER_BYTES = 24

PREFETCH_BYTES = 2048
"""Distance in bytes at which data ahead of the current record is prefetched. The position of a
record is known only once the one before it has been loaded, so without prefetching every load waits
for memory (8 instead of 5 ns for a packet truncated to 96 bytes)."""

# Magic number in little-endian order: nanoseconds of a unit of the fraction, bytes of a record's
# header.
_VARIANTS = {
    0xA1B2C3D4: (1000, 16),
    0xA1B23C4D: (1, 16),
    0xA1B2CD34: (1000, 24),
}
MAGICS = {
    struct.pack(order + "I", magic): (order, *variant)
    for magic, variant in _VARIANTS.items()
    for order in "<>"
}

PcapLayout = tuple[int, int, int, int]
"""Layout of the records: bytes of a record's header, nanoseconds of a unit of the fraction, longest
captured length and link type."""

LAYOUT = RecordKind(None, (Kind.INT,) * 4)

# Order of the two lengths of a record: the captured length is first since version 2.4, and was
# second before.
IN_ORDER, PERHAPS_SWAPPED, SWAPPED = range(3)


class PcapFormat:
    """Records of a pcap file; see ``CaptureFormat``.

    Args:
        header: the file's first ``HEADER_BYTES`` bytes, with one of ``MAGICS``.
    """

    def __init__(self, header: bytes) -> None:
        self._order, self._fraction_ns, self.needed_bytes = MAGICS[header[:4]]
        self._record_header_bytes = self.needed_bytes
        major, minor, _snaplen, linktype = struct.unpack(
            self._order + "4x2H8x2I", header[:HEADER_BYTES]
        )
        self._lengths = _lengths_of(major, minor)
        # The upper half holds flags and the length of the frame check sequence.
        self._linktype = linktype & 0xFFFF
        # Writers often claim a smaller snap length than they used, or a larger one than any reader
        # accepts.
        self._limit = largest_packet(self._linktype)
        self._layout: PcapLayout = (
            self._record_header_bytes,
            self._fraction_ns,
            self._limit,
            self._linktype,
        )
        self.broken = ""
        self.unread_links = {self._linktype} - READ_LINK_TYPES

    @property
    def usual_layout(self) -> PcapLayout | None:
        """The layout if the records are little-endian and of version 2.4, as ``index_usual`` needs.

        Else None.
        """
        return None if self._order == ">" or self._lengths != IN_ORDER else self._layout

    def index(self, block: Block, end: int, base: int) -> int:
        """See ``CaptureFormat``."""
        if self.usual_layout is not None:
            count, stop, *sums = index_usual(
                block.data.ctypes.data, end, *self.usual_layout, *block.index_addresses
            )
        else:
            count, stop, *sums = index_unusual(
                block.data.ctypes.data,
                end,
                self._order == ">",
                self._lengths,
                *self._layout,
                *block.index_addresses,
            )
        block.fill_in(count, PacketSums(*sums))
        # If there were records, the one that stopped the kernel is examined at the beginning of the
        # next block.
        if not count:
            self._look_at(block, int(stop), end, base)
        return int(stop)

    def _look_at(self, block: Block, stop: int, end: int, base: int) -> None:
        """Determine what the incomplete record at ``stop`` needs, or why it is invalid."""
        self.needed_bytes = self._record_header_bytes
        if end - stop >= self._record_header_bytes:
            lengths = block.data[stop + 8 : stop + 16].tobytes()
            caplen, wirelen = struct.unpack(self._order + "2I", lengths)
            if self._lengths == SWAPPED or (self._lengths == PERHAPS_SWAPPED and caplen > wirelen):
                caplen = wirelen
            self.needed_bytes += caplen
            if caplen > self._limit:
                self.broken = (
                    f"the record at byte {base + stop} claims {caplen} captured bytes, more than "
                    f"{self._limit}; the rest is ignored"
                )

    def findings(self) -> list[str]:
        """See ``CaptureFormat``; a pcap record is usable if it is whole."""
        return []


def _lengths_of(major: int, minor: int) -> int:
    """Return the order of lengths, as libpcap (sf-pcap.c): 2.3 has both, 543.0 is DG/UX."""
    if (major == 2 and minor < 3) or (major, minor) == (543, 0):
        return SWAPPED
    return PERHAPS_SWAPPED if (major, minor) == (2, 3) else IN_ORDER


@native_kernel(*(Kind.INT,) * 4, LAYOUT, INDEX, result=RecordKind(None, (Kind.INT,) * 5))
def index_unusual(
    data: int,
    end: int,
    swapped: bool,
    lengths: int,
    layout: PcapLayout,
    arrays: IndexAddresses,
) -> tuple[int, int, int, int, int]:
    """Index the whole records among bytes, of either byte order and any version.

    Stops at the end, at a record that is incomplete or claims more than the longest captured
    length, or when the index arrays are full. A fraction of a second or more is carried over;
    lengths are limited to 31 bits.

    Args:
        data: the address of the bytes.
        end: number of bytes to index.
        swapped: whether numbers are big-endian.
        lengths: order of the two lengths of a record.
        layout: layout of the records.
        arrays: the index arrays.

    Returns:
        Number of records, position of the first record not used, and the fields of ``PacketSums``.
    """
    header_bytes, fraction_ns, limit, link = layout
    offset, caplen, wirelen, time_ns, linktype, room = arrays
    position = 0
    count = 0
    wire_bytes = 0
    least, greatest = MAX_TIME_NS, 0
    while count < room and position + header_bytes <= end:
        record = data + position
        prefetch(record + PREFETCH_BYTES)
        captured = u32(record + 8, swapped)
        wire = u32(record + 12, swapped)
        if lengths != IN_ORDER and (lengths == SWAPPED or captured > wire):
            captured, wire = wire, captured
        packet = position + header_bytes
        if captured > limit or packet + captured > end:
            break
        seconds = u32(record, swapped)
        fraction = u32(record + 4, swapped)
        time = seconds * 1_000_000_000 + fraction * fraction_ns
        wire = min(wire, MAX_INT32)
        wire_bytes += wire
        least = min(least, time)
        greatest = max(greatest, time)
        st64(time_ns + 8 * count, time)
        st64(offset + 8 * count, packet)
        st32(caplen + 4 * count, captured)
        st32(wirelen + 4 * count, wire)
        st32(linktype + 4 * count, link)
        count += 1
        position = packet + captured
    return count, position, wire_bytes, least, greatest


@native_kernel(Kind.INT, Kind.INT, LAYOUT, INDEX, result=RecordKind(None, (Kind.INT,) * 5))
def index_usual(
    data: int,
    end: int,
    layout: PcapLayout,
    arrays: IndexAddresses,
) -> tuple[int, int, int, int, int]:
    """Index little-endian records of version 2.4 as ``index_unusual``, with half the instructions.

    Args:
        data: the address of the bytes.
        end: number of bytes to index.
        layout: layout of the records.
        arrays: the index arrays.
    """
    header_bytes, fraction_ns, limit, link = layout
    offset, caplen, wirelen, time_ns, linktype, room = arrays
    position = 0
    count = 0
    wire_bytes = 0
    least, greatest = MAX_TIME_NS, 0
    last = end - header_bytes
    while count < room and position <= last:
        record = data + position
        prefetch(record + PREFETCH_BYTES)
        captured = ld32(record + 8)
        packet = position + header_bytes
        if captured > limit or packet + captured > end:
            break
        time = ld32(record) * 1_000_000_000 + ld32(record + 4) * fraction_ns
        wire = min(ld32(record + 12), MAX_INT32)
        wire_bytes += wire
        least = min(least, time)
        greatest = max(greatest, time)
        st64(time_ns + 8 * count, time)
        st64(offset + 8 * count, packet)
        st32(caplen + 4 * count, captured)
        st32(wirelen + 4 * count, wire)
        st32(linktype + 4 * count, link)
        count += 1
        position = packet + captured
    return count, position, wire_bytes, least, greatest
