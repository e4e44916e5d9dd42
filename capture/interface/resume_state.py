"""What the earlier daemons of a live run reported of an interface, for a daemon that resumes it."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.summary import UNDECODED
from gscope.capture.lfta.punctuation import NO_BOUND
from gscope.queries.streams.losses import NO_LOSSES
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.queries.streams.losses import Losses

LATE = "late_tuples_total"
CLOCK_OFFSET = "clock_offset_ns"

UNKNOWN_REASON = "unknown"
"""Reason of packets that were counted as not decoded after the last report by reason was
written."""

_GAUGES = ("live_groups", CLOCK_OFFSET)
"""Counters that state a current value: those of two daemons are not added."""


@dataclass(frozen=True, slots=True)
class ResumeState:
    """What the earlier daemons of a run reported of one interface; empty before the first restart.

    Attributes:
        clock_ns: time of the last heartbeat; ``NO_BOUND`` if there was none.
        clock_offset_ns: real time minus monotonic time by the clock of the last daemon; None if it
            reported none.
        counters: counters of each stream at the end of the last daemon, to which those of the
            present daemon are added.
        late_tuples: function that returns how many late tuples of a stream the log of the present
            daemon has left out.
        losses: the losses that earlier daemons reported.
    """

    clock_ns: int = NO_BOUND
    clock_offset_ns: int | None = None
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    late_tuples: Callable[[str], int] = lambda _stream: 0
    losses: Losses = NO_LOSSES

    @property
    def packets(self) -> int:
        """Number of packets processed."""
        return self.most("packets_total")

    def most(self, counter: str) -> int:
        """Return the value of a counter of the interface, which each of its streams reports."""
        return max((each.get(counter, 0) for each in self.counters.values()), default=0)

    def added(self, stream: str, now: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        """Return the counters of a stream over the whole run; ``now`` are the present daemon's."""
        before = self.counters.get(stream)
        if before is None:
            return now
        total = dict(before)
        for name, count in now:
            total[name] = count if name in _GAUGES else count + before.get(name, 0)
        total[LATE] = before[LATE] + self.late_tuples(stream)
        return tuple(total.items())


def caught_up(earlier: Mapping[str, Any], state: ResumeState) -> dict[str, Any]:
    """Return an interface's entry of ``capture/stats.json``, brought up to its last heartbeat.

    The heartbeat is younger than the file. What the kernel dropped between them is unknown.
    """
    undecoded = {name: dict(earlier.get(name, {})) for name in UNDECODED}
    late, accepted = earlier.get("late_packets", 0), earlier.get("accepted_packets", 0)
    shed = earlier.get("shed_packets", 0)
    more_late = max(0, state.most("late_packets_total") - late)
    more_shed = max(0, state.most("shed_packets_total") - shed)
    known = late + shed + accepted + sum(sum(counts.values()) for counts in undecoded.values())
    more_undecoded = 0
    for name, counts in undecoded.items():
        if (newer := state.most(f"{name}_total") - sum(counts.values())) > 0:
            counts[UNKNOWN_REASON] = counts.get(UNKNOWN_REASON, 0) + newer
            more_undecoded += newer
    more = max(more_late + more_shed + more_undecoded, state.packets - known)
    processed = known + more
    others = sum(earlier.get(f"{name}_packets", 0) for name in ("dropped", "filtered"))
    # Packets that were unread when the file was written may have been processed since, and more
    # may have arrived.
    received = max(earlier.get("received_packets", 0), processed + others)
    return {
        **earlier,
        "received_packets": received,
        "unread_packets": received - processed - others,
        "late_packets": late + more_late,
        "shed_packets": shed + more_shed,
        **undecoded,
        "accepted_packets": accepted + more - more_late - more_shed - more_undecoded,
    }
