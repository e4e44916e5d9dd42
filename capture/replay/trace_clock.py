"""The trace clock: all interfaces of a replay advance together on the packets' own time.

The clock moves in steps to multiples of the heartbeat interval. A step runs every interface up to
the same time, several of them in threads (``side_by_side.py``). It is as long as the current blocks
allow, so its cost arises once a block and not once a tick, and it skips times at which no interface
has a packet: traces may span decades. Neither the length of steps nor the choice of those that send
heartbeats changes an answer, because the effect of a packet depends on packets alone:

* A packet is late if its time is below ``max(times before it on its interface) - skew``.
* The skew of a file may become known only while its packets are processed (decision 22). Until then
  nothing is promised, and no packet is late: the skew will be at least the largest step back.
* At clock c, the next packet of each interface has a time ≥ c. A packet behind it has, unless it is
  late, a time ≥ c - skew. So ``c - skew`` is a bound for every interface: silent, not yet begun, or
  busy.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.mode import HeartbeatMode
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay.side_by_side import SideBySide
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.process_events import CaptureProgress
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.log.log import StreamLog
    from gscope.capture.log.stream_heartbeat import StreamHeartbeat
    from gscope.capture.replay.trace_interface import TraceInterface

HEARTBEAT_PACKETS = 1_000_000
HEARTBEAT_SECONDS = 0.25
"""Heartbeats are sent after this many packets or seconds, whichever comes first."""

_LEAST_STEP_S = 0.001
"""Shortest step of a replay with a speed, in seconds of real time."""


@dataclass(frozen=True, slots=True)
class ClockSettings:
    """Settings of the trace clock.

    Attributes:
        interval_ns: the clock stops at multiples of this interval.
        heartbeat_every_tick: whether to send heartbeats at every multiple that packets pass.
        speed: seconds of the trace in one second; None for as fast as possible.
        mode: when heartbeats are sent. Demands are answered at the next tick, because the clock
            does not stop between ticks.
    """

    interval_ns: int
    heartbeat_every_tick: bool = False
    speed: float | None = None
    mode: HeartbeatMode = HeartbeatMode.PERIODIC

    @property
    def may_run_ahead(self) -> bool:
        """Whether a step may pass several ticks."""
        return self.speed is None and not self.heartbeat_every_tick


class TraceClock:
    """The clock of a replay: runs interfaces to their end and sends heartbeats on their streams.

    Args:
        interfaces: all interfaces of the replay, with open sources.
        log: the stream log, for heartbeats and ends; tuples reach it through the LFTAs.
        settings: settings of the clock.
        stop: when set, the replay ends soon as if the input ended there; None if nothing sets it.
        observers: what to notify of steps, heartbeats and ends; None for nothing.
        demands: bounds that readers ask for; None if readers cannot ask.
        monotonic: returns seconds, for coalescing heartbeats and for ``speed``.
        wall_ns: returns nanoseconds since 1970, for the traces of heartbeats.
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
        self._heartbeat_packets = 0
        self._heartbeat_s = 0.0
        self._origin: tuple[int, float] | None = None

    def run(self) -> None:
        """Replay all interfaces, and end every stream.

        Raises:
            CaptureError: a source failed in a way that ends the replay.
            StreamError: the log cannot be written.
        """
        self._heartbeat_s = self._monotonic()
        for interface in self._interfaces:
            interface.fetch()
        self._retire()
        may_run_ahead = self._settings.may_run_ahead
        with SideBySide(self._active, may_run_ahead=may_run_ahead) as together:
            while self._reading and not self._stop.is_set() and self._step(together):
                pass
        # Clocks of heartbeats never fall.
        for interface in sorted(self._active, key=lambda each: each.reached_ns):
            self._end(interface)
        self._report_progress()

    @property
    def _reading(self) -> list[TraceInterface]:
        """The interfaces that have not reached the end of their input."""
        return [interface for interface in self._active if not interface.is_ended]

    def _step(self, together: SideBySide) -> bool:
        """Move the clock; return False if stopped meanwhile."""
        first_ns = min(interface.head_ns for interface in self._reading)
        until_ns = self._until(first_ns, together.part_bytes)
        if not self._is_due(until_ns):
            return False
        together.advance(self._reading, until_ns, self._stop.is_set, self._before_fetch)
        for interface in self._active:
            self._observers.on_turn(interface)
        if self._stop.is_set():
            return False
        self._clock_ns = self._reached(until_ns)
        self._retire()
        if self._wants_heartbeat():
            self._send_due(self._clock_ns)
        self._answer(self._clock_ns)
        return True

    def _reached(self, until_ns: int) -> int:
        """Return the time that all interfaces have reached: ``until_ns``, or a tick before it."""
        heads = [each.head_ns for each in self._reading]
        interval = self._settings.interval_ns
        reached_ns = min([until_ns, *(head // interval * interval for head in heads)])
        return reached_ns if self._clock_ns is None else max(reached_ns, self._clock_ns)

    def _until(self, first_ns: int, part_bytes: int) -> int:
        """Return the end of the next step: past the next packet, within the current blocks.

        Or behind them, as far as ``part_bytes`` of the densest interface are expected to last.
        """
        interval = self._settings.interval_ns
        tick = (first_ns // interval + 1) * interval
        clock = self._clock_ns
        if self._settings.speed is not None and clock is not None:
            # Time also passes where no interface has a packet, in steps that are long enough to
            # keep up with.
            intervals = max(1, int(self._settings.speed * _LEAST_STEP_S * 1e9 / interval))
            tick = min(tick, clock + intervals * interval)
        elif self._settings.may_run_ahead:
            shortest = min(interface.expected_ns(part_bytes) for interface in self._reading)
            tick = max(tick, shortest // interval * interval)
        return min(tick if clock is None else max(tick, clock), MAX_TIME_NS)

    def _is_due(self, until_ns: int) -> bool:
        """Wait until ``until_ns`` if there is a speed; return False if stopped meanwhile."""
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
        """End the interfaces without further packets, once the clock has passed their last one."""
        clock_ns = MIN_TIME_NS if self._clock_ns is None else self._clock_ns
        ended = [e for e in self._active if e.is_ended and e.reached_ns <= clock_ns]
        for interface in ended:
            self._end(interface)
        self._active = [interface for interface in self._active if interface not in ended]

    def _end(self, interface: TraceInterface) -> None:
        """End the streams of ``interface``, with a last heartbeat at the time of its last packet.

        Skew and interval do not apply to it, so readers learn which epoch was open at the end.
        """
        interface.runtime.finish()
        heartbeats: list[StreamHeartbeat] = []
        if interface.reached_ns > MIN_TIME_NS:
            self._identity += 1
            heartbeats = self._make_heartbeats(interface, interface.reached_ns, 0)
        clock_ns = max(self._clock_ns or interface.reached_ns, interface.reached_ns)
        self._log.end(interface.streams.values(), self._identity, clock_ns, heartbeats)
        self._observers.on_end(interface)

    def _wants_heartbeat(self) -> bool:
        return all(each.knows_skew() for each in self._active) and (
            self._settings.heartbeat_every_tick
            or self._packets() - self._heartbeat_packets >= HEARTBEAT_PACKETS
            or self._monotonic() - self._heartbeat_s >= HEARTBEAT_SECONDS
        )

    def _send_due(self, clock_ns: int) -> None:
        if self._settings.mode.is_periodic:
            self._send(clock_ns, dict.fromkeys(self._active, clock_ns))
        else:
            own = {interface: interface.own_ns for interface in self._active}
            self._send(clock_ns, {each: ns for each, ns in own.items() if ns > each.heartbeat_ns})
        self._note_heartbeat()

    def _note_heartbeat(self) -> None:
        self._heartbeat_packets = self._packets()
        self._heartbeat_s = self._monotonic()
        self._report_progress()

    def _before_fetch(self, interface: TraceInterface) -> None:
        """Send a heartbeat of what is processed if ``interface`` has to wait for packets.

        The writer of a pipe may keep it open without writing; until it writes, the clock stands.
        """
        if not interface.is_starved(
            max(0.0, self._heartbeat_s + HEARTBEAT_SECONDS - self._monotonic())
        ):
            return
        interval = self._settings.interval_ns
        own = {each: each.own_ns for each in self._active}
        passed = {
            each: ns
            for each, ns in own.items()
            if ns // interval > each.heartbeat_ns // interval and each.knows_skew()
        }
        if passed:
            sent = (each.heartbeat_ns for each in self._active)
            self._send(max(self._clock_ns or MIN_TIME_NS, *sent, *passed.values()), passed)
        self._observers.on_turn(interface)
        self._note_heartbeat()

    def _answer(self, clock_ns: int) -> None:
        """Send the heartbeats that readers have asked for."""
        if self._demands is None:
            return
        known = [each for each in self._active if each.knows_skew()]
        wanted = [each for each in known if self._demands.take(each.streams.values())]
        if wanted:
            self._send(clock_ns, dict.fromkeys(wanted, clock_ns))

    def _send(self, clock_ns: int, reached: Mapping[TraceInterface, int]) -> None:
        """Send a heartbeat on each stream of the interfaces, at the times they have reached."""
        self._identity += 1
        heartbeats: list[StreamHeartbeat] = []
        for interface, reached_ns in reached.items():
            interface.heartbeat_ns = reached_ns
            heartbeats += self._make_heartbeats(interface, reached_ns, interface.skew_ns)
        self._log.write_heartbeat(self._identity, clock_ns, heartbeats)

    def _make_heartbeats(
        self, interface: TraceInterface, clock_ns: int, skew_ns: int
    ) -> list[StreamHeartbeat]:
        """Return a heartbeat for each stream of ``interface``."""
        return interface.make_heartbeats(
            clock_ns, skew_ns, wall_ns=self._wall_ns, monotonic=self._monotonic
        )

    def _packets(self) -> int:
        return sum(interface.packets for interface in self._interfaces)

    def _report_progress(self) -> None:
        sizes = [interface.source.size_bytes for interface in self._interfaces]
        known = [size for size in sizes if size is not None]
        self._observers.on_progress(
            CaptureProgress(
                self._packets(),
                sum(interface.input_bytes for interface in self._interfaces),
                sum(known) if len(known) == len(sizes) else None,
                self._clock_ns or 0,
            )
        )
