"""Mutated packets.

Kernels and the independent dissector read the same fields, and capture files are walked safely.
"""

from __future__ import annotations

import gzip
import random
import struct
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING

import lz4.frame
import zstandard
from tests.capture.packet.kernel_reader import RawPacket, read_packets
from tests.capture.packet.lowpan_frames import all_forms
from tests.capture.packet.raw_captures import read_capture
from tests.capture.packet.test_rare_links import FOUND
from tests.capture.sources.files.capture_bytes import (
    enhanced,
    interface,
    pcap_header,
    read_bytes,
    section,
)
from tests.fuzz.sums import unaccounted
from tests.support.requirements import captures

from gscope.capture.packet.dissector.dissect import dissect
from gscope.errors import CaptureError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

BATCH = 64
COMPRESSED = 4
"""Mutants of compressed headers that come with each batch, beyond ``BATCH``."""
PACKETS_A_CAPTURE = 120
LINK_TYPES = (
    *(0, 1, 8, 9, 12, 14, 101, 105, 107, 108, 109, 113, 127, 129, 141, 169, 178, 192, 195, 204),
    *(226, 228, 229, 230, 239, 242, 247, 253, 258, 276, 283, 7, 10, 50, 51, 104, 119, 163, 999),
)
TYPES = (
    *(0x0800, 0x86DD, 0x0806, 0x8100, 0x88A8, 0x9100, 0x8847, 0x8848, 0x8863, 0x8864, 0x894F),
    *(0x88E5, 0x6558, 0x88BE, 0x22EB, 0xD28B, 0x3475, 0x88E7, 0x880B, 0x0003, 0x05DC, 0x0600),
)
PROTOCOLS = (0, 1, 2, 4, 6, 17, 41, 43, 44, 47, 50, 51, 58, 59, 60, 89, 97, 115, 132, 135, 255)
PORTS = (53, 1701, 2152, 4341, 4789, 4790, 6081, 8472, 67, 443)
LENGTHS = (0, 1, 4, 7, 8, 19, 20, 39, 40, 41, 255, 1500, 0x7FFF, 0x8000, 0xFFFE, 0xFFFF)


@dataclass
class Found:
    """A packet that two readers read differently."""

    packet: RawPacket
    what: str

    def __str__(self) -> str:
        packet = self.packet
        return (
            f"linktype {packet.linktype}, wirelen {packet.wirelen}, time {packet.time_ns}, "
            f"bytes {packet.data.hex()}: {self.what}"
        )


@cache
def seeds() -> tuple[RawPacket, ...]:
    """Packets of the shared captures, and some that were made for tunnels and tags."""
    pool = list(_made())
    for path in captures():
        # Spread over the capture: its first packets are alike.
        raw = read_capture(path)
        pool += raw[:: max(1, len(raw) // PACKETS_A_CAPTURE)]
    return tuple(replace(each, data=each.data[:400]) for each in pool)


def _made() -> list[RawPacket]:
    udp = struct.pack("!HHHH", 4789, 4789, 40, 0) + bytes.fromhex("0800000000000100")
    ipv4 = struct.pack("!BBHHHBBHII", 0x45, 0, 90, 7, 0, 64, 17, 0, 1, 2)
    ipv6 = struct.pack("!IHBB", 6 << 28, 40, 17, 64) + bytes(32)
    ethernet = bytes(12) + b"\x08\x00"
    frames = [
        ethernet + ipv4 + udp + ethernet + ipv4 + bytes(20),
        bytes(12) + b"\x86\xdd" + ipv6 + bytes(40),
        bytes(12) + b"\x81\x00\x00\x07\x88\xe5" + bytes(14) + ipv4 + bytes(20),
        bytes(12) + b"\x89\x4f" + bytes.fromhex("0fc6010100000100") + bytes(16) + ipv4 + bytes(20),
    ]
    made = [RawPacket(1, frame, len(frame), 10**18) for frame in frames]
    made += [RawPacket(link, data, len(data), 10**18) for _, link, data, _ in FOUND] * 3
    for linktype in (1 << 16, 1 << 16 | 1, 1 << 31 | 1):
        # Headers with a link type of 32 bits, where those of captures have 16.
        for header in (
            struct.pack("<BBHI", 0, 0, 8, linktype),
            struct.pack("<III", 12, 1, linktype),
        ):
            frame = header + bytes(6) + b"\x03\x00" + ipv4 + bytes(30)
            made += [RawPacket({8: 192, 12: 258}[len(header)], frame, len(frame), 10**18)] * 3
    for linktype in LINK_TYPES:
        made += [RawPacket(linktype, ipv4 + bytes(30), 50, 10**18)]
        made += [RawPacket(linktype, bytes(8) + ipv4 + bytes(30), 58, 10**18)]
    return made


@cache
def compressed_seeds() -> tuple[RawPacket, ...]:
    """Return frames with compressed IPv6 headers, which no capture of the pool has.

    They are a pool of their own so that a seed goes on making the same mutants of the other one.
    """
    frames = list(all_forms(random.Random(1)))[::3]
    return tuple(RawPacket(230, frame, len(frame), 10**18) for frame in frames)


def mutated(chance: random.Random, pool: Sequence[RawPacket] = ()) -> RawPacket:
    """Return a packet of ``pool``, or of the usual one, changed in a few places."""
    packet = chance.choice(pool or seeds())
    data = bytearray(packet.data)
    linktype, wirelen = packet.linktype, packet.wirelen
    for _ in range(chance.choice((1, 1, 1, 2, 3, 5))):
        chance.choice(_MUTATIONS)(data, chance)
    if chance.random() < 0.1:
        linktype = chance.choice(LINK_TYPES)
    if chance.random() < 0.2:
        wirelen = chance.choice((0, len(data), 60, 65_535, 2**31 - 1))
    if chance.random() < 0.2:
        del data[chance.randint(0, len(data)) :]
    return RawPacket(linktype, bytes(data[:600]), wirelen, packet.time_ns)


def _flip(data: bytearray, chance: random.Random) -> None:
    if data:
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _byte(data: bytearray, chance: random.Random) -> None:
    if data:
        value = chance.choice((0, 1, 0x45, 0x4F, 0x60, 0x7F, 0x80, 0xFF, chance.randrange(256)))
        # Mostly in headers.
        data[min(chance.randrange(len(data)), chance.randrange(120))] = value


def _word(data: bytearray, chance: random.Random) -> None:
    if len(data) >= 2:
        at = min(chance.randrange(len(data) - 1), chance.randrange(120))
        value = chance.choice((*TYPES, *LENGTHS, *PORTS))
        struct.pack_into("!H", data, at, value)


def _type(data: bytearray, chance: random.Random) -> None:
    if len(data) >= 40:
        at = chance.choice((12, 14, 16, 18, 20, 22, 36, 38))
        struct.pack_into("!H", data, at, chance.choice(TYPES))


def _protocol(data: bytearray, chance: random.Random) -> None:
    if len(data) >= 60:
        data[chance.choice((9, 20, 23, 27, 6))] = chance.choice(PROTOCOLS)


def _insert(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, min(len(data), 100))
    data[at:at] = chance.randbytes(chance.choice((1, 2, 4, 8, 20)))


def _remove(data: bytearray, chance: random.Random) -> None:
    at = chance.randint(0, min(len(data), 100))
    del data[at : at + chance.choice((1, 2, 4, 8, 14, 20))]


def _repeat(data: bytearray, chance: random.Random) -> None:
    begin = chance.randint(0, min(len(data), 60))
    piece = data[begin : begin + chance.choice((4, 8, 14, 20, 40))]
    data[begin:begin] = piece * chance.randint(1, 6)


def _splice(data: bytearray, chance: random.Random) -> None:
    other = chance.choice(seeds()).data
    at = chance.randint(0, min(len(data), 80))
    data[at:] = other[chance.randint(0, min(len(other), 60)) :]


_MUTATIONS: tuple[Callable[[bytearray, random.Random], None], ...] = (
    *(_flip, _byte, _byte, _word, _word, _type, _protocol),
    *(_insert, _remove, _repeat, _splice),
)


def check_packets(seed: int) -> Found | str:
    """Compare the readers over ``BATCH`` mutated packets, and count them.

    Return what disagrees, "" if nothing.
    """
    chance = random.Random(seed)
    packets = [mutated(chance) for _ in range(BATCH)]
    packets += [mutated(chance, compressed_seeds()) for _ in range(COMPRESSED)]
    by_kernel = read_packets(packets, gap=chance.randbytes(48))
    dissected = [
        dissect(each.data, linktype=each.linktype, wirelen=each.wirelen, time_ns=each.time_ns)
        for each in packets
    ]
    for packet, kernel, plain in zip(packets, by_kernel, dissected, strict=True):
        if kernel != plain:
            wrong = {
                name: (value, plain[0].get(name))
                for name, value in kernel[0].items()
                if value != plain[0].get(name)
            }
            return Found(packet, f"kernel {kernel[1]}, dissector {plain[1]}, fields {wrong}")
    return unaccounted(packets, dissected, chance)


def check_file(seed: int) -> str:
    """Read a mutated capture file.

    Return a sentence on what is wrong with how it was read, "" if nothing is.
    """
    chance = random.Random(seed)
    packets = [mutated(chance) for _ in range(chance.randint(1, 30))]
    data = bytearray(_pcap(packets) if chance.random() < 0.5 else _pcapng(packets))
    for _ in range(chance.choice((0, 1, 2, 5))):
        chance.choice((_flip, _word, _insert, _remove, _repeat))(data, chance)
    content = bytes(data)
    pack: Callable[[bytes], bytes] = chance.choice(
        (bytes, bytes, gzip.compress, zstandard.compress, lz4.frame.compress)
    )
    content = pack(content)
    if pack is not bytes and chance.random() < 0.5:
        broken = bytearray(content)
        chance.choice((_flip, _byte, _remove))(broken, chance)
        content = bytes(broken)
    try:
        small, _ = read_bytes(content, 4096)
        large, _ = read_bytes(content)
    except CaptureError:
        return ""
    if small != large:
        return f"blocks of 4096 bytes give {len(small)} packets, large ones {len(large)}"
    if sum(len(each.data) for each in small) > len(packets) * 70_000 + 1_000_000:
        return "more bytes than the file can hold"
    return ""


def _pcap(packets: list[RawPacket]) -> bytes:
    records = (
        struct.pack("<IIII", 1, 2, len(each.data), each.wirelen) + each.data for each in packets
    )
    return pcap_header(linktype=packets[0].linktype) + b"".join(records)


def _pcapng(packets: list[RawPacket]) -> bytes:
    blocks = (interface(each.linktype) for each in packets)
    held = (enhanced(each.data, 5, number) for number, each in enumerate(packets))
    return section() + b"".join(blocks) + b"".join(held)
