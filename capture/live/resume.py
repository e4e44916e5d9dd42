"""Resume of a live capture in the log of a daemon that was killed.

No promise is withdrawn: packets from before an interface's last heartbeat are not accepted, and
tuples that are below a stream's last punctuation nevertheless are left out and counted
(``capture/log/resumed_bounds.py``). Identities of heartbeats and sequence numbers keep rising. An
interface whose streams had begun to end is not captured again.

Counters continue from the last heartbeat of each stream. Tuples that the LFTAs had emitted or held
in a group at that heartbeat and that the log does not contain were lost with the process::

    tuples_out_total + live_groups = logged + shed + lost_in_crash + late + in open batches

so ``lost_in_crash_tuples_total`` is exact for the moment of that heartbeat. What the process
counted between the heartbeat and its end is unknown. ``uncaptured_ns_total`` is the time from the
heartbeat until packets are let in again. As a loss of packets, this time begins at the bound that
the heartbeat promised. See docs/decisions/0015.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gscope.capture.interface.resume_state import CLOCK_OFFSET, LATE, ResumeState
from gscope.capture.interface.summary import added_by_reason
from gscope.capture.lfta.punctuation import NO_BOUND
from gscope.capture.log.index import INDEX_NAME, read_index
from gscope.queries.streams.losses import united
from gscope.queries.streams.messages import EndOfStream

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.log.log import StreamLog
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Heartbeat

CRASHES = "crashes_total"
LOST = "lost_in_crash_tuples_total"
UNCAPTURED = "uncaptured_ns_total"


class Continuation:
    """What the log of a live run contains of earlier daemons, when a daemon opens it.

    Args:
        log: the log, just opened.
        program: the program whose LFTAs write the log.
        interfaces: names of all interfaces of the run.
        now_ns: real time, in nanoseconds since 1970.

    Attributes:
        identity: identity of the last heartbeat; 0 if there was none.
        states: for each interface, what earlier daemons reported of it.
        now_ns: real time when the log was opened.
    """

    def __init__(
        self, log: StreamLog, program: Program, interfaces: Iterable[str], now_ns: int
    ) -> None:
        self.now_ns = now_ns
        self._log = log
        self._program = program
        self._latest = log.latest
        self._totals = log.totals
        self.identity = max((heartbeat.identity for heartbeat in self._latest.values()), default=0)
        self.states = {interface: self._state(interface) for interface in interfaces}

    def streams(self, interface: str) -> list[str]:
        """Return the streams that are written for an interface."""
        lftas = (lfta for lfta in self._program.lftas if interface in lfta.interfaces)
        return [lfta.stream(interface) for lfta in lftas]

    def _state(self, interface: str) -> ResumeState:
        if self._log.is_empty:
            return ResumeState()
        streams = self.streams(interface)
        heartbeats = [self._latest[stream] for stream in streams if stream in self._latest]
        clock_ns = max((heartbeat.clock_ns for heartbeat in heartbeats), default=NO_BOUND)
        offsets = [_counters(heartbeat).get(CLOCK_OFFSET) for heartbeat in heartbeats]
        return ResumeState(
            clock_ns,
            max((offset for offset in offsets if offset is not None), default=None),
            {stream: self._at_crash(stream, clock_ns) for stream in streams},
            self._log.late_tuples,
            united(heartbeat.losses for heartbeat in heartbeats if heartbeat.losses),
        )

    def _at_crash(self, stream: str, clock_ns: int) -> dict[str, int]:
        """Return the counters of a stream at the crash, with what the crash cost."""
        counters = {
            LOST: 0,
            LATE: 0,
            CRASHES: 0,
            UNCAPTURED: 0,
            **_counters(self._latest.get(stream)),
        }
        emitted = counters.get("tuples_out_total", 0) + counters.get("live_groups", 0)
        reached_log = self._totals[stream].tuples_total + counters[LATE]
        if not self._log.has_ended(stream):
            counters[LOST] += max(0, emitted - reached_log - counters[LOST])
            counters[CRASHES] += 1
            counters[UNCAPTURED] += max(0, self.now_ns - clock_ns) if clock_ns != NO_BOUND else 0
        return {**counters, "tuples_out_total": reached_log + counters[LOST], "live_groups": 0}


def _counters(heartbeat: Heartbeat | None) -> dict[str, int]:
    return dict(heartbeat.trace[0].counters) if heartbeat is not None and heartbeat.trace else {}


def ended_interfaces(log_folder: Path, interfaces: Iterable[str]) -> frozenset[str]:
    """Return the interfaces whose streams have ended, or begun to, in a log that is not open yet.

    Raises:
        StreamError: the log is damaged.
    """
    if not (log_folder / INDEX_NAME).exists():
        return frozenset()
    contents = read_index(log_folder)
    ended = {base.stream for base in contents.bases.values() if base.has_ended}
    ended |= {message.stream for message in contents.messages if isinstance(message, EndOfStream)}
    return frozenset(name for name in interfaces if any(s.endswith(f"@{name}") for s in ended))


def with_earlier(summary: InterfaceSummary, earlier: Mapping[str, Any]) -> InterfaceSummary:
    """Return the summary of a whole run: ``summary`` plus an entry of ``capture/stats.json``.

    Packets that had arrived and were not processed when the earlier daemon was killed are unread.
    """
    malformed = added_by_reason(earlier.get("malformed_packets", {}), summary.malformed)
    unsupported = added_by_reason(earlier.get("unsupported_packets", {}), summary.unsupported)
    counts = {
        name: getattr(summary, name) + earlier.get(f"{name}_packets", 0)
        for name in ("received", "dropped", "filtered", "shed", "late", "accepted", "unread")
    }
    damage = dict.fromkeys((*earlier.get("damage", ()), *summary.damage))
    return replace(
        summary, **counts, malformed=malformed, unsupported=unsupported, damage=tuple(damage)
    )
