"""Files of nfcapd built by hand, in layout 2; they share no code with what reads them."""

from __future__ import annotations

import bz2
import struct
from ipaddress import ip_address
from typing import TYPE_CHECKING

import lz4.block
import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

CREATED_S = 1_700_000_000
PLAIN, LZO, BZ2, LZ4, ZSTD = range(5)
PACK: dict[int, Callable[[bytes], bytes]] = {
    PLAIN: bytes,
    BZ2: bz2.compress,
    LZ4: lambda data: lz4.block.compress(data, store_size=False),
    ZSTD: zstandard.compress,
}


def flow_file(
    blocks: Sequence[bytes],
    *,
    compression: int = PLAIN,
    is_complete: bool = True,
    failures: int = 0,
    created_s: int = CREATED_S,
) -> bytes:
    """A file with these contents of blocks, and an appendix if it is complete."""
    pack = PACK[compression]
    body = b"".join(block(pack(content)) for content in blocks)
    totals = struct.pack("<HH", 0x8002, 148) + bytes(136) + struct.pack("<Q", failures)
    appendix = block(pack(struct.pack("<HH", 0x8001, 9) + b"none\0" + totals), records=2)
    place = (1, 40 + len(body), len(blocks)) if is_complete else (0, 0, 0)
    head = header(created_s, compression, *place)
    return head + body + (appendix if is_complete else b"")


def header(
    created_s: int, compression: int, appendix_blocks: int, appendix: int, blocks: int
) -> bytes:
    return struct.pack(
        "<HHIqBBHIqII",
        *(0xA50C, 2, 0x01070100, created_s, compression, 0, appendix_blocks, 0),
        *(appendix, 0, blocks),
    )


def block(content: bytes, kind: int = 3, flags: int = 0, records: int = 1) -> bytes:
    return struct.pack("<IIHH", records, len(content), kind, flags) + content


def record(*elements: bytes, exporter: int = 0, flags: int = 0, count: int | None = None) -> bytes:
    body = b"".join(elements)
    count = len(elements) if count is None else count
    return struct.pack("<HHHBBHBB", 11, 12 + len(body), count, 0, 0, exporter, flags, 9) + body


def element(kind: int, data: bytes) -> bytes:
    return struct.pack("<HH", kind, 4 + len(data)) + data


def generic(
    received_ms: int = 1_700_000_010_000,
    first_ms: int = 1_700_000_001_001,
    last_ms: int = 1_700_000_002_002,
    counts: tuple[int, int] = (3, 300),
    ports: tuple[int, int] = (1234, 80),
    protocol: int = 6,
) -> bytes:
    times = (first_ms, last_ms, received_ms)
    return element(1, struct.pack("<5Q2H4B", *times, *counts, *ports, protocol, 0x1B, 1, 0x28))


def addresses(source: str, destination: str) -> bytes:
    pair = [address(each) for each in (source, destination)]
    return element(2 if len(pair[0]) == 4 else 3, b"".join(pair))


def address(text: str) -> bytes:
    """An address as files have it: words of the machine, 4 bytes or twice 8."""
    packed = ip_address(text).packed
    if len(packed) == 4:
        return packed[::-1]
    return packed[7::-1] + packed[:7:-1]


def exporter_info(number: int, ip: str, domain: int) -> bytes:
    packed = address(ip)
    family = 2 if len(packed) == 4 else 10
    words = bytes(8) + packed + bytes(4) if family == 2 else packed
    return struct.pack("<HHI16sHHI", 7, 32, 9, words, family, number, domain)


def sampler(number: int, packets: int, space: int, identity: int = -1) -> bytes:
    return struct.pack("<HHHHqII", 15, 24, number, 1, identity, packets, space)


def old_sampler(number: int, interval: int) -> bytes:
    return struct.pack("<HHiIHH", 9, 16, 1, interval, 0, number)
