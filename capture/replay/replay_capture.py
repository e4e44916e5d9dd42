"""Replay: files in, sealed batches and heartbeats in a stream log out; no process, no server."""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import TYPE_CHECKING

from gscope.capture.interface.base import attach
from gscope.capture.interface.build_lftas import compiled_engines
from gscope.capture.interface.summary import Summary
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest, WaitForRoom
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import BatchLimits, StreamLog
from gscope.capture.replay.open_inputs import Inputs
from gscope.capture.replay.trace_clock import ClockSettings, TraceClock, TraceInterface
from gscope.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.heartbeats.demands import Demands
    from gscope.capture.interface.build_lftas import EngineMaker
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.progress import Progress
    from gscope.capture.settings import CaptureSettings, InterfaceSettings
    from gscope.queries.plan.program import Program


class Stop:
    """Ends a replay from another thread, as if the input ended there."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._inputs: Inputs | None = None
        self._lock = threading.Lock()

    def request(self) -> None:
        """Stop now; also a read that waits for a pipe ends."""
        self.event.set()
        with self._lock:
            if self._inputs is not None:
                self._inputs.interrupt()

    def watch(self, inputs: Inputs | None) -> None:
        """Interrupt ``inputs`` on a request, also one that came before."""
        with self._lock:
            self._inputs = inputs
            if inputs is not None and self.event.is_set():
                inputs.interrupt()


def open_log(folder: Path, program: Program, settings: CaptureSettings) -> StreamLog:
    """The stream log of a run of ``program`` in ``folder``; it waits for files and sheds of live interfaces.

    Raises:
        UsageError: an interface of the program has no input, so that its streams would never end.
        StreamError: unusable, damaged or in use.
    """
    named = {interface.name for interface in settings.interfaces}
    missing = sorted({name for lfta in program.lftas for name in lfta.interfaces} - named)
    if missing:
        message = f"the program reads interfaces without input: {', '.join(missing)}"
        raise UsageError(message)
    latent = {interface.name for interface in settings.interfaces if interface.is_latent}
    specs = [
        StreamSpec.from_lfta(lfta, interface, is_latent=interface in latent)
        for lfta in program.lftas
        for interface in lfta.interfaces
    ]
    return StreamLog(
        folder,
        specs,
        consumers=[Consumer(consumer.name, consumer.streams) for consumer in settings.consumers],
        limits=BatchLimits(settings.batch_rows, settings.batch_bytes, settings.open_bytes),
        budget=(ShedOldest if settings.is_live else WaitForRoom)(settings.log_bytes),
    )


def replay_capture(
    program: Program,
    settings: CaptureSettings,
    log: StreamLog,
    *,
    engines: EngineMaker | None = None,
    inputs: Inputs | None = None,
    stop: Stop | None = None,
    on_progress: Callable[[Progress], None] | None = None,
    statistics: CaptureStatistics | None = None,
    demands: Demands | None = None,
) -> Summary:
    """Run the program's LFTAs over the settings' files into ``log``, and end all its streams.

    Args:
        program: the compiled query set.
        settings: what to read and how.
        log: of ``open_log``, empty; stays open.
        engines: makes the LFTAs of an interface; by default ``compiled_engines``.
        inputs: open already, still to be closed by the caller; by default opened and closed here.
        stop: to end early.
        on_progress: told at every heartbeat.
        statistics: where others see how it goes.
        demands: what readers want to be promised; None where they cannot ask.

    Raises:
        CaptureError: a file cannot be opened, or none is a capture; nothing was read.
        StreamError: the log cannot be written.
    """
    if inputs is None:
        with Inputs(settings) as opened:
            return replay_capture(
                program,
                settings,
                log,
                engines=engines,
                inputs=opened,
                stop=stop,
                on_progress=on_progress,
                statistics=statistics,
                demands=demands,
            )
    stop = stop or Stop()
    began = time.perf_counter()
    stop.watch(inputs)
    try:
        engines = engines or compiled_engines(program, settings)
        interfaces = [
            _interface(program, interface, inputs, log, engines)
            for interface in settings.interfaces
        ]
        ready = time.perf_counter()
        clock = TraceClock(
            interfaces,
            log,
            ClockSettings(
                settings.heartbeat_interval_ns,
                settings.heartbeat_every_tick,
                settings.speed,
                settings.heartbeat_mode,
            ),
            stop=stop.event,
            on_progress=on_progress,
            statistics=statistics,
            demands=demands,
        )
        clock.run()
    finally:
        stop.watch(None)
    ended = time.perf_counter()
    return Summary(
        tuple(
            interface.summary(
                interface.source.stats, interface.unread_packets, tuple(interface.source.damage)
            )
            for interface in interfaces
        ),
        {k: v for interface in interfaces for k, v in interface.stream_counters().items()},
        dataclasses.asdict(log.stats),
        {"kernels_s": ready - began, "capture_s": ended - ready},
        stop.event.is_set(),
        dict(inputs.refused),
        logged=log.counters(),
    )


def _interface(
    program: Program,
    settings: InterfaceSettings,
    inputs: Inputs,
    log: StreamLog,
    engines: EngineMaker,
) -> TraceInterface:
    runtime, streams = attach(program, settings.name, log, engines)
    skew_ns = inputs.skew_ns(settings)
    return TraceInterface(settings.name, inputs[settings.name], runtime, streams, skew_ns)
