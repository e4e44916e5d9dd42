"""The capture threads of live interfaces, and what they share.

Each interface has a thread. It passes blocks to the interface's LFTAs and sends heartbeats at every
multiple of the heartbeat interval. The promises of a heartbeat follow the clock::

    reached = now                          if the ring is empty: a fact, not a timeout
              min(latest packet, now)      otherwise
    bound   = max(bound, reached - skew)

The skew covers the delay of a packet between its timestamp and this process (at most the time after
which the kernel hands over a block that is not full) and steps back in time between queues. Packets
below the bound are late: discarded and counted. So silence closes windows just as packets do, and
answers do not depend on the times of heartbeats unless packets exceed the skew.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gscope.capture.settings import MIN_LIVE_SKEW_NS
from gscope.errors import CaptureError
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.streams.process_events import CaptureProgress

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gscope.capture.live.clock import LiveClock
    from gscope.capture.live.heartbeat_schedule import HeartbeatSchedules
    from gscope.capture.live.live_interface import LiveInterface
    from gscope.capture.live.stop import CaptureLimit, LiveStop
    from gscope.capture.log.log import StreamLog
    from gscope.capture.process.observers import CaptureObservers
    from gscope.capture.shedding.load_control import LoadControl

WAIT_S = 0.1
"""Longest time that a capture thread waits for packets before it checks for a stop, in seconds."""

DRAIN_S = 10.0
"""Time limit for processing the packets from before the stop, in seconds; the rest is unread."""


class LiveLoop:
    """The loop of the thread that captures one interface.

    Args:
        interface: the interface to capture.
        capture: state that all interfaces share.
        clock: the clock of this interface alone.
        start_ns: monotonic time since which packets are let in.
    """

    def __init__(
        self, interface: LiveInterface, capture: LiveCapture, clock: LiveClock, start_ns: int
    ) -> None:
        self.interface = interface
        self._capture = capture
        self._clock = clock
        self._start_ns = start_ns
        self._schedule = capture.schedules.of(
            interface, interface.skew_ns, clock.monotonic_ns(), interface.wake
        )
        self._borders = [] if capture.control is None else capture.control.borders()

    def run(self) -> None:
        """Capture until the stop, then close all windows and end the streams.

        An interface that disappears ends alone; the others continue.

        Raises:
            StreamError: the log cannot be written.
        """
        stop = self._capture.stop
        try:
            self.interface.start_reading()
            while not stop.event.is_set():
                self.turn()
            self.drain(stop.moment_ns(self._clock.now_ns()))
        except CaptureError as error:
            self.interface.failure = str(error)
            self._capture.observers.on_failure(self.interface.name, str(error))
        else:
            self.interface.failure = self.interface.source.failure
        finally:
            self.interface.stop_reading()
            if self._capture.control is not None:
                self._capture.control.forget(self.interface.name)
        self.end()

    def turn(self) -> None:
        """Process one block, or wait for one, and send the heartbeats that are due."""
        interface, clock = self.interface, self._clock
        limit_ns = self._capture.limit.left_ns(clock.monotonic_ns() - self._start_ns)
        wait_ns = min(limit_ns, self._schedule.wait_ns(clock.now_ns(), clock.monotonic_ns()))
        taken = interface.take(min(wait_ns / 1e9, WAIT_S))
        now_ns = clock.now_ns()
        if taken:
            interface.note_lag(now_ns)
            self._schedule.on_packets(interface.earliest_ns, interface.latest_ns)
        is_caught_up = interface.is_idle()
        reached_ns = self._schedule.reached_ns(
            now_ns, interface.processed_ns, is_caught_up=is_caught_up
        )
        if self._schedule.is_due(reached_ns, clock.monotonic_ns()):
            interface.clock_offset_ns = clock.offset_ns
            interface.update_dropped_packets()
            self._capture.send_heartbeat(interface, reached_ns)
            self._schedule.on_heartbeat(reached_ns, clock.monotonic_ns())
        self._follow_load(reached_ns)
        self._capture.observers.on_turn(interface)

    def _follow_load(self, reached_ns: int) -> None:
        """Report how loaded the interface is, and let its thresholds follow.

        A heartbeat says first to which thresholds: if this process dies, rows that later packets
        are in may be in the log, and no later heartbeat. It promises what the last one did, so it
        closes no groups and seals no rows: an overloaded interface has no time for that.
        """
        control, interface, clock = self._capture.control, self.interface, self._clock
        if control is None or not interface.moves:
            return
        now_ns = clock.monotonic_ns()
        if control.is_due(interface.name, now_ns):
            control.report(interface.name, interface.load(), now_ns, clock.now_ns())
        thresholds = control.thresholds()
        changes = interface.threshold_changes(thresholds)
        if changes and reached_ns != MIN_TIME_NS:
            promised_ns = reached_ns if interface.clock_ns == MIN_TIME_NS else interface.clock_ns
            self._capture.send_heartbeat(interface, promised_ns, changes)
            interface.move_thresholds(thresholds, self._borders)

    def drain(self, stop_ns: int) -> None:
        """Process packets from before ``stop_ns``; the kernel hands them over within the skew."""
        interface, clock = self.interface, self._clock
        stopped_ns = clock.monotonic_ns()
        while (waited_ns := clock.monotonic_ns() - stopped_ns) < int(DRAIN_S * 1e9):
            left_ns = max(0, max(interface.skew_ns, MIN_LIVE_SKEW_NS) - waited_ns)
            if interface.take(min(left_ns / 1e9, WAIT_S), stop_ns):
                is_past = interface.has_passed(stop_ns)
                interface.is_drained = is_past or self._capture.limit.is_spent
            else:
                interface.is_drained = interface.is_idle() or not left_ns
            self._capture.observers.on_turn(interface)
            if interface.is_drained:
                return

    def end(self) -> None:
        """Close all windows; end the streams with a heartbeat at the time of the last packet."""
        self.interface.update_dropped_packets()
        self.interface.note_unread(self._clock.real_ns())
        self._capture.end(self.interface, self._clock.now_ns())


class LiveCapture:
    """State that the interfaces of a live capture share: log, stop, identities of heartbeats.

    Args:
        log: the stream log, for heartbeats and ends; tuples reach it through the LFTAs.
        schedules: schedules of heartbeats.
        stop: ends all interfaces.
        limit: the limit of packets and time, which requests ``stop``.
        observers: notified of every turn, heartbeat and end.
        identities: identities of heartbeats, rising.

    Attributes:
        control: the rates that follow the load; None if none does.
        interfaces: the interfaces that this daemon captures.
        writing: lock that is held while the log is written.
    """

    def __init__(
        self,
        log: StreamLog,
        schedules: HeartbeatSchedules,
        stop: LiveStop,
        limit: CaptureLimit,
        observers: CaptureObservers,
        identities: Iterator[int],
    ) -> None:
        self.log = log
        self.schedules = schedules
        self.stop = stop
        self.limit = limit
        self.observers = observers
        self.identities = identities
        self.control: LoadControl | None = None
        self.interfaces: list[LiveInterface] = []
        self.writing = threading.Lock()

    def run(self, loops: Sequence[LiveLoop]) -> None:
        """Run each loop in a thread until all have ended.

        Raises:
            StreamError: the log cannot be written; all threads have stopped.
        """
        failures: list[BaseException] = []

        def follow(loop: LiveLoop) -> None:
            try:
                loop.run()
            except BaseException as error:
                failures.append(error)
                self.stop.request()

        threads = [
            threading.Thread(target=follow, args=(loop,), name=f"capture {loop.interface.name}")
            for loop in loops
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    def send_heartbeat(
        self,
        interface: LiveInterface,
        reached_ns: int,
        changes: Mapping[str, int] | None = None,
    ) -> None:
        """Send a heartbeat on each stream of ``interface``.

        Args:
            interface: the interface.
            reached_ns: the time up to which its packets were processed.
            changes: thresholds, by LFTA, that will be taken over next.
        """
        interface.clock_ns = reached_ns
        heartbeats = interface.make_heartbeats(reached_ns, interface.skew_ns, changes=changes)
        with self.writing:
            self.log.write_heartbeat(next(self.identities), reached_ns, heartbeats)
        self._report_progress(reached_ns)

    def end(self, interface: LiveInterface, now_ns: int) -> None:
        """End the streams of ``interface``; the last heartbeat shows which epoch was open."""
        interface.runtime.finish()
        last_ns = max(interface.latest_ns, interface.runtime.bound_ns)
        heartbeats = interface.make_heartbeats(now_ns if last_ns == MIN_TIME_NS else last_ns, 0)
        clock_ns = max(interface.clock_ns, last_ns)
        with self.writing:
            self.log.end(interface.streams.values(), next(self.identities), clock_ns, heartbeats)
        self._report_progress(clock_ns)
        self.observers.on_end(interface)

    def _report_progress(self, clock_ns: int) -> None:
        packets = sum(interface.packets for interface in self.interfaces)
        dropped = sum(interface.dropped_packets for interface in self.interfaces)
        self.observers.on_progress(CaptureProgress(packets, 0, None, clock_ns, dropped))
