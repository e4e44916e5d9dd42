"""The compiled part of a live source: ownership and index of blocks of the kernel's ring.

``block_layout.py`` says how a block is laid out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.kernels.jit import kernel_part, native_kernel
from gscope.capture.kernels.language.intrinsics import (
    bswap16,
    ld8,
    ld16,
    ld32,
    ld32_acquire,
    ld64,
    prefetch,
    st16,
    st32,
    st32_release,
    st64,
)
from gscope.capture.kernels.language.kinds import Kind, RecordKind
from gscope.capture.sources.af_packet.block_layout import (
    BLOCK_HEADER_BYTES,
    COOKED_BYTES,
    HEADER_BYTES,
    HEADROOM_BYTES,
    PACKET_HEADER_BYTES,
    TAG_BYTES,
)
from gscope.capture.sources.block import INDEX

if TYPE_CHECKING:
    from gscope.capture.sources.block import IndexAddresses

# Offsets of the words of a block's header.
_STATUS, _PACKETS, _FIRST = 8, 12, 16
_USER = 1

_VLAN_VALID, _TPID_VALID = 1 << 4, 1 << 6
_TS_RAW_HARDWARE = 1 << 31
_ETHERTYPE_VLAN = 0x8100
_PACKET_OUTGOING = 4

_ADDRESS_PAIR_BYTES = 12
"""Offset of a tag in an Ethernet frame; in a cooked header it is two more. The protocol follows."""

_MAX_INT32 = 2**31 - 1

PREFETCH_BYTES = 1024


@native_kernel(Kind.INT, result=Kind.BOOL)
def is_untouched(block: int) -> bool:
    """Return whether the kernel owns the block at an address and has put no packet into it."""
    return ld32_acquire(block + _STATUS) & _USER == 0 and ld32_acquire(block + _PACKETS) == 0


@native_kernel(*(Kind.INT,) * 3, result=Kind.INT)
def ready_blocks(block: int, block_bytes: int, most: int) -> int:
    """Return how many of the ``most`` blocks from an address on the kernel has handed over.

    Those behind the first one that it has not do not count.
    """
    for number in range(most):
        if ld32_acquire(block + number * block_bytes + _STATUS) & _USER == 0:
            return number
    return most


@native_kernel(*(Kind.INT,) * 3, result=Kind.NOTHING)
def give_back(block: int, block_bytes: int, blocks: int) -> None:
    """Return the ``blocks`` from an address on to the kernel; they must not be read after that.

    The count of packets is reset, too: after a freeze the kernel opens a block only with the next
    packet, and until then the block would seem to hold packets.
    """
    for number in range(blocks):
        st32(block + number * block_bytes + _PACKETS, 0)
        st32_release(block + number * block_bytes + _STATUS, 0)


@native_kernel(*(Kind.INT,) * 7, INDEX, result=RecordKind(None, (Kind.INT,) * 5))
def index_ring_blocks(
    base: int,
    block_bytes: int,
    blocks: int,
    snaplen: int,
    link: int,
    cooked: bool,
    loopback: int,
    arrays: IndexAddresses,
) -> tuple[int, int, int, int, int]:
    """Index the packets of consecutive blocks from an address on, and restore removed headers.

    A VLAN tag that the kernel moved to the packet's metadata returns to its place on the wire, and
    the lengths grow by it. A cooked packet begins with its network header and gets a
    LINKTYPE_LINUX_SLL header in front. Packets that leave by the loopback interface are skipped,
    because they are seen again when they arrive. Nothing outside a block is read or written for
    it, whatever it contains: a packet that does not fit ends the block.

    Args:
        base: address of the first block.
        block_bytes: number of bytes of each block.
        blocks: number of blocks.
        snaplen: longest captured length, in bytes.
        link: link type of all packets.
        cooked: whether packets come without a link header.
        loopback: number of the loopback interface; 0 for none.
        arrays: index arrays to fill; offsets are from ``base``.

    Returns:
        Packets indexed, packets skipped, packets that are damaged or found no room, packets whose
        timestamp is the network card's, and bytes on the wire of the packets indexed.
    """
    tag_at = _ADDRESS_PAIR_BYTES + 2 if cooked else _ADDRESS_PAIR_BYTES
    count = 0
    skipped = 0
    lost = 0
    hardware = 0
    wire_bytes = 0
    if block_bytes < BLOCK_HEADER_BYTES:
        return 0, 0, 0, 0, 0
    for number in range(blocks):
        begin = number * block_bytes
        left = ld32(base + begin + _PACKETS)
        position = ld32(base + begin + _FIRST)
        while left > 0:
            is_inside = BLOCK_HEADER_BYTES <= position <= block_bytes - HEADER_BYTES
            if not is_inside or count == arrays.room:
                break
            header = base + begin + position
            prefetch(header + PREFETCH_BYTES)
            following = ld32(header)
            captured = ld32(header + 12)
            status = ld32(header + 20)
            start = ld16(header + 24)
            if start < HEADER_BYTES + HEADROOM_BYTES or position + start + captured > block_bytes:
                break
            left -= 1
            if (
                loopback
                and ld8(header + PACKET_HEADER_BYTES + 10) == _PACKET_OUTGOING
                and ld32(header + PACKET_HEADER_BYTES + 4) == loopback
            ):
                skipped += 1
            else:
                wire = ld32(header + 16)
                packet = begin + position + start
                if cooked:
                    packet -= COOKED_BYTES
                    captured += COOKED_BYTES
                    wire += COOKED_BYTES
                    _write_cooked_header(base + packet, header + PACKET_HEADER_BYTES)
                if status & _VLAN_VALID and captured >= tag_at:
                    packet -= TAG_BYTES
                    captured += TAG_BYTES
                    wire += TAG_BYTES
                    tpid = ld16(header + 36) if status & _TPID_VALID else _ETHERTYPE_VLAN
                    _insert_tag(base + packet, tag_at, tpid, ld32(header + 32))
                hardware += int(status & _TS_RAW_HARDWARE != 0)
                time_ns = ld32(header + 4) * 1_000_000_000 + ld32(header + 8)
                st64(arrays.time_ns + 8 * count, time_ns)
                st64(arrays.offset + 8 * count, packet)
                st32(arrays.caplen + 4 * count, min(captured, snaplen))
                wire = min(wire, _MAX_INT32)
                wire_bytes += wire
                st32(arrays.wirelen + 4 * count, wire)
                st32(arrays.linktype + 4 * count, link)
                count += 1
            if following == 0:
                break
            position += following
        lost += left
    return count, skipped, lost, hardware, wire_bytes


@kernel_part
def _write_cooked_header(target: int, address: int) -> None:
    """Write the LINKTYPE_LINUX_SLL header for the ``struct sockaddr_ll`` at ``address``."""
    st16(target, bswap16(ld8(address + 10)))
    st16(target + 2, bswap16(ld16(address + 8)))
    st16(target + 4, bswap16(ld8(address + 11)))
    st64(target + 6, ld64(address + 12))
    # The protocol is in network byte order in both.
    st16(target + 14, ld16(address + 2))


@kernel_part
def _insert_tag(target: int, tag_at: int, tpid: int, tci: int) -> None:
    """Move ``tag_at`` bytes down into the gap at ``target``, and write the tag after them."""
    # Forward, so that each word is read before it is overwritten: 12 bytes, or 14 of a cooked
    # header.
    for at in range(0, tag_at - 2, 4):
        st32(target + at, ld32(target + TAG_BYTES + at))
    if tag_at & 2:
        st16(target + tag_at - 2, ld16(target + TAG_BYTES + tag_at - 2))
    st16(target + tag_at, bswap16(tpid))
    st16(target + tag_at + 2, bswap16(tci))
