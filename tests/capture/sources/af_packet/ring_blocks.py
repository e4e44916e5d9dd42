"""Blocks of the kernel's ring built by hand, and what the index kernel makes of any bytes."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gscope.capture.sources.af_packet.block_layout import (
    BLOCK_HEADER_BYTES,
    HEADER_BYTES,
    HEADROOM_BYTES,
)
from gscope.capture.sources.af_packet.index import index_ring_blocks
from gscope.capture.sources.block import Block

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK = 1
LINKTYPE = 1
USER = 1
VLAN_VALID, TPID_VALID, TS_RAW_HARDWARE = 1 << 4, 1 << 6, 1 << 31


class RingPacket(NamedTuple):
    data: bytes
    wirelen: int = 0
    seconds: int = 1
    nanoseconds: int = 2
    status: int = USER
    tci: int = 0
    tpid: int = 0
    protocol: int = 0x0800
    interface: int = 7
    hardware_type: int = 1
    kind: int = 0
    address: bytes = bytes(6)


class Indexed(NamedTuple):
    time_ns: int
    wirelen: int
    linktype: int
    data: bytes


class Result(NamedTuple):
    packets: list[Indexed]
    skipped: int
    lost: int
    hardware: int


def packet_bytes(packet: RingPacket, *, is_last: bool) -> bytes:
    start = HEADER_BYTES + HEADROOM_BYTES
    size = start + len(packet.data)
    padded = size + -size % 8
    header = struct.pack(
        "<6I2H2IH10x",
        0 if is_last else padded,
        packet.seconds,
        packet.nanoseconds,
        len(packet.data),
        packet.wirelen or len(packet.data),
        packet.status,
        start,
        start,
        0,
        packet.tci,
        packet.tpid,
    )
    address = struct.pack("<H", 17) + struct.pack(">H", packet.protocol)
    address += struct.pack("<iHBB", packet.interface, packet.hardware_type, packet.kind, 6)
    address += packet.address.ljust(8, b"\0")
    return (header + address).ljust(start, b"\xee") + packet.data.ljust(padded - start, b"\0")


def block_bytes(packets: Sequence[RingPacket], count: int | None = None) -> bytes:
    """A block of the packets; ``count`` is what its header claims, if not the truth."""
    body = b"".join(
        packet_bytes(packet, is_last=number == len(packets) - 1)
        for number, packet in enumerate(packets)
    )
    claimed = len(packets) if count is None else count
    header = struct.pack("<5I", 1, 0, USER, claimed, BLOCK_HEADER_BYTES)
    return header.ljust(BLOCK_HEADER_BYTES, b"\0") + body


def index_bytes(
    data: bytes,
    *,
    snaplen: int = 1 << 20,
    cooked: bool = False,
    room: int = 64,
    around: int = 0xAA,
    blocks: int = 1,
) -> tuple[Result, bytes, bytes]:
    """Index ``data`` as ``blocks`` of one size, in the middle of bytes of the value ``around``.

    Returns:
        What was found, and the bytes before and behind the block as they are then.
    """
    margin = 4096
    memory = np.full(margin + len(data) + margin, around, np.uint8)
    memory[margin : margin + len(data)] = np.frombuffer(data, np.uint8)
    inside = memory[margin:]
    block = Block.allocate(0, room)
    found = index_ring_blocks(
        inside.ctypes.data,
        len(data) // blocks,
        blocks,
        snaplen,
        LINKTYPE,
        cooked,
        LOOPBACK,
        *block.index_addresses,
    )
    block.data = inside
    block.count = found[0]
    result = Result(packets_of(block), *found[1:4])
    assert found[4] == sum(packet.wirelen for packet in result.packets)
    for at in range(block.count):
        assert 0 <= block.offset[at] <= block.offset[at] + block.caplen[at] <= len(data)
    return result, memory[:margin].tobytes(), memory[margin + len(data) :].tobytes()


def packets_of(block: Block) -> list[Indexed]:
    return [
        Indexed(
            int(block.time_ns[at]),
            int(block.wirelen[at]),
            int(block.linktype[at]),
            block.data[int(block.offset[at]) :][: int(block.caplen[at])].tobytes(),
        )
        for at in range(block.count)
    ]
