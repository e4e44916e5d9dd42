"""The trace clock: all interfaces of a replay advance together on the packets' own time.

The clock moves in steps to multiples of the heartbeat interval. A step runs every interface up to the same time; it
is as long as the blocks at hand allow, so that its cost is one a block and not one a tick, and it skips the time in
which nobody has a packet: traces may span decades. How long steps are, and at which of them heartbeats are sent,
never changes an answer, because what a packet means depends on packets alone:

* late is a packet whose time is below ``max(times before it on its interface) - skew``;
* at clock c every packet that is not yet processed has a time ≥ c when it is its interface's next one, and so, unless
  it is late, ≥ c - skew otherwise. So ``c - skew`` is a bound for every interface: silent, not yet begun, or busy.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.progress import Progress
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.log.log import StreamHeartbeat, StreamLog
    from gscope.capture.replay.trace_interface import TraceInterface

BEAT_PACKETS = 250_000
BEAT_SECONDS = 0.25
_LEAST_STEP_S = 0.001
"""Heartbeats are sent after so many packets, or when the last were sent so long ago, whichever is first."""


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """How the trace clock ticks.

    Attributes:
        interval_ns: it stops at multiples of this.
        beats_every_tick: stop and beat at every multiple at which there was a packet.
        speed: so many seconds of the trace a second; None for as fast as possible.
        mode: of heartbeats. Demands are answered at the next tick, for the clock does not stand between them.
    """

    interval_ns: int
    beats_every_tick: bool = False
    speed: float | None = None
    mode: HeartbeatMode = HeartbeatMode.PERIODIC


class TraceClock:
    """Runs interfaces to their end, and heartbeats on their streams.

    Args:
        interfaces: all of them, with open sources.
        log: where heartbeats and ends go; tuples reach it through the runtimes.
        settings: see ``ClockSettings``.
        stop: when set, the replay ends soon as if the input ended there.
        observers: what to notify of steps, heartbeats and ends; None for nothing.
        demands: what readers want to be promised; None where they cannot ask.
        monotonic: seconds, for coalescing heartbeats and for ``speed``.
        wall_ns: nanoseconds since 1970, for traces.
    """

    def __init__(
        self,
        interfaces: Sequence[TraceInterface],
        log: StreamLog,
        settings: ClockSettings,
        *,
        stop: threading.Event | None = None,
        observers: CaptureObservers | None = None,
        demands: Demands | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        wall_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self._interfaces = list(interfaces)
        self._active = list(interfaces)
        self._log = log
        self._settings = settings
        self._stop = stop or threading.Event()
        self._observers = observers or CaptureObservers()
        self._demands = demands
        self._monotonic = monotonic
        self._wall_ns = wall_ns
        self._clock_ns: int | None = None
        self._identity = 0
        self._beat_packets = 0
        self._beat_s = 0.0
        self._origin: tuple[int, float] | None = None

    def run(self) -> None:
        """Replay everything, end every stream.

        Raises:
            CaptureError: a source failed in a way that ends the replay.
            StreamError: the log cannot be written.
        """
        self._beat_s = self._monotonic()
        for interface in self._interfaces:
            interface.fetch()
        self._retire()
        while self._active and not self._stop.is_set():
            first_ns = min(interface.head_ns for interface in self._active)
            until_ns = self._until(first_ns)
            if not self._is_due(until_ns):
                break
            for interface in self._active:
                interface.advance(until_ns, self._stop.is_set, self._before_fetch)
                self._observers.on_turn(interface)
            if self._stop.is_set():
                break
            self._clock_ns = until_ns
            self._retire()
            if self._wants_beat():
                self._beat(until_ns)
            self._answer(until_ns)
        for interface in self._active:
            self._end(interface)
        self._report_progress()

    def _until(self, first_ns: int) -> int:
        """Where the next step goes: behind the next packet, and no farther than the blocks at hand."""
        interval = self._settings.interval_ns
        tick = (first_ns // interval + 1) * interval
        clock = self._clock_ns
        if self._settings.speed is not None and clock is not None:
            # Time passes also while nobody has a packet; a step of it is long enough to keep up with.
            intervals = max(1, int(self._settings.speed * _LEAST_STEP_S * 1e9 / interval))
            tick = min(tick, clock + intervals * interval)
        elif self._settings.speed is None and not self._settings.beats_every_tick:
            shortest = min(interface.last_ns for interface in self._active)
            tick = max(tick, shortest // interval * interval)
        return min(tick if clock is None else max(tick, clock), MAX_TIME_NS)

    def _is_due(self, until_ns: int) -> bool:
        """Wait until ``until_ns`` has come, when there is a speed; False when stopped meanwhile."""
        if self._settings.speed is None:
            return True
        if self._origin is None:
            self._origin = (until_ns - self._settings.interval_ns, self._monotonic())
        begin_ns, begin_s = self._origin
        due_s = begin_s + (until_ns - begin_ns) / 1e9 / self._settings.speed
        while (left_s := due_s - self._monotonic()) > 0:
            if self._stop.wait(min(left_s, threading.TIMEOUT_MAX)):
                return False
        return True

    def _retire(self) -> None:
        for interface in self._active:
            if interface.is_ended:
                self._end(interface)
        self._active = [interface for interface in self._active if not interface.is_ended]

    def _end(self, interface: TraceInterface) -> None:
        """End the streams of ``interface``, with a last heartbeat of the time of its last packet.

        Whatever the skew and the intervals: readers learn from it which epoch was open at the end.
        """
        interface.runtime.finish()
        beats: list[StreamHeartbeat] = []
        if interface.reached_ns > MIN_TIME_NS:
            self._identity += 1
            beats = self._beats(interface, interface.reached_ns, 0)
        clock_ns = max(self._clock_ns or interface.reached_ns, interface.reached_ns)
        self._log.end(interface.streams.values(), self._identity, clock_ns, beats)
        self._observers.on_end(interface)

    def _wants_beat(self) -> bool:
        return (
            self._settings.beats_every_tick
            or self._packets() - self._beat_packets >= BEAT_PACKETS
            or self._monotonic() - self._beat_s >= BEAT_SECONDS
        )

    def _beat(self, clock_ns: int) -> None:
        if self._settings.mode.is_periodic:
            self._send(clock_ns, dict.fromkeys(self._active, clock_ns))
        else:
            own = {interface: interface.own_ns for interface in self._active}
            self._send(clock_ns, {each: ns for each, ns in own.items() if ns > each.told_ns})
        self._note_beat()

    def _note_beat(self) -> None:
        self._beat_packets = self._packets()
        self._beat_s = self._monotonic()
        self._report_progress()

    def _before_fetch(self, interface: TraceInterface) -> None:
        """Send a heartbeat of what is processed if ``interface`` has to wait for its packets.

        The writer of a pipe may hold it open without writing for any time; until it writes, the clock stands.
        """
        if not interface.is_starved(max(0.0, self._beat_s + BEAT_SECONDS - self._monotonic())):
            return
        interval = self._settings.interval_ns
        own = {each: each.own_ns for each in self._active}
        passed = {e: ns for e, ns in own.items() if ns // interval > e.told_ns // interval}
        if passed:
            sent = (each.told_ns for each in self._active)
            self._send(max(self._clock_ns or MIN_TIME_NS, *sent, *passed.values()), passed)
        self._observers.on_turn(interface)
        self._note_beat()

    def _answer(self, clock_ns: int) -> None:
        """Send the heartbeats that somebody asked for."""
        if self._demands is None:
            return
        wanted = [each for each in self._active if self._demands.take(each.streams.values())]
        if wanted:
            self._send(clock_ns, dict.fromkeys(wanted, clock_ns))

    def _send(self, clock_ns: int, reached: Mapping[TraceInterface, int]) -> None:
        """A heartbeat on each stream of interfaces which have reached so far."""
        self._identity += 1
        beats: list[StreamHeartbeat] = []
        for interface, reached_ns in reached.items():
            interface.told_ns = reached_ns
            beats += self._beats(interface, reached_ns, interface.skew_ns)
        self._log.write_heartbeat(self._identity, clock_ns, beats)

    def _beats(
        self, interface: TraceInterface, clock_ns: int, skew_ns: int
    ) -> list[StreamHeartbeat]:
        """A heartbeat for each stream of ``interface``."""
        return interface.beats(clock_ns, skew_ns, wall_ns=self._wall_ns, monotonic=self._monotonic)

    def _packets(self) -> int:
        return sum(interface.packets for interface in self._interfaces)

    def _report_progress(self) -> None:
        sizes = [interface.source.size_bytes for interface in self._interfaces]
        known = [size for size in sizes if size is not None]
        self._observers.on_progress(
            Progress(
                self._packets(),
                sum(interface.input_bytes for interface in self._interfaces),
                sum(known) if len(known) == len(sizes) else None,
                self._clock_ns or 0,
            )
        )
