"""The summary of a live capture over all daemons of its run."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gscope.capture.interface.summary import CaptureSummary, empty_summary
from gscope.capture.live.resume import with_earlier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.live.devices import LiveInputs
    from gscope.capture.live.interface_loop import LiveCapture
    from gscope.capture.live.live_interface import LiveInterface
    from gscope.capture.live.resume import Continuation
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.settings import CaptureSettings


def live_summary(
    capture: LiveCapture,
    settings: CaptureSettings,
    inputs: LiveInputs,
    continuation: Continuation,
    phases: dict[str, float],
) -> CaptureSummary:
    """Return the summary of a live run whose interfaces have all ended.

    Args:
        capture: the interfaces of this daemon, their log and their observers.
        settings: settings of the capture.
        inputs: the sources, and why interfaces had none.
        continuation: what earlier daemons of the run reported.
        phases: durations of the phases of this daemon, in seconds, by name.
    """
    lftas = {
        stream: dict(counters)
        for state in continuation.states.values()
        for stream, counters in state.counters.items()
    }
    for interface in capture.interfaces:
        lftas |= interface.stream_counters()
    statistics = capture.observers.statistics
    return CaptureSummary(
        _interface_summaries(settings, capture.interfaces, statistics),
        lftas,
        dataclasses.asdict(capture.log.stats),
        phases,
        capture.stop.event.is_set(),
        logged=capture.log.counters(),
        failed=_failures(inputs.missing, settings, capture.interfaces, statistics),
        sample_rate=settings.sample_rate,
        least_rate=1.0 if capture.control is None else capture.control.least_rate,
    )


def _interface_summaries(
    settings: CaptureSettings,
    interfaces: Sequence[LiveInterface],
    statistics: CaptureStatistics | None,
) -> tuple[InterfaceSummary, ...]:
    """Return a summary of each interface, also of those that ended in an earlier daemon."""
    present = {interface.name: _summary(interface) for interface in interfaces}
    summaries = [present.get(each.name) or empty_summary(each.name) for each in settings.interfaces]
    if statistics is None:
        return tuple(summaries)
    return tuple(with_earlier(each, statistics.earlier(each.name)) for each in summaries)


def _summary(interface: LiveInterface) -> InterfaceSummary:
    """Return the summary of this daemon; packets that arrived after the stop are not in it."""
    stats = dataclasses.replace(interface.source.stats)
    left = stats.received_packets - stats.dropped_packets - stats.filtered_packets
    left -= interface.packets
    if interface.is_drained:
        stats.received_packets -= left
        left = 0
    return interface.summary(stats, left, interface.all_damage)


def _failures(
    missing: Mapping[str, str],
    settings: CaptureSettings,
    interfaces: Sequence[LiveInterface],
    statistics: CaptureStatistics | None,
) -> dict[str, str]:
    """Return, by name, why interfaces ended before the run, in any of its daemons."""
    present = {interface.name: interface.failure for interface in interfaces}
    failed = {}
    for each in settings.interfaces:
        earlier = "" if statistics is None else statistics.earlier(each.name).get("failure", "")
        if problem := present.get(each.name, missing.get(each.name, earlier)):
            failed[each.name] = problem
    return failed
