"""What became of the packets of a live capture, at its end."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from gscope.capture.live.resume import nothing_from, with_earlier

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.live.live_interface import LiveInterface
    from gscope.capture.process.statistics import CaptureStatistics
    from gscope.capture.settings import CaptureSettings


def interface_summaries(
    settings: CaptureSettings,
    interfaces: Sequence[LiveInterface],
    statistics: CaptureStatistics | None,
) -> tuple[InterfaceSummary, ...]:
    """Those of the whole run, also of interfaces that ended in an earlier daemon."""
    present = {interface.name: _summary(interface) for interface in interfaces}
    summaries = [present.get(each.name) or nothing_from(each.name) for each in settings.interfaces]
    if statistics is None:
        return tuple(summaries)
    return tuple(with_earlier(each, statistics.earlier(each.name)) for each in summaries)


def _summary(interface: LiveInterface) -> InterfaceSummary:
    """What came after the stop was not received: nobody asked for it."""
    stats = dataclasses.replace(interface.source.stats)
    left = stats.received_packets - stats.dropped_packets - stats.filtered_packets
    left -= interface.packets
    if interface.is_drained:
        stats.received_packets -= left
        left = 0
    return interface.summary(stats, left, interface.all_damage)


def failures(
    missing: Mapping[str, str],
    settings: CaptureSettings,
    interfaces: Sequence[LiveInterface],
    statistics: CaptureStatistics | None,
) -> dict[str, str]:
    """Why interfaces ended before the run, in whichever daemon, by name."""
    present = {interface.name: interface.failure for interface in interfaces}
    failed = {}
    for each in settings.interfaces:
        earlier = "" if statistics is None else statistics.earlier(each.name).get("failure", "")
        if problem := present.get(each.name, missing.get(each.name, earlier)):
            failed[each.name] = problem
    return failed
