"""A block: consecutive packets of one source with their index arrays."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from gscope.capture.kernels.jit import native_kernel
from gscope.capture.kernels.language.intrinsics import ld32, ld64
from gscope.capture.kernels.language.kinds import Kind, RecordKind, record_of_ints
from gscope.records import dataclass

if TYPE_CHECKING:
    from typing_extensions import Buffer

PADDING_BYTES = 64
"""Readable bytes after the last packet of every block, so that a kernel may load a word beyond
it."""


IndexArrays = tuple[
    NDArray[np.int64], NDArray[np.int32], NDArray[np.int32], NDArray[np.int64], NDArray[np.int32]
]
"""``offset``, ``caplen``, ``wirelen``, ``time_ns`` and ``linktype`` of a block, as kernels take
them.

A plain tuple: a named one costs 2 microseconds more each time Python calls a kernel.
"""


class IndexAddresses(NamedTuple):
    """The same arrays by their addresses, as native kernels take them, and how many entries fit."""

    offset: int
    caplen: int
    wirelen: int
    time_ns: int
    linktype: int
    room: int


INDEX = record_of_ints(IndexAddresses)


class PacketSums(NamedTuple):
    """Bytes on the wire of all packets of a block, and their least and greatest time."""

    wire_bytes: int
    least_ns: int
    greatest_ns: int


@dataclass(slots=True)
class Block:
    """Consecutive packets of one source, in capture order.

    The source owns the arrays; ``PacketSource`` says how long they are valid. Only the first
    ``count`` entries of an index array are used. The code that fills a block guarantees that
    ``offset[i] + caplen[i]`` is at most ``data.size - PADDING_BYTES``.

    Attributes:
        data: bytes of the packets (uint8), followed by ``PADDING_BYTES`` readable bytes.
        offset: position of each packet in ``data`` (int64).
        caplen: captured length of each packet, in bytes (int32).
        wirelen: wire length of each packet, in bytes (int32).
        time_ns: timestamp of each packet in nanoseconds since 1970, UTC (int64).
        linktype: pcap link type of each packet (int32).
        count: number of packets in the block.
        position: bytes of the input consumed once this block was filled, for a progress bar.
        index_arrays: the five index arrays; these are never replaced.
        index_addresses: their addresses.
    """

    data: NDArray[np.uint8]
    offset: NDArray[np.int64]
    caplen: NDArray[np.int32]
    wirelen: NDArray[np.int32]
    time_ns: NDArray[np.int64]
    linktype: NDArray[np.int32]
    count: int = 0
    position: int = 0
    index_arrays: IndexArrays = field(init=False, repr=False)
    index_addresses: IndexAddresses = field(init=False, repr=False)
    _sums: PacketSums | None = None

    def __post_init__(self) -> None:
        self.index_arrays = self.offset, self.caplen, self.wirelen, self.time_ns, self.linktype
        addresses = [array.ctypes.data for array in self.index_arrays]
        self.index_addresses = IndexAddresses._make((*addresses, self.offset.size))

    @classmethod
    def allocate(cls, data_bytes: int, packets: int) -> Block:
        """Return an empty block with room for ``data_bytes`` of input and ``packets`` packets.

        The memory is not touched: room that is never filled costs address space only.
        """
        return cls(
            data=np.empty(data_bytes + PADDING_BYTES, np.uint8),
            offset=np.empty(packets, np.int64),
            caplen=np.empty(packets, np.int32),
            wirelen=np.empty(packets, np.int32),
            time_ns=np.empty(packets, np.int64),
            linktype=np.empty(packets, np.int32),
        )

    @property
    def wire_bytes(self) -> int:
        """Bytes of all packets on the wire."""
        if self._sums is not None:
            return self._sums.wire_bytes
        return int(_total(self.index_addresses.wirelen, self.count))

    @property
    def time_extent_ns(self) -> tuple[int, int]:
        """Least and greatest time of the packets; the block must have one."""
        if self._sums is not None:
            return self._sums.least_ns, self._sums.greatest_ns
        least, greatest = _extent(self.index_addresses.time_ns, self.count)
        return least, greatest

    def fill_in(self, count: int, sums: PacketSums | None = None) -> None:
        """Set the number of packets, and their sums if the index kernel computed them."""
        self.count = count
        self._sums = sums if count else None

    @property
    def capacity_bytes(self) -> int:
        """Bytes of input that ``data`` has room for."""
        return self.data.size - PADDING_BYTES

    def view(self) -> memoryview:
        """Return ``data`` as a buffer to read into."""
        return memoryview(cast("Buffer", self.data))

    def ensure_capacity(self, data_bytes: int, keep: int) -> None:
        """Make room for ``data_bytes`` bytes of input.

        Keep the first ``keep`` bytes of ``data``.
        """
        if data_bytes > self.capacity_bytes:
            data = np.empty(data_bytes + PADDING_BYTES, np.uint8)
            data[:keep] = self.data[:keep]
            self.data = data


# Kernels rather than numpy, whose reductions take several times as long for a few thousand numbers.
@native_kernel(Kind.INT, Kind.INT, result=Kind.INT)
def _total(numbers: int, count: int) -> int:
    """Return the sum of numbers of 32 bits, none of them negative."""
    total = 0
    for i in range(count):
        total += ld32(numbers + 4 * i)
    return total


@native_kernel(Kind.INT, Kind.INT, result=RecordKind(None, (Kind.INT, Kind.INT)))
def _extent(numbers: int, count: int) -> tuple[int, int]:
    """Return the least and the greatest of numbers of 64 bits; there must be one."""
    least = ld64(numbers)
    greatest = least
    for i in range(count):
        number = ld64(numbers + 8 * i)
        least = min(least, number)
        greatest = max(greatest, number)
    return least, greatest
