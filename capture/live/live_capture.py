"""A whole live capture: set up, resume, capture, summarise; without the process and its server."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.live.heartbeat_schedule import HeartbeatSchedules
from gscope.capture.live.interface_loop import LiveCapture, LiveLoop
from gscope.capture.live.open_interfaces import open_interface
from gscope.capture.live.resume import Continuation
from gscope.capture.live.stop import CaptureLimit, LiveStop
from gscope.capture.live.summary import live_summary
from gscope.capture.live.uncaptured_interfaces import end_uncaptured
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.shedding.load_control import LoadControl
from gscope.capture.shedding.settings import SheddingMode
from gscope.queries.plan.sampling.moving_samples import moving_samples

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.interface.build_lftas import LftaEngineFactory
    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.live.clock import LiveClock
    from gscope.capture.live.devices import LiveInputs
    from gscope.capture.log.log import StreamLog
    from gscope.capture.settings import CaptureSettings
    from gscope.queries.plan.program import Program


def capture_live(
    program: Program,
    settings: CaptureSettings,
    log: StreamLog,
    inputs: LiveInputs,
    *,
    engines: LftaEngineFactory | None = None,
    stop: LiveStop | None = None,
    observers: CaptureObservers | None = None,
    demands: Demands | None = None,
) -> CaptureSummary:
    """Run the program's LFTAs over live interfaces into ``log`` until the stop; end its streams.

    Args:
        program: the compiled query set.
        settings: what to capture and how.
        log: the log that ``open_log`` returned; stays open. If it holds messages, the capture
            resumes from them.
        inputs: the sources of the interfaces. The streams of an interface without one are ended.
        engines: builds the LFTAs of an interface; None for ``compiled_engines``.
        stop: ends the capture; None if only the limits of the settings do.
        observers: what to notify of the capture's progress; None for nothing.
        demands: bounds that readers ask for; None if readers cannot ask.

    Raises:
        StreamError: the log cannot be written.
    """
    stop = stop or LiveStop()
    observers = observers or CaptureObservers()
    began = time.perf_counter()
    inputs.start(program, settings)
    engines = engines or compiled_engines(
        program, settings, observers.packet_file, observers.on_compile, is_live=True
    )
    clocks = {name: inputs.make_clock() for name in inputs.sources}
    now_ns = max((clock.now_ns() for clock in clocks.values()), default=0)
    names = [each.name for each in settings.interfaces]
    continuation = Continuation(log, program, names, now_ns)
    earlier_packets = sum(state.packets for state in continuation.states.values())
    capture = LiveCapture(
        log,
        HeartbeatSchedules(program, settings, demands or Demands(())),
        stop,
        CaptureLimit(stop, settings.packets, settings.duration_ns, earlier_packets),
        observers,
        itertools.count(continuation.identity + 1),
    )
    capture.control = _control(program, settings, log)
    if observers.statistics is not None:
        observers.statistics.control = capture.control
    capture.interfaces += [
        open_interface(
            program, each, inputs.sources[each.name], engines, capture, clocks[each.name]
        )
        for each in settings.interfaces
        if each.name in inputs.sources
    ]
    _resume(capture, continuation, clocks)
    observers.on_ready()
    end_uncaptured(capture, settings, inputs, continuation)
    inputs.prepare()
    for interface in capture.interfaces:
        interface.on_started(inputs.starts[interface.name].real_ns)
    observers.on_begin()
    ready = time.perf_counter()
    capture.run(
        [
            LiveLoop(each, capture, clocks[each.name], inputs.starts[each.name].monotonic_ns)
            for each in capture.interfaces
        ]
    )
    phases = {"kernels_s": ready - began, "capture_s": time.perf_counter() - ready}
    return live_summary(capture, settings, inputs, continuation, phases)


def _control(program: Program, settings: CaptureSettings, log: StreamLog) -> LoadControl | None:
    """Return the rates that follow the load; None if they are not asked for."""
    shedding = settings.shedding
    if shedding is None or shedding.mode is not SheddingMode.AUTO:
        return None
    samples, _ = moving_samples(program)
    earlier = {s: beat.schedule for s, beat in log.latest.items() if beat.schedule is not None}
    return LoadControl(
        samples,
        shedding.min_rate,
        lambda: log.used_bytes / settings.log_bytes,
        earlier,
        lambda: log.least_rate,
    )


def _resume(
    capture: LiveCapture, continuation: Continuation, clocks: Mapping[str, LiveClock]
) -> None:
    """Let interfaces, counters and clocks continue from what earlier daemons reported."""
    statistics = capture.observers.statistics
    for interface in capture.interfaces:
        state = continuation.states[interface.name]
        interface.resume(state)
        if statistics is not None and state.counters:
            statistics.resume(interface.name, state)
        if state.clock_offset_ns is not None:
            clocks[interface.name].resume(state.clock_offset_ns)
