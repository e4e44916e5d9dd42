"""When the heartbeats of a live interface are due, by its clock; see ``HeartbeatMode``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.interface.demand_deadline import NEVER_NS, OnDemand
from gscope.queries.int64 import MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.interface.base import Feed
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program

OVERDUE_INTERVALS = 1.5
"""Intervals after which an overdue heartbeat is sent with the time reached.

A backlog of packets can keep the time reached from passing the next multiple of the interval."""

LEAST_GAP_NS = 1_000_000
"""Shortest time between heartbeats on demand, however many readers ask."""


class HeartbeatSchedule:
    """The schedule of one interface's heartbeats; used by the thread that captures it.

    Args:
        mode: when heartbeats are sent.
        interval_ns: time between periodic heartbeats.
        skew_ns: how far promises stay behind the clock.
        began_ns: monotonic time when the capture began.
        on_demand: what readers and LFTAs wait for; None in a mode that serves no demands.
    """

    def __init__(
        self,
        mode: HeartbeatMode,
        interval_ns: int,
        skew_ns: int,
        began_ns: int,
        on_demand: OnDemand | None = None,
    ) -> None:
        self.on_demand = on_demand
        self._mode = mode
        self._interval_ns = interval_ns
        self._skew_ns = skew_ns
        self._heartbeat_ns = began_ns
        self._sent_ns = MIN_TIME_NS
        self._tick: int | None = None

    def reached_ns(self, now_ns: int, latest_ns: int, *, is_caught_up: bool) -> int:
        """Return the time up to which all packets are processed, apart from the skew.

        In mode ``off`` only packets advance it.

        Args:
            now_ns: time of the clock, read just before ``is_caught_up`` was determined.
            latest_ns: latest time of the packets processed.
            is_caught_up: whether no packet is waiting.
        """
        follows_clock = is_caught_up and self._mode is not HeartbeatMode.OFF
        return now_ns if follows_clock else min(latest_ns, now_ns)

    def is_due(self, reached_ns: int, monotonic_ns: int) -> bool:
        """Return whether a heartbeat is due now."""
        if reached_ns == MIN_TIME_NS:
            return False
        return self._is_tick(reached_ns, monotonic_ns) or self._is_wanted(reached_ns, monotonic_ns)

    def on_packets(self, least_ns: int, greatest_ns: int) -> None:
        """Note that packets between these times were processed."""
        if self.on_demand is not None:
            self.on_demand.on_packets(least_ns, greatest_ns)

    def on_heartbeat(self, reached_ns: int, monotonic_ns: int) -> None:
        """Note that a heartbeat was sent."""
        self._heartbeat_ns = monotonic_ns
        self._sent_ns = reached_ns
        self._tick = self._tick_of(reached_ns)
        if self.on_demand is not None:
            self.on_demand.on_heartbeat()

    def wait_ns(self, now_ns: int, monotonic_ns: int) -> int:
        """Return the time until the next heartbeat is due if neither packets nor demands arrive."""
        waits = []
        if self._mode is not HeartbeatMode.ON_DEMAND:
            waits.append(self._interval_ns - (now_ns - self._skew_ns) % self._interval_ns)
        if self.on_demand is not None:
            wanted_ns = self.on_demand.wanted_ns()
            if wanted_ns != NEVER_NS:
                gap_ns = self._heartbeat_ns + LEAST_GAP_NS - monotonic_ns
                waits.append(max(0, gap_ns, wanted_ns + self._skew_ns - now_ns))
        return min(waits, default=NEVER_NS)

    def _is_tick(self, reached_ns: int, monotonic_ns: int) -> bool:
        """Return whether a multiple of the interval has passed since the last heartbeat."""
        if self._mode is HeartbeatMode.ON_DEMAND:
            return False
        if self._tick_of(reached_ns) != self._tick:
            return True
        if self._mode is HeartbeatMode.OFF and reached_ns == self._sent_ns:
            return False
        return monotonic_ns - self._heartbeat_ns >= OVERDUE_INTERVALS * self._interval_ns

    def _tick_of(self, reached_ns: int) -> int:
        return (reached_ns - self._skew_ns) // self._interval_ns

    def _is_wanted(self, reached_ns: int, monotonic_ns: int) -> bool:
        if self.on_demand is None or monotonic_ns - self._heartbeat_ns < LEAST_GAP_NS:
            return False
        return reached_ns - self._skew_ns >= self.on_demand.wanted_ns()


class HeartbeatSchedules:
    """Makes the schedule of each interface of a live capture.

    Args:
        program: the compiled query set.
        settings: settings of the capture.
        demands: demands of all readers.
    """

    def __init__(self, program: Program, settings: CaptureSettings, demands: Demands) -> None:
        self._program = program
        self._mode = settings.heartbeat_mode
        self._interval_ns = settings.heartbeat_interval_ns
        self._latent = {each.name for each in settings.interfaces if each.is_latent}
        self._demands = demands

    def of(
        self, feed: Feed, skew_ns: int, began_ns: int, wake: Callable[[], None]
    ) -> HeartbeatSchedule:
        """Return the schedule of ``feed``.

        Args:
            feed: an interface.
            skew_ns: how far its promises stay behind the clock.
            began_ns: monotonic time when the capture began.
            wake: makes the interface's thread check its schedule soon; called from any thread.
        """
        on_demand = None
        if self._mode.is_on_demand:
            lftas = {stream: self._program.lfta(name) for name, stream in feed.streams.items()}
            on_demand = OnDemand(
                feed.runtime, lftas, self._demands, is_latent=feed.name in self._latent
            )
            feed.on_demand = on_demand
            self._demands.attach(lftas, wake)
        return HeartbeatSchedule(self._mode, self._interval_ns, skew_ns, began_ns, on_demand)
