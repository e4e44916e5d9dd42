"""Plain loops over what tshark shows: queries that slide.

A packet counts in every window it is in.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from tests.library.oracles_ip import address, size, with_ip
from tests.library.oracles_tcp import attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from tests.library.tshark import Packet

Values = tuple[object, ...]
_Groups = dict[Values, list["Packet"]]


def windows(
    packets: Sequence[Packet], range_s: int, slide_s: int, key: Callable[[Packet], Values]
) -> Iterator[tuple[int, _Groups]]:
    """Yield the number of each window that has packets, and its packets by ``key``.

    A window ends at its number times ``slide_s``, and has the packets of the ``range_s`` before.
    """
    slid: dict[int, _Groups] = defaultdict(lambda: defaultdict(list))
    for packet in packets:
        own = key(packet)
        end = packet.time // slide_s + 1
        while end * slide_s - range_s <= packet.time:
            slid[end][own].append(packet)
            end += 1
    yield from slid.items()


def load_last_minute(packets: Sequence[Packet]) -> Iterator[Values]:
    for second, groups in windows(packets, 60, 1, lambda p: ()):
        for group in groups.values():
            yield (
                *(second, "trace", len(group), size(group) * 8 / 60),
                size(group) / len(group),
            )


def recent_host_scan(packets: Sequence[Packet]) -> Iterator[Values]:
    tried = windows(attempts(packets), 300, 30, lambda p: (p.source, p.ports[1]))
    for half_minute, groups in tried:
        for key, group in groups.items():
            hosts = {p.target for p in group}
            if len(hosts) >= 20:
                yield half_minute, *key, len(hosts), len(group)


def talkers_last_hour(packets: Sequence[Packet]) -> Iterator[Values]:
    for minute, groups in windows(with_ip(packets), 3600, 60, lambda p: (p.source,)):
        rows = [(str(*key), len(group), size(group)) for key, group in groups.items()]
        for row in sorted(rows, key=lambda row: (-row[2], address(row[0])))[:20]:
            yield minute, *row
