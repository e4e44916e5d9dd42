"""One capture of many: every shared capture and every made trace, one after the other.

Times are moved by whole hours, so that each packet keeps its place in its minute and its hour, and
an hour without packets lies between two parts. No query of the library connects packets across
such a gap, so the rows of each part can be counted by their time. Only the threshold of a sample is
carried on, by the query and by its oracle.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.capture.packet.kernel_reader import RawPacket
from tests.capture.packet.raw_captures import read_capture
from tests.capture.sources.files.capture_bytes import block_of, option
from tests.library.hard_traffic import made
from tests.library.things import things
from tests.library.traffic import BASE
from tests.support.requirements import captures

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from tests.library.traffic import Sent

HOUR_NS = 3600 * 10**9
LONGEST_GAP_NS = 2 * HOUR_NS
"""A longer gap within a part, forwards or backwards, is shortened by whole hours."""

ETHERNET = 1


@dataclass(frozen=True, slots=True)
class Part:
    """A part of the trace.

    Attributes:
        name: a shared capture, or a made trace.
        first_hour: the hour since 1970 in which it begins.
        is_made: whether the tests generate it.
    """

    name: str
    first_hour: int
    is_made: bool


def write_trace(path: Path) -> list[Part]:
    """Write the trace to ``path`` as pcapng and return its parts in the order of time."""
    parts: list[Part] = []
    packets: list[RawPacket] = []
    start = BASE * 10**9
    for name, part, is_made in _sources():
        if part:
            moved = _moved(part, start)
            packets += moved
            parts.append(Part(name, start // HOUR_NS, is_made))
            latest = max(packet.time_ns for packet in moved)
            start = (latest // HOUR_NS + 2) * HOUR_NS
    path.write_bytes(_pcapng(packets))
    return parts


def _sources() -> Iterable[tuple[str, list[RawPacket], bool]]:
    for path in captures():
        yield path.name, read_capture(path), False
    for name, thing in things().items():
        yield f"what {name} finds", _raw(thing.sent), True
        yield f"what {name} does not find", _raw(thing.absent), True
    for name, sent in made().items():
        yield name, _raw(sent), True


def _raw(sent: Iterable[Sent]) -> list[RawPacket]:
    packets = []
    for at, frame in sorted(sent, key=lambda pair: pair[0]):
        data = bytes(frame)
        time_ns = BASE * 10**9 + round(at * 10**6) * 1000
        packets.append(RawPacket(ETHERNET, data, len(data), time_ns))
    return packets


def _moved(packets: list[RawPacket], start: int) -> list[RawPacket]:
    """Return the packets, the first one in the hour that begins at ``start``."""
    shift = start - packets[0].time_ns // HOUR_NS * HOUR_NS
    latest = start
    moved = []
    for packet in packets:
        gap = packet.time_ns + shift - latest
        if gap > LONGEST_GAP_NS:
            shift -= (gap // HOUR_NS - 1) * HOUR_NS
        elif packet.time_ns + shift < start:
            shift += -((packet.time_ns + shift - latest) // HOUR_NS) * HOUR_NS
        at = packet.time_ns + shift
        moved.append(RawPacket(packet.linktype, packet.data, packet.wirelen, at))
        latest = max(latest, at)
    return moved


def _pcapng(packets: list[RawPacket]) -> bytes:
    """Write a section with an interface for each link type, in nanoseconds."""
    linktypes = sorted({packet.linktype for packet in packets})
    section = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
    blocks = [block_of(0x0A0D0D0A, section)]
    for linktype in linktypes:
        nanoseconds = option(9, b"\x09") + option(0, b"")
        blocks.append(block_of(1, struct.pack("<HHI", linktype, 0, 0) + nanoseconds))
    for packet in packets:
        high, low = divmod(packet.time_ns, 1 << 32)
        number = linktypes.index(packet.linktype)
        heading = struct.pack("<5I", number, high, low, len(packet.data), packet.wirelen)
        blocks.append(block_of(6, heading + packet.data))
    return b"".join(blocks)
