"""Counters of live sources, and their sum over the rings of one interface."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from gscope.capture.sources.base import SourceStats
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence


@dataclass(slots=True)
class LiveStats(SourceStats):
    """Counters of a packet socket and its ring.

    ``received_packets`` passed the socket's filters; the kernel does not count what these reject.
    ``filtered_packets`` are the outgoing copies of loopback packets. ``dropped_packets`` found no
    room in the ring.

    Attributes:
        kernel_packets: packets that the kernel counted: received ones and those still in the ring.
        hardware_time_packets: packets with a timestamp of the network card.
    """

    kernel_packets: int = 0
    hardware_time_packets: int = 0


def total_of(rings: Sequence[LiveStats]) -> LiveStats:
    """Return the counters of several rings of one device; all rings see the same interruptions."""
    return LiveStats(
        received_packets=sum(each.received_packets for each in rings),
        received_bytes=sum(each.received_bytes for each in rings),
        dropped_packets=sum(each.dropped_packets for each in rings),
        filtered_packets=sum(each.filtered_packets for each in rings),
        frozen_total=sum(each.frozen_total for each in rings),
        interruptions_total=max(each.interruptions_total for each in rings),
        unread_links=dict(sum((Counter(each.unread_links) for each in rings), Counter())),
        kernel_packets=sum(each.kernel_packets for each in rings),
        hardware_time_packets=sum(each.hardware_time_packets for each in rings),
    )
