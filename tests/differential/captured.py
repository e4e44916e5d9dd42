"""Traffic out of captures.

Some dozen packets in a row, as far as the plain decoder here can read them.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any

from tests.differential.traffic import PORTS, SECOND_NS, Known, Traffic, on_interfaces
from tests.reference.reference import decode_ethernet, read_raw

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from random import Random

Row = dict[str, Any]
LONGEST_GAP_NS = 60 * SECOND_NS
"""Longer silences are shortened: groups that live across epochs give a row for each of them."""

_ETHERTYPES = {0x0800, 0x86DD, 0x0806}
_PROTOCOLS = {1, 6, 17, 58}
_LEAST = 20
"""Packets that a capture must have."""

Frame = tuple[int, int, bytes]


def usable_captures(folder: Path) -> list[Path]:
    """Return the captures of Ethernet in a folder that have enough packets of plain protocols."""
    return [path for path in sorted(folder.iterdir()) if len(_frames(path)) >= _LEAST]


def captured_traffic(random: Random, captures: Sequence[Path]) -> Traffic:
    """Return packets of one capture.

    They are on one to three interfaces, now and then with a snap length.
    """
    frames = _frames(random.choice(captures))
    count = random.choice((20, 40, 60, 90))
    first = random.randrange(max(1, len(frames) - count + 1))
    chosen = _closer(frames[first : first + count])
    return on_interfaces(random, chosen)


def known_values(packets: Mapping[str, Iterable[Row]]) -> Known:
    """Return the addresses and ports that are in packets, the frequent ones."""
    addresses: Counter[int] = Counter()
    ports: Counter[int] = Counter(PORTS[:1])
    for rows in packets.values():
        for row in rows:
            addresses.update(row[name] for name in ("srcIP", "destIP") if name in row)
            ports.update(row[name] for name in ("srcPort", "destPort") if row.get(name))
    found = tuple(address for address, _ in addresses.most_common(6))
    return Known(found or Known().addresses, tuple(port for port, _ in ports.most_common(5)))


@cache
def _frames(path: Path) -> list[Frame]:
    """Return the frames of a capture that the decoder of the reference reads.

    Of other links none.
    """
    try:
        frames = read_raw(path)
    except Exception:
        # scapy raises errors of many kinds for what is not a capture of Ethernet
        return []
    return [frame for frame in frames[:5000] if _is_plain(frame)]


def _is_plain(frame: Frame) -> bool:
    """Return whether the reference decodes a frame: headers whole, and none in another."""
    _, wirelen, data = frame
    try:
        row = decode_ethernet(data)
    except Exception:
        # cut or mangled in any way
        return False
    if row["ethertype"] not in _ETHERTYPES or len(data) > wirelen:
        return False
    if row["ethertype"] == 0x0806:
        return len(data) >= 42
    at = 14 + 4 * len({"vlan", "inner_vlan"} & set(row))
    version, length = data[at] >> 4, row["total_length"]
    if version != row["ipversion"] or row["protocol"] not in _PROTOCOLS:
        return False
    if not 20 <= row["header_length"] < length <= wirelen - at:
        return False
    behind = at + row["header_length"]
    is_direct = version == 4 or data[at + 6] == row["protocol"]
    return is_direct and (bool(row["offset"]) or _is_whole(row["protocol"], data[behind:]))


def _is_whole(protocol: int, data: bytes) -> bool:
    """Return whether the header of a transport protocol is there."""
    if protocol != 6:
        return len(data) >= 8
    return len(data) >= 20 and 20 <= (data[12] >> 4) * 4 <= len(data)


def _closer(frames: Sequence[Frame]) -> list[Frame]:
    """Return frames without their longest silences."""
    found: list[Frame] = []
    shift = 0
    for number, (time_ns, wirelen, data) in enumerate(frames):
        gap = time_ns - frames[number - 1][0] if number else 0
        shift += max(0, gap - LONGEST_GAP_NS) + min(0, gap + LONGEST_GAP_NS)
        found.append((time_ns - shift, wirelen, data))
    return found
