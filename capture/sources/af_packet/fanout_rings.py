"""The rings of one interface that several threads share."""

from __future__ import annotations

import dataclasses
from collections import Counter
from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.device import DeviceState
from gscope.capture.sources.af_packet.live_stats import LiveStats

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.source import AfPacketSource
    from gscope.queries.plan.split.kernel_filter import Condition

_WORST_FIRST = (DeviceState.GONE, DeviceState.DOWN, DeviceState.UP)


class FanoutSource:
    """All rings of an interface; what each of them holds is for the thread that it belongs to.

    Args:
        name: of the interface.
        rings: open and paused, members of one fanout group.
    """

    def __init__(self, name: str, rings: Sequence[AfPacketSource]) -> None:
        self.name = name
        self.rings = tuple(rings)
        self.device = rings[0].device

    def narrow(self, condition: Condition) -> None:
        """Have the kernel leave out packets that cannot fulfil ``condition``, where it can tell; before ``start``."""
        for ring in self.rings:
            ring.narrow(condition)

    def start(self) -> None:
        """Let packets in."""
        for ring in self.rings:
            ring.start()

    @property
    def stats(self) -> LiveStats:
        """What all rings have counted; an interruption of the interface is one of each."""
        total = LiveStats()
        for each in dataclasses.fields(LiveStats):
            values = [getattr(ring.stats, each.name) for ring in self.rings]
            if each.name == "unread_links":
                total.unread_links = dict(sum((Counter(value) for value in values), Counter()))
            else:
                is_shared = each.name == "interruptions_total"
                setattr(total, each.name, max(values) if is_shared else sum(values))
        return total

    @property
    def state(self) -> DeviceState:
        """The worst that a ring tells of the device."""
        return min((ring.state for ring in self.rings), key=_WORST_FIRST.index)

    @property
    def ring_bytes(self) -> int:
        """Memory for packets that wait, of all rings together."""
        return sum(ring.ring_bytes for ring in self.rings)

    @property
    def occupancy(self) -> float:
        """Of the fullest ring: that is the one which loses packets first."""
        return max(ring.occupancy for ring in self.rings)

    @property
    def failure(self) -> str:
        """Why the interface is gone for good, "" if it is not."""
        return next((ring.failure for ring in self.rings if ring.failure), "")

    def close(self) -> None:
        """Release everything; harmless when called twice."""
        for ring in self.rings:
            ring.close()
