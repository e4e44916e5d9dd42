"""Sets up the live interfaces of a capture: the LFTAs of each, and its lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.interface.base import attach
from gscope.capture.live.fanout_interface import FanoutInterface, Lane, ensure_orders_survive
from gscope.capture.live.live_interface import RingInterface
from gscope.capture.sources.af_packet.fanout_rings import FanoutSource

if TYPE_CHECKING:
    from gscope.capture.interface.build_lftas import LftaEngineFactory
    from gscope.capture.live.clock import LiveClock
    from gscope.capture.live.interface_loop import LiveCapture
    from gscope.capture.live.live_interface import LiveInterface
    from gscope.capture.settings import InterfaceSettings
    from gscope.capture.sources.base import LiveSource
    from gscope.queries.plan.program import Program


def open_interface(
    program: Program,
    settings: InterfaceSettings,
    source: LiveSource | FanoutSource,
    engines: LftaEngineFactory,
    capture: LiveCapture,
    clock: LiveClock,
) -> LiveInterface:
    """Return an interface whose LFTAs are ready for the packets of ``source``.

    Args:
        program: the compiled query set.
        settings: settings of the interface.
        source: its source, which lets packets in already.
        engines: builds the LFTAs.
        capture: state that all interfaces share.
        clock: the clock of the interface.

    Raises:
        UsageError: the interface has lanes, and an LFTA declares an order, which needs one thread.
    """
    name, skew_ns = settings.name, settings.promise_skew_ns

    def over(ring: LiveSource, lane: int = 0) -> RingInterface:
        runtime, streams = attach(program, name, capture.log, engines, capture.writing, lane)
        interface = RingInterface(name, ring, runtime, streams, skew_ns, capture.limit, clock)
        if capture.control is not None:
            interface.thresholds = capture.control.begin(name, streams, runtime.set_threshold)
        return interface

    if not isinstance(source, FanoutSource):
        return over(source)
    rings = [over(ring, lane) for lane, ring in enumerate(source.rings)]
    ensure_orders_survive(name, program.lftas)
    lanes = [Lane(ring) for ring in rings]
    return FanoutInterface(name, source, lanes, rings[0].streams, skew_ns, capture.limit)
