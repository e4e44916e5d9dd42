"""Blocks of pcapng files: headers in Python, packets in a compiled kernel.

Layout: https://www.ietf.org/archive/id/draft-ietf-opsawg-pcapng-02.html
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gscope.capture.kernels.jit import kernel
from gscope.capture.kernels.language.intrinsics import address_of, copy_bytes, ld32, st32

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from gscope.capture.sources.block import IndexArrays

SECTION, INTERFACE, PACKET = 0x0A0D0D0A, 1, 6
"""Types of blocks: section header, interface description, enhanced packet."""

_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_UNKNOWN_LENGTH = -1
_COMMENT, _APPLICATION, _NAME, _RESOLUTION, _OFFSET = 1, 4, 2, 9, 14
_NANOSECONDS = 9

OFFSET_S = -9_223_372_036
"""Seconds that are added to the times of interfaces for packets from before 1970, which is the
earliest time that pcapng knows."""

EARLY = 1 << 32
"""Added to the link type of packets from before 1970: they belong to an interface of their own."""

_FIXED_BYTES = 32
"""Bytes of a packet's block besides the packet and its options."""

DONE, FULL, NEW_LINK = 0, 1, 2
"""Why ``append_marked`` returned: all packets are appended, the next one needs more room, or an
interface with its link type."""


class Comments(NamedTuple):
    """For each bit of a mark, the options that name its queries.

    Attributes:
        ends: where the options of each bit end in ``data``, preceded by 0.
        data: the options, each padded to 32 bits.
    """

    ends: NDArray[np.int64]
    data: NDArray[np.uint8]


class Target(NamedTuple):
    """The room for blocks.

    Attributes:
        data: the memory.
        used: bytes of it that hold blocks.
        limit: bytes of it that may be used.
    """

    data: NDArray[np.uint8]
    used: int
    limit: int


class Appended(NamedTuple):
    """What ``append_marked`` did.

    Attributes:
        position: number of the first packet that was not looked at.
        used: bytes of the target that hold blocks now.
        packets: number of packets appended.
        status: ``DONE``, ``FULL`` or ``NEW_LINK``.
        wanted: bytes that the next packet needs, or its link type, as ``interface_description``
            takes it.
    """

    position: int
    used: int
    packets: int
    status: int
    wanted: int


def section_header(application: str) -> bytes:
    """Return the header of a section that ``application`` writes."""
    body = struct.pack("<IHHq", _BYTE_ORDER_MAGIC, 1, 0, _UNKNOWN_LENGTH)
    return _block(SECTION, body + _options((_APPLICATION, application.encode())))


def interface_description(name: str, link: int) -> bytes:
    """Return the description of an interface, whose times are in nanoseconds.

    Args:
        name: its name.
        link: the link type of its packets, plus ``EARLY`` for those from before 1970.
    """
    options = [(_NAME, _cut(name)), (_RESOLUTION, bytes([_NANOSECONDS]))]
    if link & EARLY:
        options.append((_OFFSET, struct.pack("<q", OFFSET_S)))
    return _block(INTERFACE, struct.pack("<HHI", link & 0xFFFF, 0, 0) + _options(*options))


def comments(names: Sequence[Sequence[str]]) -> Comments:
    """Return the comments of the packets that a bit of a mark stands for, by bit."""
    options = [b"".join(_option(_COMMENT, _cut(name)) for name in each) for each in names]
    ends = np.cumsum([0, *map(len, options)], dtype=np.int64)
    return Comments(ends, np.frombuffer(b"".join(options), np.uint8))


def _cut(text: str) -> bytes:
    """Return ``text`` in UTF-8, cut to the longest option."""
    return text.encode()[:65_532].decode(errors="ignore").encode()


def _block(kind: int, body: bytes) -> bytes:
    length = struct.pack("<I", len(body) + 12)
    return struct.pack("<I", kind) + length + body + length


def _options(*options: tuple[int, bytes]) -> bytes:
    return b"".join(_option(code, value) for code, value in options) + bytes(4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + value + bytes(-len(value) % 4)


@kernel
def append_marked(
    data: NDArray[np.uint8],
    arrays: IndexArrays,
    packets: tuple[int, int],
    marks: NDArray[np.int64],
    links: NDArray[np.int64],
    options: Comments,
    target: Target,
) -> Appended:
    """Append a block for each marked packet, and clear its mark.

    Args:
        data: bytes of the packets.
        arrays: their index arrays.
        packets: number of the first packet, and number behind the last one.
        marks: a word for each packet; each bit stands for some queries.
        links: link type, as ``interface_description`` takes it, and number of each interface.
        options: the comments of each bit.
        target: where the blocks go.
    """
    position, stop = packets
    base = address_of(data)
    text = address_of(options.data)
    begin = address_of(target.data)
    used = target.used
    appended = 0
    while position < stop:
        mark = marks[position]
        if mark == 0:
            position += 1
            continue
        time_ns = int(arrays[3][position])
        link = int(arrays[4][position]) & 0xFFFF
        if time_ns < 0:
            link += EARLY
            time_ns = max(time_ns - OFFSET_S * 1_000_000_000, 0)
        number = -1
        for k in range(links.shape[0]):
            if links[k, 0] == link:
                number = int(links[k, 1])
        if number < 0:
            return Appended(position, used, appended, NEW_LINK, link)
        caplen = int(arrays[1][position])
        padded = (caplen + 3) & ~3
        size = _FIXED_BYTES + padded + 4
        bits = options.ends.size - 1
        for k in range(bits):
            if (mark >> k) & 1:
                size += int(options.ends[k + 1] - options.ends[k])
        if used + size > target.limit:
            return Appended(position, used, appended, FULL, size)
        at = begin + used
        st32(at, PACKET)
        st32(at + 4, size)
        st32(at + 8, number)
        st32(at + 12, time_ns >> 32)
        st32(at + 16, time_ns)
        st32(at + 20, caplen)
        st32(at + 24, int(arrays[2][position]))
        # The last word is zeroed first, for the padding; without padding options overwrite it.
        st32(at + 28 + (caplen & ~3), 0)
        copy_bytes(at + 28, base + int(arrays[0][position]), caplen)
        at += 28 + padded
        for k in range(bits):
            if (mark >> k) & 1:
                length = int(options.ends[k + 1] - options.ends[k])
                copy_bytes(at, text + int(options.ends[k]), length)
                at += length
        st32(at, 0)
        st32(at + 4, size)
        used += size
        marks[position] = 0
        appended += 1
        position += 1
    return Appended(position, used, appended, DONE, 0)


@kernel
def clear_marks(marks: NDArray[np.int64], first: int, stop: int) -> int:
    """Clear the marks of packets, and return how many had one."""
    cleared = 0
    for position in range(first, stop):
        cleared += int(marks[position] != 0)
        marks[position] = 0
    return cleared


@kernel
def whole_blocks(data: NDArray[np.uint8], size: int) -> tuple[int, int]:
    """Return the length of the whole blocks at the beginning of ``data``, and their packets.

    Args:
        data: bytes that begin with a block, and room for three more words.
        size: number of bytes.
    """
    begin = address_of(data)
    at = 0
    packets = 0
    while at + 12 <= size:
        length = ld32(begin + at + 4)
        if (
            length < 12
            or length & 3
            or at + length > size
            or ld32(begin + at + length - 4) != length
        ):
            break
        packets += int(ld32(begin + at) == PACKET)
        at += length
    return at, packets
