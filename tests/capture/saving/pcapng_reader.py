"""A plain reader of pcapng files, which shares no code with gscope's reader and writer."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class SavedPacket:
    """A packet block as it stands in the file."""

    interface: str
    link: int
    time_ns: int
    wirelen: int
    data: bytes
    comments: tuple[str, ...]


def read_pcapng(contents: bytes) -> list[SavedPacket]:
    """Every packet of a little-endian file; fails at anything that is not a whole, known block."""
    packets: list[SavedPacket] = []
    interfaces: list[tuple[str, int, int]] = []
    for kind, body in _blocks(contents):
        if kind == 0x0A0D0D0A:
            assert body[:4] == bytes.fromhex("4d3c2b1a")
            interfaces = []
        elif kind == 1:
            (link,) = struct.unpack_from("<H", body)
            options = dict(_options(body[8:]))
            assert options[9] == b"\x09"
            (offset_s,) = struct.unpack("<q", options.get(14, bytes(8)))
            interfaces.append((options[2].decode(), link, offset_s))
        else:
            assert kind == 6
            number, high, low, caplen, wirelen = struct.unpack_from("<5I", body)
            name, link, offset_s = interfaces[number]
            end = 20 + caplen + -caplen % 4
            assert not any(body[20 + caplen : end])
            texts = tuple(value.decode() for code, value in _options(body[end:]) if code == 1)
            time_ns = (high << 32 | low) + offset_s * 10**9
            packets.append(SavedPacket(name, link, time_ns, wirelen, body[20 : 20 + caplen], texts))
    return packets


def _blocks(contents: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    while at < len(contents):
        kind, length = struct.unpack_from("<2I", contents, at)
        assert length % 4 == 0
        assert length >= 12
        assert at + length <= len(contents)
        assert struct.unpack_from("<I", contents, at + length - 4) == (length,)
        yield kind, contents[at + 8 : at + length - 4]
        at += length


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    while data:
        code, length = struct.unpack_from("<2H", data)
        if code == 0:
            assert data == bytes(4)
            return
        yield code, data[4 : 4 + length]
        data = data[4 + length + -length % 4 :]
