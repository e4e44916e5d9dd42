"""A live capture that goes on in the log of a daemon that was killed.

Nothing promised is taken back: no packet from before an interface's last heartbeat is accepted, and what is below a
stream's last punctuation all the same is left out and counted (``log/resumed_bounds.py``). Identities of heartbeats and sequence
numbers go on rising. An interface whose streams had begun to end is not captured again.

Counters go on from what the last heartbeat of each stream said. What the LFTAs had put out or in a group by then, and the
log does not hold, was lost with the process::

    tuples_out_total + live_groups = logged + shed + lost_in_crash + late + in open batches

so that ``lost_in_crash_tuples_total`` is exact for the moment of that heartbeat. Of what came between it and the end of
the process nothing is known; nobody counted it. ``uncaptured_ns_total`` is the time from the heartbeat until packets are
let in again. See docs/decisions/0015.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.summary import InterfaceSummary
from gscope.capture.lfta.punctuation import NO_BOUND
from gscope.capture.log.index import INDEX_NAME, read_index
from gscope.queries.streams.messages import EndOfStream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from gscope.capture.log.log import StreamLog
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Heartbeat

CRASHES = "crashes_total"
LOST = "lost_in_crash_tuples_total"
LATE = "late_tuples_total"
UNCAPTURED = "uncaptured_ns_total"
CLOCK_OFFSET = "clock_offset_ns"

UNKNOWN_REASON = "unknown"

_STANDS = ("live_groups", CLOCK_OFFSET)
"""Counters that say how something stands; they are not added to."""


@dataclass(frozen=True, slots=True)
class Past:
    """What earlier daemons of a run told of one interface.

    Attributes:
        clock_ns: of the last heartbeat; before all times if there was none.
        clock_offset_ns: real time less monotonic time, as the clock of the last daemon had it; None: not known.
        counters: by stream; those of the present daemon are to be added.
        late_tuples: of a stream, what the present daemon's log has left out.
    """

    clock_ns: int = NO_BOUND
    clock_offset_ns: int | None = None
    counters: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    late_tuples: Callable[[str], int] = lambda _stream: 0

    @property
    def packets(self) -> int:
        """How many packets were processed."""
        return self.most("packets_total")

    def most(self, counter: str) -> int:
        """The value of a counter of the interface, which all its streams tell."""
        return max((each.get(counter, 0) for each in self.counters.values()), default=0)

    def added(self, stream: str, now: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
        """The counters of a stream over the whole run; ``now`` are the present daemon's."""
        before = self.counters.get(stream)
        if before is None:
            return now
        total = dict(before)
        for name, count in now:
            total[name] = count if name in _STANDS else count + before.get(name, 0)
        total[LATE] = before[LATE] + self.late_tuples(stream)
        return tuple(total.items())


class Continuation:
    """What a log holds of earlier daemons when it is opened.

    Args:
        log: just opened.
        program: whose LFTAs write it.
        now_ns: real time.

    Attributes:
        identity: of the last heartbeat, 0 if there was none.
    """

    def __init__(self, log: StreamLog, program: Program, now_ns: int) -> None:
        self._log = log
        self._program = program
        self._now_ns = now_ns
        self._latest = log.latest
        self._totals = log.totals
        self.identity = max((beat.identity for beat in self._latest.values()), default=0)

    def streams(self, interface: str) -> list[str]:
        """The streams that are written for an interface."""
        lftas = (lfta for lfta in self._program.lftas if interface in lfta.interfaces)
        return [lfta.stream(interface) for lfta in lftas]

    def past(self, interface: str) -> Past:
        """Of an interface."""
        if self._log.is_empty:
            return Past()
        streams = self.streams(interface)
        beats = [self._latest[stream] for stream in streams if stream in self._latest]
        clock_ns = max((beat.clock_ns for beat in beats), default=NO_BOUND)
        offsets = [_counters(beat).get(CLOCK_OFFSET) for beat in beats]
        return Past(
            clock_ns,
            max((offset for offset in offsets if offset is not None), default=None),
            {stream: self._before(stream, clock_ns) for stream in streams},
            self._log.late_tuples,
        )

    def _before(self, stream: str, clock_ns: int) -> dict[str, int]:
        """The counters of a stream at the crash, with what it took."""
        told = {LOST: 0, LATE: 0, CRASHES: 0, UNCAPTURED: 0, **_counters(self._latest.get(stream))}
        put_out = told.get("tuples_out_total", 0) + told.get("live_groups", 0)
        reached_log = self._totals[stream].tuples_total + told[LATE]
        if not self._log.has_ended(stream):
            told[LOST] += max(0, put_out - reached_log - told[LOST])
            told[CRASHES] += 1
            told[UNCAPTURED] += max(0, self._now_ns - clock_ns) if clock_ns != NO_BOUND else 0
        return {**told, "tuples_out_total": reached_log + told[LOST], "live_groups": 0}


def _counters(beat: Heartbeat | None) -> dict[str, int]:
    return dict(beat.trace[0].counters) if beat is not None and beat.trace else {}


def ended_interfaces(log_folder: Path, interfaces: Iterable[str]) -> frozenset[str]:
    """Those of ``interfaces`` whose streams have ended, or begun to, in a log that nobody has opened yet.

    Raises:
        StreamError: it is damaged.
    """
    if not (log_folder / INDEX_NAME).exists():
        return frozenset()
    contents = read_index(log_folder)
    ended = {base.stream for base in contents.bases.values() if base.has_ended}
    ended |= {message.stream for message in contents.messages if isinstance(message, EndOfStream)}
    return frozenset(name for name in interfaces if any(s.endswith(f"@{name}") for s in ended))


def caught_up(earlier: Mapping[str, Any], past: Past) -> dict[str, Any]:
    """What ``capture.stats.json`` said of an interface, brought up to its last heartbeat, which is younger.

    What the kernel dropped meanwhile nobody knows.
    """
    malformed = dict(earlier.get("malformed_packets", {}))
    late, accepted = earlier.get("late_packets", 0), earlier.get("accepted_packets", 0)
    more_late = max(0, past.most("late_packets_total") - late)
    more_malformed = max(0, past.most("malformed_packets_total") - sum(malformed.values()))
    known = late + accepted + sum(malformed.values())
    more = max(more_late + more_malformed, past.packets - known)
    if more_malformed:
        malformed[UNKNOWN_REASON] = malformed.get(UNKNOWN_REASON, 0) + more_malformed
    processed = known + more
    others = sum(earlier.get(f"{name}_packets", 0) for name in ("dropped", "filtered", "shed"))
    # What the file had as waiting may have been processed since, and more may have come.
    received = max(earlier.get("received_packets", 0), processed + others)
    return {
        **earlier,
        "received_packets": received,
        "unread_packets": received - processed - others,
        "late_packets": late + more_late,
        "malformed_packets": malformed,
        "accepted_packets": accepted + more - more_late - more_malformed,
    }


def nothing_from(interface: str) -> InterfaceSummary:
    """The summary of an interface that the present daemon does not capture."""
    return InterfaceSummary(interface, 0, 0, 0, 0, 0, {}, 0, 0, ())


def with_earlier(summary: InterfaceSummary, earlier: Mapping[str, Any]) -> InterfaceSummary:
    """The summary of a whole run: ``summary`` and what ``capture.stats.json`` said before.

    What was at hand and not processed when the daemon was killed is among the unread.
    """
    malformed = dict(earlier.get("malformed_packets", {}))
    for reason, count in summary.malformed.items():
        malformed[reason] = malformed.get(reason, 0) + count
    counts = {
        name: getattr(summary, name) + earlier.get(f"{name}_packets", 0)
        for name in ("received", "dropped", "filtered", "shed", "late", "accepted", "unread")
    }
    damage = dict.fromkeys((*earlier.get("damage", ()), *summary.damage))
    return replace(summary, **counts, malformed=malformed, damage=tuple(damage))
