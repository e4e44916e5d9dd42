"""A whole replay, from captures to a stream log; without the process and its server."""

from __future__ import annotations

import dataclasses
import time
from contextlib import nullcontext
from typing import TYPE_CHECKING

from gscope.capture.interface.base import attach
from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.interface.division import with_block_bytes
from gscope.capture.interface.summary import CaptureSummary
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay.open_inputs import OpenInputs
from gscope.capture.replay.replay_stop import ReplayStop
from gscope.capture.replay.trace_clock import ClockSettings, TraceClock
from gscope.capture.replay.trace_interface import TraceInterface

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.interface.build_lftas import LftaEngineFactory
    from gscope.capture.log.log import StreamLog
    from gscope.capture.settings import CaptureSettings, InterfaceSettings
    from gscope.queries.plan.program import Program


def replay_capture(
    program: Program,
    settings: CaptureSettings,
    log: StreamLog,
    *,
    engines: LftaEngineFactory | None = None,
    inputs: OpenInputs | None = None,
    stop: ReplayStop | None = None,
    observers: CaptureObservers | None = None,
    demands: Demands | None = None,
) -> CaptureSummary:
    """Run the program's LFTAs over the settings' captures into ``log``, and end all its streams.

    Args:
        program: the compiled query set.
        settings: what to read and how.
        log: the log that ``open_log`` returned, empty; stays open.
        engines: builds the LFTAs of an interface; None for ``compiled_engines``.
        inputs: the open inputs, which the caller closes; None to open and close them here.
        stop: ends the replay before the end of the input; None if nothing does.
        observers: what to notify of the replay's progress; None for nothing.
        demands: bounds that readers ask for; None if readers cannot ask.

    Raises:
        CaptureError: a file cannot be opened, or none is a capture; nothing was read.
        StreamError: the log cannot be written.
    """
    stop = stop or ReplayStop()
    settings = with_block_bytes(program, settings)
    with OpenInputs(settings, stop) if inputs is None else nullcontext(inputs) as opened:
        began = time.perf_counter()
        with stop.watching(opened):
            seen = observers or CaptureObservers()
            engines = engines or compiled_engines(
                program, settings, seen.packet_file, seen.on_compile
            )
            clock_settings = _clock_settings(settings)
            interfaces = [
                _interface(program, interface, opened, log, engines, clock_settings)
                for interface in settings.interfaces
            ]
            ready = time.perf_counter()
            clock = TraceClock(
                interfaces,
                log,
                clock_settings,
                stop=stop.event,
                observers=observers,
                demands=demands,
            )
            clock.run()
        phases = {"kernels_s": ready - began, "capture_s": time.perf_counter() - ready}
        refused = dict(opened.refused)
        summary = _summary(interfaces, log, phases, refused, is_stopped=stop.event.is_set())
        return dataclasses.replace(summary, sample_rate=settings.sample_rate)


def _clock_settings(settings: CaptureSettings) -> ClockSettings:
    return ClockSettings(
        settings.heartbeat_interval_ns,
        settings.heartbeat_every_tick,
        settings.speed,
        settings.heartbeat_mode,
    )


def _interface(
    program: Program,
    settings: InterfaceSettings,
    inputs: OpenInputs,
    log: StreamLog,
    engines: LftaEngineFactory,
    clock: ClockSettings,
) -> TraceInterface:
    runtime, streams = attach(program, settings.name, log, engines)

    def skew_ns() -> int | None:
        # Heartbeats at every tick, and those of a replay with a speed, come at times of their own.
        is_waited_for = not clock.may_run_ahead or inputs.knows_skew(settings)
        return inputs.skew_ns(settings) if is_waited_for else None

    return TraceInterface(settings.name, inputs[settings.name], runtime, streams, skew_ns)


def _summary(
    interfaces: Sequence[TraceInterface],
    log: StreamLog,
    phases: dict[str, float],
    refused: dict[str, str],
    *,
    is_stopped: bool,
) -> CaptureSummary:
    return CaptureSummary(
        tuple(interface.current_summary() for interface in interfaces),
        {k: v for interface in interfaces for k, v in interface.stream_counters().items()},
        dataclasses.asdict(log.stats),
        phases,
        is_stopped,
        refused,
        logged=log.counters(),
    )
