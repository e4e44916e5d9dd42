"""The kernel's ring, mapped into the process, and the position in it."""

from __future__ import annotations

import ctypes
import functools
import mmap
import os
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.sources.af_packet import index
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
from gscope.capture.sources.block import PADDING_BYTES, Block
from gscope.errors import CaptureError, UsageError
from gscope.queries.os_errors import os_reason
from gscope.records import dataclass

if TYPE_CHECKING:
    import socket

    from numpy.typing import NDArray

DEFAULT_RING_BYTES = 64 << 20
"""Two thirds of a second at 500,000 packets/s of 96 captured bytes."""

RETIRE_MS = 50
"""The kernel hands over a block with a packet after this time, full or not. With a shorter time, a
stalled reader of an almost silent interface runs out of blocks sooner; with a longer one, answers
are delayed."""

USUAL_BLOCKS = 256
"""However few packets come, a reader may stand still for 256 times ``RETIRE_MS``: 12.8 s."""

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
        """Return the shape of a ring of at most ``ring_bytes``, in ``USUAL_BLOCKS`` if they fit.

        Blocks of a larger ring are not larger than ``MOST_BLOCK_BYTES``.

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
        while block_bytes > LEAST_BLOCK_BYTES and ring_bytes // block_bytes < USUAL_BLOCKS:
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

    Attributes:
        most_taken: the most blocks that ``take`` returns as one.
        taken: how many it has returned; 0 once they were given back.

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
                f"the kernel rejected a ring of {shape.size_bytes} bytes ({reason}); choose a "
                "smaller one"
            )
            raise CaptureError(message) from error
        self._bytes: NDArray[np.uint8] = np.frombuffer(mapping, np.uint8)
        self._begin = int(self._bytes.ctypes.data)
        self._cursor = 0
        self.most_taken = min(MOST_BLOCK_BYTES // shape.block_bytes, max(1, shape.blocks // 16))
        self.taken = 0

    def take(self) -> Block | None:
        """Return the next blocks as one, not yet indexed.

        They lie side by side and have at most ``MOST_BLOCK_BYTES`` together. It is always the same
        object, so the ones before must have been given back. None if the kernel has handed none
        over.
        """
        block_bytes = self.shape.block_bytes
        most = min(self.most_taken, self.shape.blocks - self._cursor)
        self.taken = index.ready_blocks(self._address, block_bytes, most)
        if not self.taken:
            return None
        block, begin = self._block, self._cursor * block_bytes
        block.data = self._bytes[begin : begin + self.taken * block_bytes + PADDING_BYTES]
        return block

    def give_back(self) -> None:
        """Return the blocks from ``take`` to the kernel."""
        index.give_back(self._address, self.shape.block_bytes, self.taken)
        self._cursor = (self._cursor + self.taken) % self.shape.blocks
        self.taken = 0

    @property
    def is_empty(self) -> bool:
        """Whether the ring holds no packet after those that were given back."""
        return bool(index.is_untouched(self._address))

    @property
    def ready_blocks(self) -> int:
        """Number of blocks that the kernel handed over and that were not given back."""
        size, behind = self.shape.block_bytes, self.shape.blocks - self._cursor
        ready: int = index.ready_blocks(self._address, size, behind)
        if ready == behind:
            ready += index.ready_blocks(self._begin, size, self._cursor)
        return ready

    def close(self) -> None:
        """Release the mapping, which lives on until the last block that a caller holds."""
        self.__dict__.pop("_block", None)
        self._bytes = np.empty(0, np.uint8)

    @property
    def _address(self) -> int:
        return self._begin + self._cursor * self.shape.block_bytes

    @functools.cached_property
    def _block(self) -> Block:
        # Each block of the kernel has a header of its own: several have room for fewer packets.
        return Block.allocate(0, (MOST_BLOCK_BYTES - BLOCK_HEADER_BYTES) // _MIN_PACKET_BYTES)


def load_kernels() -> None:
    """Compile the kernels that the first packet needs, or load them from the cache.

    The first time on a machine that takes seconds.
    """
    block = Block.allocate(BLOCK_HEADER_BYTES, 1)
    block.data[:] = 0
    address = int(block.data.ctypes.data)
    index.ready_blocks(address, 0, 1)
    index.is_untouched(address)
    index.give_back(address, 0, 1)
    for numbers in (block.caplen, block.wirelen, block.time_ns, block.offset, block.linktype):
        numbers[:] = 0
    block.count, *_ = index.index_ring_blocks(
        address, BLOCK_HEADER_BYTES, 1, *(0,) * 4, *block.index_addresses
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
