"""Small compressed captures that unpack to what no process should hold."""

from __future__ import annotations

import gzip
import struct
from typing import TYPE_CHECKING

import lz4.frame
import zstandard

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path
    from typing import Any

MIB = 1 << 20
HEADER = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 2**31 - 1, 1)
# Total length 0, as segmentation offload leaves it: the payload goes on to the packet's end.
IPV4 = struct.pack("!BBHHHBBHII", 0x45, 0, 0, 7, 0, 64, 17, 0, 1, 2)
PACKET = bytes(12) + b"\x08\x00" + IPV4 + struct.pack("!HHHH", 1, 2, 0, 0)


def record(size: int, second: int = 1) -> bytes:
    """A record of a pcap file; all but its headers is zeros."""
    return struct.pack("<IIII", second, 0, size, size) + PACKET + bytes(size - len(PACKET))


def one_huge_record() -> Iterable[bytes]:
    """A record of 256 MB."""
    yield HEADER + struct.pack("<IIII", 1, 0, 256 * MIB, 256 * MIB) + PACKET
    yield from [bytes(MIB)] * 255
    yield bytes(MIB - len(PACKET)) + record(60)


def large_records() -> Iterable[bytes]:
    """Records as large as they may be, 512 MB of them."""
    return [HEADER, *[record(262_144)] * 2048]


def distinct_records() -> Iterable[bytes]:
    """Records as large as they may be, 64 MB of them, each with a payload of its own."""
    yield HEADER
    for number in range(256):
        yield record(262_144)[:-4] + number.to_bytes(4)


def tiny_records() -> Iterable[bytes]:
    """Packets of one moment, without end: 6 million, of which each is a row."""
    return [HEADER, *[record(60) * 10_000] * 600]


def _section() -> bytes:
    return struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)


def _interface() -> bytes:
    return struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)


def _enhanced(options: bytes) -> bytes:
    data = PACKET + bytes(2)
    data += bytes(-len(data) % 4)
    length = 32 + len(data) + len(options)
    head = struct.pack("<7I", 6, length, 0, 0, 0, len(data), len(data))
    return head + data + options + struct.pack("<I", length)


def huge_options() -> Iterable[bytes]:
    """A pcapng packet with 15 MB of options, many times."""
    options = (struct.pack("<HH", 1, 65_532) + bytes(65_532)) * 230
    return [_section(), _interface(), *[_enhanced(options)] * 20]


def huge_block() -> Iterable[bytes]:
    """A pcapng block of an unknown kind with 200 MB."""
    length = 200 * MIB
    yield _section() + _interface() + _enhanced(b"") + struct.pack("<II", 0xBAD, length)
    yield from [bytes(MIB)] * 199
    yield bytes(MIB - 12) + struct.pack("<I", length) + _enhanced(b"")


def many_interfaces() -> Iterable[bytes]:
    """A pcapng section with a million interfaces."""
    return [_section(), *[_interface() * 10_000] * 100, _enhanced(b"")]


BOMBS: dict[str, Callable[[], Iterable[bytes]]] = {
    made.__name__: made
    for made in (
        one_huge_record,
        large_records,
        distinct_records,
        tiny_records,
        huge_options,
        huge_block,
        many_interfaces,
    )
}


def write_bomb(name: str, kind: str, folder: Path) -> Path:
    """Write the bomb ``name`` with the compression ``kind``."""
    path = folder / f"{name}.{kind}"
    compressed: Any
    if kind == "gzip":
        compressed = gzip.GzipFile(path, "wb", compresslevel=6)
    elif kind == "zstd":
        compressed = zstandard.open(path, "wb")
    else:
        compressed = lz4.frame.open(path, "wb")
    with compressed as file:
        for piece in BOMBS[name]():
            file.write(piece)
    return path
