"""Captures built by hand, and the packets a source finds in them as plain tuples."""

from __future__ import annotations

import os
import struct
from typing import TYPE_CHECKING, NamedTuple

from gscope.capture.sources.block import PADDING_BYTES
from gscope.capture.sources.files.file import DEFAULT_BLOCK_BYTES, FileSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gscope.capture.sources.base import CaptureSource
    from gscope.capture.sources.block import Block


MICRO, NANO, MODIFIED = 0xA1B2C3D4, 0xA1B23C4D, 0xA1B2CD34


class Packet(NamedTuple):
    time_ns: int
    wirelen: int
    linktype: int
    data: bytes


def pcap_header(
    order: str = "<",
    magic: int = MICRO,
    linktype: int = 1,
    snaplen: int = 65535,
    version: tuple[int, int] = (2, 4),
) -> bytes:
    return struct.pack(order + "I2HiIII", magic, *version, 0, 0, snaplen, linktype)


def pcap_record(
    data: bytes,
    seconds: int = 1,
    fraction: int = 2,
    order: str = "<",
    wirelen: int | None = None,
    extra: bytes = b"",
) -> bytes:
    wire = len(data) if wirelen is None else wirelen
    return struct.pack(order + "4I", seconds, fraction, len(data), wire) + extra + data


def block_of(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def option(code: int, value: bytes, order: str = "<") -> bytes:
    return struct.pack(order + "2H", code, len(value)) + value + bytes(-len(value) % 4)


def section(order: str = "<", options: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    body = struct.pack(order + "I2Hq", 0x1A2B3C4D, *version, -1) + options
    return block_of(0x0A0D0D0A, body, order)


def interface(linktype: int = 1, snaplen: int = 0, options: bytes = b"", order: str = "<") -> bytes:
    return block_of(1, struct.pack(order + "HHI", linktype, 0, snaplen) + options, order)


def enhanced(
    data: bytes,
    count: int = 0,
    number: int = 0,
    order: str = "<",
    wirelen: int | None = None,
    options: bytes = b"",
) -> bytes:
    wire = len(data) if wirelen is None else wirelen
    head = struct.pack(order + "5I", number, count >> 32, count & 0xFFFFFFFF, len(data), wire)
    return block_of(6, head + data + bytes(-len(data) % 4) + options, order)


def obsolete(data: bytes, count: int = 0, number: int = 0, order: str = "<") -> bytes:
    head = struct.pack(
        order + "2H4I", number, 0, count >> 32, count & 0xFFFFFFFF, len(data), len(data)
    )
    return block_of(2, head + data, order)


def simple(data: bytes, wirelen: int | None = None, order: str = "<") -> bytes:
    return block_of(
        3, struct.pack(order + "I", len(data) if wirelen is None else wirelen) + data, order
    )


def packets_in(block: Block) -> Iterator[Packet]:
    """The packets of a block; checks what ``Block`` promises on the way."""
    assert block.count > 0
    for i in range(block.count):
        begin, caplen = int(block.offset[i]), int(block.caplen[i])
        assert 0 <= begin <= begin + caplen <= block.data.size - PADDING_BYTES
        data = block.data[begin : begin + caplen].tobytes()
        yield Packet(int(block.time_ns[i]), int(block.wirelen[i]), int(block.linktype[i]), data)


def drain(source: CaptureSource) -> list[Packet]:
    """All packets of an open source, which is closed."""
    packets: list[Packet] = []
    position = 0
    while (block := source.next_block()) is not None:
        packets += packets_in(block)
        assert position <= block.position
        position = block.position
        assert source.stats.received_packets == len(packets)
    source.close()
    return packets


def read_bytes(
    data: bytes, block_bytes: int = DEFAULT_BLOCK_BYTES
) -> tuple[list[Packet], list[str]]:
    """Packets and damage of a capture file with this content, called ``f``."""
    descriptor = os.memfd_create("capture")
    try:
        with open(descriptor, "wb", closefd=False) as file:
            file.write(data)
        source = FileSource(f"/proc/self/fd/{descriptor}", name="f", block_bytes=block_bytes)
        source.open()
        return drain(source), source.damage
    finally:
        os.close(descriptor)


def read_file(path: Path, block_bytes: int = DEFAULT_BLOCK_BYTES) -> list[Packet]:
    source = FileSource(str(path), block_bytes=block_bytes)
    source.open()
    return drain(source)


def pcap_of(payloads: Iterable[bytes]) -> bytes:
    """A microsecond pcap, one packet a second."""
    records = [pcap_record(data, seconds, 7) for seconds, data in enumerate(payloads)]
    return pcap_header() + b"".join(records)


def expected_of(payloads: Iterable[bytes]) -> list[Packet]:
    """What ``pcap_of`` the same must be read as."""
    return [
        Packet(seconds * 10**9 + 7000, len(data), 1, data) for seconds, data in enumerate(payloads)
    ]
