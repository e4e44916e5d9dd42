"""The contract of capture formats, which find the packets in the bytes of a block."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gscope.capture.kernels.jit import kernel_part
from gscope.capture.kernels.language.intrinsics import be16, be32, ld16, ld32

if TYPE_CHECKING:
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
def u16(address: int, swapped: bool) -> int:
    """Return the unsigned 16-bit number at an address.

    It is little-endian, or big-endian if ``swapped``.
    """
    return be16(address) if swapped else ld16(address)


@kernel_part
def u32(address: int, swapped: bool) -> int:
    """Return the unsigned 32-bit number at an address.

    It is little-endian, or big-endian if ``swapped``.
    """
    return be32(address) if swapped else ld32(address)
