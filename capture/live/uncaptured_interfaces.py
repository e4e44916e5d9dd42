"""Interfaces of a live run that this daemon does not capture: ended, or without their device.

Their streams end, so that no window waits for them. A last heartbeat reports what earlier daemons
counted, and what was lost with them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.punctuation import NO_BOUND
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.streams.loss_reasons import RESTART
from gscope.queries.streams.losses import LossPeriod
from gscope.queries.streams.messages import Hop

if TYPE_CHECKING:
    from gscope.capture.live.devices import LiveInputs
    from gscope.capture.live.interface_loop import LiveCapture
    from gscope.capture.live.resume import Continuation
    from gscope.capture.settings import CaptureSettings, InterfaceSettings


def end_uncaptured(
    capture: LiveCapture,
    settings: CaptureSettings,
    inputs: LiveInputs,
    continuation: Continuation,
) -> None:
    """End the streams of interfaces without a source, and report those whose device is missing.

    Raises:
        StreamError: the log cannot be written.
    """
    for each in settings.interfaces:
        if each.name in inputs.sources:
            continue
        _end_streams(capture, each, continuation)
        problem, state = inputs.missing.get(each.name, ""), continuation.states[each.name]
        if capture.observers.statistics is not None:
            capture.observers.statistics.on_absent(each, state, problem)
        if problem:
            capture.observers.on_failure(each.name, problem)


def _end_streams(
    capture: LiveCapture, interface: InterfaceSettings, continuation: Continuation
) -> None:
    """End the streams of ``interface``; those that have ended are left as they are."""
    state, now_ns = continuation.states[interface.name], continuation.now_ns
    has_begun = state.clock_ns != NO_BOUND
    clock_ns = state.clock_ns if has_begun else now_ns
    losses = None
    if state.counters:
        first_ns = clock_ns - interface.promise_skew_ns if has_begun else MIN_TIME_NS
        period = LossPeriod(RESTART, first_ns, max(first_ns, now_ns))
        losses = state.losses.with_period(period)
    latest = capture.log.latest
    heartbeats = []
    for stream, counters in state.counters.items():
        # The log adds the promises that were made before. It deletes the heartbeat that had the
        # schedule of thresholds and the losses, so this one has them as well.
        schedule = latest[stream].schedule if stream in latest else None
        hop = Hop(stream, now_ns, 0, 0, tuple(counters.items()))
        heartbeats.append(StreamHeartbeat(stream, (), (hop,), schedule, losses=losses))
    streams = continuation.streams(interface.name)
    capture.log.end(streams, next(capture.identities), clock_ns, heartbeats)
