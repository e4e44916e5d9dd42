"""Live capture: packets of interfaces as they come, until told to stop; no process, no server.

Each interface has a thread. It hands blocks to the interface's LFTAs, and at every multiple of the heartbeat interval
sends heartbeats. What these promise follows the clock::

    reached = now                          if the ring is empty, which is a fact and no timeout
              min(latest packet, now)      otherwise
    bound   = max(bound, reached - skew)

The skew covers what a packet takes from its stamp to us, at most the time after which the kernel hands over a block
that is not full, and steps back between queues. Packets below the bound are late: discarded, and counted. So silence
closes windows as packets do, and what an answer holds does not depend on when heartbeats were sent unless packets
break the skew.
"""

from __future__ import annotations

import dataclasses
import itertools
import threading
import time
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.interface.base import attach
from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.interface.summary import Summary
from gscope.capture.live.clock import LiveClock
from gscope.capture.live.fanout_interface import FanoutInterface, Lane, ensure_orders_survive
from gscope.capture.live.heartbeat_schedule import Paces
from gscope.capture.live.live_interface import RingInterface
from gscope.capture.live.resume import Continuation
from gscope.capture.live.stop import Limit, LiveStop
from gscope.capture.live.summary import failures, interface_summaries
from gscope.capture.live.uncaptured_interfaces import end_streams
from gscope.capture.progress import Progress
from gscope.capture.replay.trace_clock import MIN_TIME_NS
from gscope.capture.settings import MIN_LIVE_SKEW_NS
from gscope.capture.sources.af_packet.fanout_rings import FanoutSource
from gscope.errors import CaptureError
from gscope.queries.plan.split.kernel_filter import needed_packets

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from gscope.capture.interface.build_lftas import EngineMaker
    from gscope.capture.live.live_interface import LiveInterface
    from gscope.capture.log.log import StreamLog
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.process.thread_watchdog import Pulse
    from gscope.capture.settings import CaptureSettings
    from gscope.capture.sources.base import LiveSource
    from gscope.queries.plan.program import Program

WAIT_S = 0.1
"""How long a thread waits for packets at most before it looks whether it is to stop."""

DRAIN_S = 10.0
"""How long what came before the stop may take to be processed; the rest is told as unread."""


class LiveLoop:
    """What the thread of an interface does.

    Args:
        interface: its own.
        capture: what all interfaces share.
        clock: its own.
    """

    def __init__(self, interface: LiveInterface, capture: LiveCapture, clock: LiveClock) -> None:
        self.interface = interface
        self._capture = capture
        self._clock = clock
        self._began_ns = clock.monotonic_ns()
        self._pace = capture.paces.of(interface, interface.skew_ns, self._began_ns, interface.wake)

    def run(self) -> None:
        """Capture until the stop, then close all windows and end the streams.

        An interface that is gone ends alone; the others go on.

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
            self._capture.tell_failure(self.interface.name, str(error))
        else:
            self.interface.failure = self.interface.source.failure
        finally:
            self.interface.stop_reading()
        self.end()

    def turn(self) -> None:
        """Take the packets of a block, or wait for some, and send heartbeats when they are due."""
        interface, clock = self.interface, self._clock
        limit_ns = self._capture.limit.left_ns(clock.monotonic_ns() - self._began_ns)
        wait_ns = min(limit_ns, self._pace.wait_ns(clock.now_ns(), clock.monotonic_ns()))
        taken = interface.take(min(wait_ns / 1e9, WAIT_S))
        now_ns = clock.now_ns()
        if taken:
            interface.note_lag(now_ns)
            self._pace.on_packets(interface.earliest_ns, interface.latest_ns)
        is_caught_up = interface.is_idle()
        reached_ns = self._pace.reached_ns(
            now_ns, interface.processed_ns, is_caught_up=is_caught_up
        )
        if self._pace.is_due(reached_ns, clock.monotonic_ns()):
            interface.clock_offset_ns = clock.offset_ns
            interface.look_at_drops()
            self._capture.beat(interface, reached_ns)
            self._pace.on_beat(reached_ns, clock.monotonic_ns())
        self._capture.look_at(interface)

    def drain(self, stop_ns: int) -> None:
        """Process what was stamped before ``stop_ns``: the kernel hands it over within the skew."""
        interface, clock = self.interface, self._clock
        stopped_ns = clock.monotonic_ns()
        while (waited_ns := clock.monotonic_ns() - stopped_ns) < int(DRAIN_S * 1e9):
            left_ns = max(0, max(interface.skew_ns, MIN_LIVE_SKEW_NS) - waited_ns)
            if interface.take(min(left_ns / 1e9, WAIT_S), stop_ns):
                is_past = interface.has_passed(stop_ns)
                interface.is_drained = is_past or self._capture.limit.is_spent
            else:
                interface.is_drained = interface.is_idle() or not left_ns
            self._capture.look_at(interface)
            if interface.is_drained:
                return

    def end(self) -> None:
        """Close all windows, and end the streams with a last heartbeat of the time of the last packet."""
        self.interface.look_at_drops()
        self._capture.end(self.interface, self._clock.now_ns())


class LiveCapture:
    """What the interfaces of a live capture share: the log, the stop, the numbers of heartbeats.

    Args:
        log: where heartbeats and ends go; tuples reach it through the runtimes.
        paces: when heartbeats are due.
        stop: ends all.
        limit: requests the stop.
        writing: held while the log is written.
        on_progress: told at every heartbeat.
        statistics: told of every turn.
        pulse: told of every turn, too.
        identities: of heartbeats, rising.
        on_failure: told of an interface that ends alone, and why.
    """

    def __init__(
        self,
        log: StreamLog,
        paces: Paces,
        stop: LiveStop,
        limit: Limit,
        writing: threading.Lock,
        on_progress: Callable[[Progress], None] | None = None,
        statistics: CaptureStatistics | None = None,
        pulse: Pulse | None = None,
        identities: Iterator[int] | None = None,
        on_failure: Callable[[str, str], None] | None = None,
    ) -> None:
        self.paces = paces
        self.stop = stop
        self.limit = limit
        self.interfaces: list[LiveInterface] = []
        self._log = log
        self._writing = writing
        self._on_progress = on_progress
        self._statistics = statistics
        self._pulse = pulse
        self._identities = identities or itertools.count(1)
        self._on_failure = on_failure

    def run(self, loops: Sequence[LiveLoop]) -> None:
        """Run every interface in a thread until all have ended.

        Raises:
            StreamError: the log cannot be written; then all have stopped.
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

    def beat(self, interface: LiveInterface, reached_ns: int) -> None:
        """Send a heartbeat on each stream of ``interface``."""
        interface.clock_ns = reached_ns
        beats = interface.beats(reached_ns, interface.skew_ns)
        with self._writing:
            self._log.write_heartbeat(next(self._identities), reached_ns, beats)
        self._tell_progress(reached_ns)

    def look_at(self, interface: LiveInterface) -> None:
        """Let others see how ``interface`` stands."""
        if self._pulse is not None:
            self._pulse.on_turn(interface.name)
        if self._statistics is not None:
            self._statistics.on_turn(interface)

    def end(self, interface: LiveInterface, now_ns: int) -> None:
        """End the streams of ``interface``; readers learn from it which epoch was open at the end."""
        interface.runtime.finish()
        last_ns = max(interface.latest_ns, interface.runtime.bound_ns)
        beats = interface.beats(now_ns if last_ns == MIN_TIME_NS else last_ns, 0)
        clock_ns = max(interface.clock_ns, last_ns)
        with self._writing:
            self._log.end(interface.streams.values(), next(self._identities), clock_ns, beats)
        self._tell_progress(clock_ns)
        if self._statistics is not None:
            self._statistics.on_end(interface)
        if self._pulse is not None:
            self._pulse.on_end(interface.name)

    def tell_failure(self, interface: str, problem: str) -> None:
        """An interface ends before the others."""
        if self._on_failure is not None:
            self._on_failure(interface, problem)

    def _tell_progress(self, clock_ns: int) -> None:
        if self._on_progress is not None:
            packets = sum(interface.packets for interface in self.interfaces)
            dropped = sum(interface.dropped_packets for interface in self.interfaces)
            self._on_progress(Progress(packets, 0, None, clock_ns, dropped))


def capture_live(
    program: Program,
    settings: CaptureSettings,
    log: StreamLog,
    sources: Mapping[str, LiveSource | FanoutSource],
    missing: Mapping[str, str] | None = None,
    *,
    engines: EngineMaker | None = None,
    stop: LiveStop | None = None,
    on_ready: Callable[[], None] | None = None,
    on_begin: Callable[[], None] | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    on_failure: Callable[[str, str], None] | None = None,
    statistics: CaptureStatistics | None = None,
    demands: Demands | None = None,
    pulse: Pulse | None = None,
    make_clock: Callable[[], LiveClock] = LiveClock,
) -> Summary:
    """Run the program's LFTAs over live interfaces into ``log`` until stopped, and end all its streams.

    Args:
        program: the compiled query set.
        settings: what to capture and how.
        log: of ``open_log``; stays open. If it holds something, the capture goes on from there.
        sources: open and paused, by interface; still to be closed by the caller. The streams of an interface
            that has none are ended.
        missing: why interfaces have none although their streams had not ended, by name.
        engines: makes the LFTAs of an interface; by default ``compiled_engines``.
        stop: to end it; without one only the settings' limits do.
        on_ready: told when all is ready, before the first row is logged.
        on_begin: told when packets are let in.
        on_progress: told at every heartbeat.
        on_failure: told of an interface that ends alone, and why.
        statistics: where others see how it goes.
        demands: what readers want to be promised.
        pulse: told that the threads get on.
        make_clock: a clock for each interface.

    Raises:
        StreamError: the log cannot be written.
    """
    stop = stop or LiveStop()
    began = time.perf_counter()
    engines = engines or compiled_engines(program, settings)
    clocks = {name: make_clock() for name in sources}
    now_ns = max((clock.now_ns() for clock in clocks.values()), default=0)
    missing = missing or {}
    continuation = Continuation(log, program, now_ns)
    pasts = {each.name: continuation.past(each.name) for each in settings.interfaces}
    limit = Limit(
        stop, settings.packets, settings.duration_ns, sum(past.packets for past in pasts.values())
    )
    identities = itertools.count(continuation.identity + 1)
    writing = threading.Lock()
    paces = Paces(program, settings, demands or Demands(()))
    capture = LiveCapture(
        log,
        paces,
        stop,
        limit,
        writing,
        on_progress,
        statistics,
        pulse,
        identities,
        on_failure,
    )
    for each in settings.interfaces:
        if each.name not in sources:
            continue
        source = sources[each.name]
        if each.device is not None and each.device.has_kernel_filter:
            source.narrow(needed_packets(program.lftas, each.name))
        rings = source.rings if isinstance(source, FanoutSource) else (source,)
        lanes = [
            RingInterface(
                each.name,
                ring,
                *attach(program, each.name, log, engines, writing),
                each.promise_skew_ns,
                limit,
            )
            for ring in rings
        ]
        if isinstance(source, FanoutSource):
            ensure_orders_survive(each.name, program.lftas)
            shared = [Lane(lane) for lane in lanes]
            capture.interfaces.append(
                FanoutInterface(
                    each.name, source, shared, lanes[0].streams, each.promise_skew_ns, limit
                )
            )
        else:
            capture.interfaces += lanes
    for interface in capture.interfaces:
        past = pasts[interface.name]
        interface.go_on(past)
        if statistics is not None and past.counters:
            statistics.go_on(interface.name, past)
        if past.clock_offset_ns is not None:
            clocks[interface.name].go_on(past.clock_offset_ns)
    if on_ready is not None:
        on_ready()
    for each in settings.interfaces:
        if each.name in sources:
            continue
        problem, past = missing.get(each.name, ""), pasts[each.name]
        end_streams(log, continuation.streams(each.name), past, next(identities), now_ns)
        if statistics is not None:
            statistics.on_absent(each, past, problem)
        if problem:
            capture.tell_failure(each.name, problem)
    for source in sources.values():
        source.start()
    if on_begin is not None:
        on_begin()
    ready = time.perf_counter()
    capture.run(
        [LiveLoop(interface, capture, clocks[interface.name]) for interface in capture.interfaces]
    )
    ended = time.perf_counter()
    lftas = {
        stream: dict(counters)
        for past in pasts.values()
        for stream, counters in past.counters.items()
    }
    for interface in capture.interfaces:
        lftas |= interface.stream_counters()
    return Summary(
        interface_summaries(settings, capture.interfaces, statistics),
        lftas,
        dataclasses.asdict(log.stats),
        {"kernels_s": ready - began, "capture_s": ended - ready},
        stop.event.is_set(),
        logged=log.counters(),
        failed=failures(missing, settings, capture.interfaces, statistics),
    )
