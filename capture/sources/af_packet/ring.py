"""The kernel's ring, mapped into the process, and the position in it."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.af_packet.block_layout import (
    ADDRESS_BYTES,
    BLOCK_HEADER_BYTES,
    HEADROOM_BYTES,
    PACKET_HEADER_BYTES,
)
from gscope.capture.sources.af_packet.kernel_api import (
    PACKET_RX_RING,
    RING_REQUEST,
    SOL_PACKET,
)
from gscope.errors import CaptureError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    import socket
    from types import ModuleType

    from numpy.typing import NDArray

    from gscope.capture.sources.block import Block

DEFAULT_RING_BYTES = 64 << 20
"""Two thirds of a second at 500,000 packets/s of 96 captured bytes."""

RETIRE_MS = 50
"""The kernel hands over a block with a packet after this time, full or not. With a shorter time, a
stalled reader of an almost silent interface runs out of blocks sooner; with a longer one, answers
are delayed."""

LEAST_BLOCK_BYTES = 256 << 10
"""Room for the largest packet that segmentation offload usually makes (64 KB)."""
MOST_BLOCK_BYTES = 1 << 20
LEAST_BLOCKS = 8

_FRAME_BYTES = 2048
"""Ignored by TPACKET_V3, but must divide a block."""

_MIN_PACKET_BYTES = PACKET_HEADER_BYTES + ADDRESS_BYTES + HEADROOM_BYTES

_MAP_FIXED = 0x10


@dataclass(frozen=True, slots=True)
class RingShape:
    """The size of a block in bytes, a power of two, and the number of blocks."""

    block_bytes: int
    blocks: int

    @property
    def size_bytes(self) -> int:
        """Bytes of the whole ring."""
        return self.block_bytes * self.blocks

    @classmethod
    def of(cls, ring_bytes: int) -> RingShape:
        """Return the shape of a ring of at most ``ring_bytes``, with 32 or more blocks if they fit.

        Raises:
            UsageError: the size is out of range.
        """
        least = LEAST_BLOCKS * LEAST_BLOCK_BYTES
        if not least <= ring_bytes < 1 << 32:
            message = (
                f"invalid ring size of {ring_bytes} bytes: expected {least >> 20}M to less than 4G"
            )
            raise UsageError(message)
        block_bytes = MOST_BLOCK_BYTES
        while block_bytes > LEAST_BLOCK_BYTES and ring_bytes // block_bytes < 32:
            block_bytes //= 2
        return cls(block_bytes, ring_bytes // block_bytes)


class MappedRing:
    """The ring of one packet socket.

    The kernel hands over blocks, and gets them back, in their order.

    A readable page follows the mapping, so that kernels may load a word beyond the end of the last
    block.

    Args:
        packet_socket: a TPACKET_V3 socket without a ring. Closing it does not release the ring;
            ``close`` does.
        shape: size and number of the blocks.

    Raises:
        CaptureError: the kernel refuses, most often for lack of memory.
    """

    def __init__(self, packet_socket: socket.socket, shape: RingShape) -> None:
        self.shape = shape
        frames = shape.size_bytes // _FRAME_BYTES
        request = RING_REQUEST.pack(
            shape.block_bytes, shape.blocks, _FRAME_BYTES, frames, RETIRE_MS, 0, 0
        )
        try:
            packet_socket.setsockopt(SOL_PACKET, PACKET_RX_RING, request)
            mapping = _map(packet_socket.fileno(), shape.size_bytes)
        except OSError as error:
            reason = os_reason(error)
            message = (
                f"the kernel rejected a ring of {shape.size_bytes} bytes ({reason}); choose a smaller "
                "one"
            )
            raise CaptureError(message) from error
        self._bytes: NDArray[np.uint8] = np.frombuffer(mapping, np.uint8)
        self._begin = int(self._bytes.ctypes.data)
        self._cursor = 0

    def take(self) -> Block | None:
        """Return the next block, not yet indexed, or None if the kernel has not handed it over.

        Returns the same block until ``give_back``.
        """
        return self._blocks[self._cursor] if kernels().is_ready(self._address) else None

    def give_back(self) -> None:
        """Return the block from ``take`` to the kernel."""
        kernels().give_back(self._address)
        self._cursor = (self._cursor + 1) % self.shape.blocks

    @property
    def is_empty(self) -> bool:
        """Whether the ring holds no packet after those that were given back."""
        return bool(kernels().is_untouched(self._address))

    @property
    def ready_blocks(self) -> int:
        """Number of blocks that the kernel handed over and that were not given back."""
        for ahead in range(self.shape.blocks):
            number = (self._cursor + ahead) % self.shape.blocks
            if not kernels().is_ready(self._begin + number * self.shape.block_bytes):
                return ahead
        return self.shape.blocks

    def close(self) -> None:
        """Release the mapping, which lives on until the last block that a caller holds."""
        self.__dict__.pop("_blocks", None)
        self._bytes = np.empty(0, np.uint8)

    @property
    def _address(self) -> int:
        return self._begin + self._cursor * self.shape.block_bytes

    @functools.cached_property
    def _blocks(self) -> list[Block]:
        from gscope.capture.sources.block import PADDING_BYTES, Block

        block_bytes = self.shape.block_bytes
        packets = (block_bytes - BLOCK_HEADER_BYTES) // _MIN_PACKET_BYTES
        blocks = []
        for begin in range(0, self.shape.size_bytes, block_bytes):
            block = Block.allocate(0, packets)
            block.data = self._bytes[begin : begin + block_bytes + PADDING_BYTES]
            blocks.append(block)
        return blocks


@functools.cache
def kernels() -> ModuleType:
    """Return the module of the compiled kernels of a ring.

    Numba takes ten times as long to import as a device to open; packets are let in before.
    """
    from gscope.capture.sources.af_packet import index

    return index


def load_kernels() -> None:
    """Compile the kernels that the first packet needs, or load them from the cache.

    The first time on a machine that takes seconds.
    """
    from gscope.capture.sources.block import Block

    block = Block.allocate(BLOCK_HEADER_BYTES, 1)
    block.data[:] = 0
    address = int(block.data.ctypes.data)
    kernels().is_ready(address)
    kernels().is_untouched(address)
    kernels().give_back(address)
    for numbers in (block.caplen, block.wirelen, block.time_ns, block.offset, block.linktype):
        numbers[:] = 0
    block.count, *_ = kernels().index_ring_block(
        address, BLOCK_HEADER_BYTES, *(0,) * 4, *block.index_addresses
    )
    block.count = 1
    assert block.wire_bytes == 0
    assert block.time_extent_ns == (0, 0)


def _map(descriptor: int, size: int) -> mmap.mmap:
    """Map the socket's ring of ``size`` bytes, followed by a page of zeros.

    Python's ``mmap`` cannot choose an address, but it unmaps the whole range, whatever is mapped
    there.
    """
    whole = mmap.mmap(-1, size + mmap.PAGESIZE)
    address = ctypes.addressof(ctypes.c_char.from_buffer(whole))
    libc = ctypes.CDLL(None, use_errno=True)
    libc.mmap.restype = ctypes.c_void_p
    libc.mmap.argtypes = (
        ctypes.c_void_p,
        ctypes.c_size_t,
        *(3 * (ctypes.c_int,)),
        ctypes.c_long,
    )
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    placed = libc.mmap(address, size, protection, mmap.MAP_SHARED | _MAP_FIXED, descriptor, 0)
    if placed != address:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return whole
