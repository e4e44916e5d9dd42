"""A feed: the LFTAs of one interface and the streams they write, for any packet source."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from contextlib import nullcontext
from typing import TYPE_CHECKING

from gscope.capture.interface.summary import InterfaceSummary
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.streams.messages import Hop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from gscope.capture.interface.build_lftas import LftaEngineFactory
    from gscope.capture.interface.demand_deadline import OnDemand
    from gscope.capture.interface.source_state import SourceState
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.log.log import StreamLog
    from gscope.capture.shedding.moving_thresholds import MovingThresholds
    from gscope.capture.sources.base import SourceStats
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.thresholds import ThresholdSchedule


class Feed(ABC):
    """The common part of a replayed and a live interface.

    Args:
        name: name of the interface.
        runtime: the LFTAs of the interface.
        streams: for each LFTA, by name, the stream that it writes.

    Attributes:
        late_packets: number of packets left out before the LFTAs because they step back too far.
        needed_skew_ns: the skew at which none of these would have been late; 0 if unknown.
        heartbeats: number of heartbeats sent.
        worked_ns: time that the LFTAs have taken, including the writing of their output.
        on_demand: what readers and LFTAs wait for; None if heartbeats are not sent on demand.
        thresholds: the thresholds that follow the load; None if none does.
    """

    def __init__(self, name: str, runtime: LftaEngine, streams: Mapping[str, str]) -> None:
        self.name = name
        self.runtime = runtime
        self.streams = streams
        self.late_packets = 0
        self.needed_skew_ns = 0
        self.heartbeats = 0
        self.worked_ns = 0
        self.on_demand: OnDemand | None = None
        self.thresholds: MovingThresholds | None = None
        self._tested_ns = MIN_TIME_NS

    @property
    def answers_total(self) -> int:
        """Number of heartbeats that answered the demand of a reader."""
        return 0 if self.on_demand is None else self.on_demand.answers_total

    @abstractmethod
    def source_state(self) -> SourceState:
        """Return the state of the source; for the thread that runs the interface."""

    @abstractmethod
    def current_summary(self) -> InterfaceSummary:
        """Return the account of all packets so far; for the thread that runs the interface."""

    def process(self, block: Block, start: int, until_ns: int) -> int:
        """Run the LFTAs over packets of a block; see ``LftaEngine.process``."""
        if self.thresholds is not None and block.count:
            greatest_ns = block.time_extent_ns[1]
            self.thresholds.reach(greatest_ns)
            self._tested_ns = max(self._tested_ns, greatest_ns)
        began_ns = time.perf_counter_ns()
        reached = self.runtime.process(block, start, until_ns)
        self.worked_ns += time.perf_counter_ns() - began_ns
        return reached

    @property
    def moves(self) -> bool:
        """Whether thresholds of the interface follow the load."""
        return self.thresholds is not None

    def move_threshold(self, component: int, threshold: int, border: Callable[[int], int]) -> None:
        """Let the threshold of a component follow the load.

        Args:
            component: its number.
            threshold: the threshold for the next packet if it falls, else for the next epoch.
            border: returns the time at which the next epoch after a time begins.
        """
        assert self.thresholds is not None
        if not self.thresholds.has(component):
            return
        held, bound_ns = self.thresholds.threshold(component), self.runtime.bound_ns
        if threshold < held:
            self.thresholds.lower(component, threshold, bound_ns, lambda: self._tested_ns)
        elif threshold > held and not self.thresholds.is_rising(component):
            from_ns = border(max(self._tested_ns, bound_ns))
            self.thresholds.let_rise(component, threshold, bound_ns, from_ns)

    def move_thresholds(
        self, thresholds: Sequence[int], borders: Sequence[Callable[[int], int]]
    ) -> None:
        """Let the thresholds of all components follow the load; see ``move_threshold``."""
        for component, (threshold, border) in enumerate(zip(thresholds, borders, strict=True)):
            self.move_threshold(component, threshold, border)

    def threshold_changes(self, thresholds: Sequence[int]) -> dict[str, int]:
        """Return the LFTAs whose threshold ``move_thresholds`` would change, with the new one."""
        return {} if self.thresholds is None else self.thresholds.changes(thresholds)

    def schedule(self, lfta: str) -> ThresholdSchedule | None:
        """Return the schedule of an LFTA's thresholds for a heartbeat; None if they do not move."""
        if self.thresholds is None:
            return None
        return self.thresholds.schedule(lfta, self.runtime.bound_ns)

    def losses(self) -> Losses | None:
        """Return the packets that are lost so far, for a heartbeat; None if none are."""
        return None

    def counters(self, lfta: str) -> tuple[tuple[str, int], ...]:
        """Return the counters of an LFTA and its interface, as in heartbeats and the summary."""
        packets, tuples = self.runtime.interface_counters, self.runtime.lfta_counters(lfta)
        return (
            ("packets_total", packets.packets + self.late_packets),
            ("late_packets_total", packets.late_packets + self.late_packets),
            ("shed_packets_total", packets.shed_packets),
            ("malformed_packets_total", sum(packets.malformed.values())),
            ("unsupported_packets_total", sum(packets.unsupported.values())),
            ("tuples_in_total", tuples.matched_tuples),
            ("tuples_out_total", tuples.out_tuples),
            ("evicted_groups_total", tuples.evicted_groups),
            ("live_groups", tuples.live_groups),
            ("without_epoch_tuples_total", tuples.without_epoch_tuples),
            ("out_of_order_tuples_total", tuples.out_of_order_tuples),
        )

    def stream_counters(self) -> dict[str, dict[str, int]]:
        """Return the counters of the LFTA of each stream."""
        return {stream: dict(self.counters(lfta)) for lfta, stream in self.streams.items()}

    def make_heartbeats(
        self,
        clock_ns: int,
        skew_ns: int,
        *,
        changes: Mapping[str, int] | None = None,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> list[StreamHeartbeat]:
        """Return a heartbeat for each stream: packets before ``clock_ns - skew_ns`` are now late.

        Emit the groups that this closes. The first hop of the heartbeat's trace holds the time that
        it took. ``changes`` are thresholds, by LFTA, that will be taken over after it.
        """
        self.heartbeats += 1
        arrived_ns, begin_s = wall_ns(), monotonic()
        promises = self.runtime.heartbeat(clock_ns, skew_ns)
        worked_ns = int((monotonic() - begin_s) * 1e9)
        losses = self.losses()
        heartbeats = []
        for lfta, punctuations in promises.items():
            stream = self.streams[lfta]
            hop = Hop(stream, arrived_ns, 0, worked_ns, self.counters(lfta))
            schedule = self.schedule(lfta)
            if schedule is not None and changes and lfta in changes:
                schedule = schedule.foretelling(changes[lfta], self.runtime.bound_ns)
            heartbeats.append(
                StreamHeartbeat(stream, punctuations, (hop,), schedule, losses=losses)
            )
        return heartbeats

    def summary(self, stats: SourceStats, unread: int, damage: tuple[str, ...]) -> InterfaceSummary:
        """Return the account of all packets of the interface."""
        counts = self.runtime.interface_counters
        return InterfaceSummary(
            self.name,
            received=stats.received_packets,
            dropped=stats.dropped_packets,
            filtered=stats.filtered_packets,
            shed=counts.shed_packets,
            late=self.late_packets + counts.late_packets,
            malformed=counts.malformed,
            unsupported=counts.unsupported,
            accepted=counts.accepted_packets,
            unread=unread,
            damage=damage,
            needed_skew_ns=self.needed_skew_ns,
            unread_links=dict(stats.unread_links),
        )


def attach(
    program: Program,
    interface: str,
    log: StreamLog,
    engines: LftaEngineFactory,
    writing: AbstractContextManager[object] | None = None,
    lane: int = 0,
) -> tuple[LftaEngine, dict[str, str]]:
    """Return the LFTAs of ``interface``, which write into ``log``, and the stream of each by name.

    Args:
        program: the compiled query set.
        interface: name of the interface.
        log: the stream log; it has a stream for each LFTA and interface.
        engines: builds the LFTAs.
        writing: lock to hold while rows are appended; None if only one thread writes.
        lane: number of the lane, if the interface has several.
    """
    writing = writing or nullcontext()
    streams = {
        lfta.name: lfta.stream(interface) for lfta in program.lftas if interface in lfta.interfaces
    }

    def emit(lfta: str, batch: ColumnBatch) -> None:
        try:
            with writing:
                log.append(streams[lfta], batch.to_arrow(), batch.extents)
        finally:
            batch.release()

    engine = engines(interface, emit)
    engine.begin_lane(lane)
    return engine, streams
