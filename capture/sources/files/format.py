"""The contract of capture formats, which find the packets in the bytes of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from gscope.capture.kernels.jit import kernel_part

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.capture.sources.block import Block

MAX_RECORD_BYTES = 16 * 1024 * 1024
"""Longest pcapng block; a longer one is damage, as in libpcap and Wireshark. Bounds the memory that
a file can claim."""

MAX_CAPTURED_BYTES = 262_144
"""Longest captured length: libpcap's MAXIMUM_SNAPLEN and Wireshark's
WTAP_MAX_PACKET_SIZE_STANDARD."""

_LARGE_LINK_TYPES = (189, 220, 231, 249, 279)
"""USB (three kinds), D-Bus and EBHSCR, whose packets may be larger; none of them carries IP."""

MAX_INT32 = 2**31 - 1

_1, _2, _3 = np.uint64(1), np.uint64(2), np.uint64(3)


class CaptureFormat(Protocol):
    """The records of a capture format.

    Attributes:
        needed_bytes: size of the record at which ``index`` stopped, as far as it is known.
        broken: reason why no further record can be found, one sentence; "" if there is none.
        unread_links: link types seen so far that gscope does not decode.
    """

    needed_bytes: int
    broken: str
    unread_links: set[int]

    def index(self, block: Block, end: int, base: int) -> int:
        """Index the packets of the whole records at the beginning of ``block.data[:end]``.

        Sets ``block.count`` and as many entries of the index arrays; stops early when these are
        full.

        Args:
            block: holds ``end`` bytes of input, beginning with a record.
            end: number of bytes to index.
            base: position of ``block.data[0]`` in the input, for messages.

        Returns:
            The position in ``block.data`` of the first record that was not used.
        """

    def findings(self) -> list[str]:
        """Return sentences on records that were not or only partly usable, with counts."""


def largest_packet(linktype: int) -> int:
    """Return the longest captured length of packets of a link type."""
    return MAX_RECORD_BYTES if linktype in _LARGE_LINK_TYPES else MAX_CAPTURED_BYTES


compiled_largest_packet = kernel_part(largest_packet)
"""``largest_packet`` for kernels."""


@kernel_part
def u16(data: NDArray[np.uint8], position: int, swapped: bool) -> int:
    """Return the unsigned 16-bit number at ``position``.

    Little-endian, or big-endian if ``swapped``.
    """
    at = np.uint64(position)
    a, b = np.int64(data[at]), np.int64(data[at + _1])
    return int((a << 8) | b) if swapped else int((b << 8) | a)


@kernel_part
def u32(data: NDArray[np.uint8], position: int, swapped: bool) -> int:
    """Return the unsigned 32-bit number at ``position``.

    Little-endian, or big-endian if ``swapped``.

    The compiler turns it into one load. An unsigned index avoids numba's test for negative ones.
    """
    at = np.uint64(position)
    a, b = np.int64(data[at]), np.int64(data[at + _1])
    c, d = np.int64(data[at + _2]), np.int64(data[at + _3])
    little = int((d << 24) | (c << 16) | (b << 8) | a)
    return swap32(little) if swapped else little


@kernel_part
def swap32(value: int) -> int:
    """Return ``value``, of 32 bits, with its bytes in reverse order."""
    odd = (value & 0x00FF00FF) << 8 | (value >> 8) & 0x00FF00FF
    return (odd & 0xFFFF) << 16 | odd >> 16
