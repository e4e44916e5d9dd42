"""One live interface: its source, its LFTAs and the time reached."""

from __future__ import annotations

import time
from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.interface.base import Feed
from gscope.capture.interface.loss_meter import LossMeter
from gscope.capture.interface.resume_state import CLOCK_OFFSET, ResumeState
from gscope.capture.interface.source_state import SourceState
from gscope.capture.shedding.load_control import InterfaceLoad
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.loss_reasons import RESTART, UNREAD
from gscope.queries.streams.losses import NO_LOSSES, LossPeriod, united

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.live.clock import LiveClock
    from gscope.capture.live.stop import CaptureLimit
    from gscope.capture.sources.base import LiveDevice, LiveSource
    from gscope.queries.streams.losses import Losses


class LiveInterface(Feed):
    """One live interface: its source, its LFTAs and the time reached; for use by one thread.

    Args:
        name: name of the interface.
        source: the open source, which its owner closes.
        runtime: the LFTAs of the interface.
        streams: for each LFTA, by name, the stream that it writes.
        skew_ns: how far promises stay behind the clock; 0 with timestamps on arrival, where a
            packet that comes later than promised gets the time promised.
        limit: the limit of packets.

    Attributes:
        packets: number of packets processed.
        earliest_ns: earliest time of a packet of the last block.
        latest_ns: latest time of a packet; ``MIN_TIME_NS`` if there was none.
        largest_lag_ns: longest time from a packet's timestamp until it was taken.
        clock_ns: time of the last heartbeat.
        dropped_packets: packets dropped by the kernel, as of the last ``update_dropped_packets``.
        is_drained: whether all packets from before the stop were processed.
        resumed: what earlier daemons of the run reported.
        clock_offset_ns: real time minus monotonic time, by the interface's clock.
        damage: sentences on what went wrong.
        failure: why the interface ended before the others, or captures nothing at the end; "" while
            it captures.
    """

    def __init__(
        self,
        name: str,
        source: LiveDevice,
        runtime: LftaEngine,
        streams: Mapping[str, str],
        skew_ns: int,
        limit: CaptureLimit,
    ) -> None:
        super().__init__(name, runtime, streams)
        self.source = source
        self.skew_ns = skew_ns
        self.packets = 0
        self.earliest_ns = MAX_TIME_NS
        self.latest_ns = MIN_TIME_NS
        self.largest_lag_ns = 0
        self.clock_ns = MIN_TIME_NS
        self.dropped_packets = 0
        self.is_drained = False
        self.damage: list[str] = []
        self.failure = ""
        self.resumed = ResumeState()
        self.clock_offset_ns = 0
        self._limit = limit
        self._other_losses = NO_LOSSES

    def resume(self, state: ResumeState) -> None:
        """Keep the promises and counters of earlier daemons; called before packets are taken."""
        self.resumed = state
        self._other_losses = state.losses
        if state.clock_ns != MIN_TIME_NS:
            self.clock_ns = state.clock_ns
            self.runtime.heartbeat(state.clock_ns, self.skew_ns)

    def on_started(self, now_ns: int) -> None:
        """Note that packets are let in.

        What came since an earlier daemon's last promise is lost.
        """
        if self.resumed.counters:
            self.resume_thresholds(max(now_ns, self.clock_ns) + 1)
            self._note_loss(RESTART, self.runtime.bound_ns, now_ns, None)

    def resume_thresholds(self, clear_ns: int) -> None:
        """Continue from the thresholds of earlier daemons.

        No packet from ``clear_ns`` on is tested.
        """
        if self.thresholds is not None:
            self.thresholds.resume(self.runtime.bound_ns, clear_ns)

    def note_unread(self, now_ns: int) -> None:
        """Note the packets that had arrived before the stop and were not processed."""
        stats = self.source.stats
        unread = stats.received_packets - stats.dropped_packets - stats.filtered_packets
        unread -= self.packets
        if not self.is_drained and unread > 0:
            self._note_loss(UNREAD, self.runtime.bound_ns, now_ns, unread)

    def _note_loss(self, reason: str, first_ns: int, last_ns: int, packets: int | None) -> None:
        period = LossPeriod(reason, first_ns, max(first_ns, last_ns), packets)
        self._other_losses = self._other_losses.with_period(period)

    @property
    def ring_losses(self) -> tuple[Losses, ...]:
        """The packets that the kernel dropped, for each ring."""
        return ()

    def losses(self) -> Losses | None:
        """See ``Feed``; the losses of all daemons of the run."""
        return united((self._other_losses, *self.ring_losses)) or None

    def counters(self, lfta: str) -> tuple[tuple[str, int], ...]:
        """See ``Feed``; the counters cover all daemons of the run."""
        now = (*super().counters(lfta), (CLOCK_OFFSET, self.clock_offset_ns))
        return self.resumed.added(self.streams[lfta], now)

    @abstractmethod
    def take(self, timeout_s: float, until_ns: int = MAX_TIME_NS) -> bool:
        """Process packets as they arrive, except those at or after ``until_ns``.

        Args:
            timeout_s: longest time to wait for packets, in seconds; ``wake`` ends the wait.
            until_ns: time of the stop; once given, all later calls must give it.

        Returns:
            Whether packets arrived in time.

        Raises:
            CaptureError: the interface has disappeared for good.
            StreamError: the log cannot be written.
        """

    @abstractmethod
    def is_idle(self) -> bool:
        """Return whether no packet is waiting: a fact at the time of the call, not a timeout."""

    @abstractmethod
    def has_passed(self, time_ns: int) -> bool:
        """Return whether no packet from before ``time_ns`` can wait if packets are in order."""

    @abstractmethod
    def wake(self) -> None:
        """Make a ``take`` that waits, or the next one that would, return; for any thread."""

    @property
    def processed_ns(self) -> int:
        """Time up to which packets in order were processed, as of the last ``is_idle``."""
        return self.latest_ns

    def note_lag(self, now_ns: int) -> None:
        """Note the age of the packets that were just taken, by the clock that stamped them."""
        self.largest_lag_ns = max(self.largest_lag_ns, now_ns - self.earliest_ns)

    def load(self) -> InterfaceLoad:
        """Return how loaded the interface is."""
        self.update_dropped_packets()
        occupancy = self.source.ring_use().occupancy
        return InterfaceLoad(occupancy, self.dropped_packets, (self.busy_ns,))

    @property
    def busy_ns(self) -> int:
        """Time for which its thread has been busy, in nanoseconds, from any moment on.

        It is all time in which the thread does not wait for packets: with heartbeats, and with the
        time for which the system lets others run.
        """
        waited_ns = self.source.stats.waited_ns
        return self.worked_ns if waited_ns is None else time.monotonic_ns() - waited_ns

    def start_reading(self) -> None:
        """Start taking packets."""

    def stop_reading(self) -> None:
        """Stop taking packets; may be called twice."""

    def source_state(self) -> SourceState:
        """See ``Feed``."""
        stats, ring = self.source.stats, self.source.ring_use()
        return SourceState(
            device=self.source.device,
            state=self.source.state().value,
            received_bytes=stats.received_bytes,
            frozen_total=stats.frozen_total,
            interruptions_total=stats.interruptions_total,
            ring_bytes=ring.size_bytes,
            ring_occupancy=ring.occupancy,
            skew_ns=self.skew_ns,
            largest_lag_ns=self.largest_lag_ns,
            last_packet_ns=_known(self.latest_ns),
            clock_ns=_known(self.clock_ns),
            failure=self.failure,
        )

    def current_summary(self) -> InterfaceSummary:
        """See ``Feed``; packets that were received and not processed are unread."""
        stats = self.source.stats
        left = stats.received_packets - stats.dropped_packets - stats.filtered_packets
        return self.summary(stats, left - self.packets, self.all_damage)

    @property
    def all_damage(self) -> tuple[str, ...]:
        """``damage`` and ``failure``, or what ``failure`` would be if the capture ended now."""
        failure = self.failure or self.source.failure
        return (*self.damage, *((failure,) if failure else ()))

    def update_dropped_packets(self) -> None:
        """Update ``dropped_packets`` from the source."""
        self.dropped_packets = self.source.stats.dropped_packets


class RingInterface(LiveInterface):
    """A live interface with one ring, whose packets are processed by the thread that takes them.

    Args:
        clock: the clock of the interface.
    """

    def __init__(
        self,
        name: str,
        source: LiveSource,
        runtime: LftaEngine,
        streams: Mapping[str, str],
        skew_ns: int,
        limit: CaptureLimit,
        clock: LiveClock,
    ) -> None:
        super().__init__(name, source, runtime, streams, skew_ns, limit)
        self._packets = source
        self._meter = LossMeter(skew_ns, clock.real_ns, clock.monotonic_ns)

    @property
    def ring_losses(self) -> tuple[Losses, ...]:
        """See ``LiveInterface``."""
        return (self._meter.losses,)

    def take(self, timeout_s: float, until_ns: int = MAX_TIME_NS) -> bool:
        """See ``LiveInterface``: takes the packets of one block."""
        began = self._meter.now()
        block = self._packets.next_block(timeout_s)
        self._meter.on_read(began, self._packets.stats, self.runtime.bound_ns)
        if block is None:
            return False
        try:
            block.count = self._limit.admit(block.count)
            if block.count:
                if not self.skew_ns:
                    times = block.time_ns[: block.count]
                    np.maximum(times, self.runtime.bound_ns, out=times)
                least_ns, greatest_ns = block.time_extent_ns
                self.earliest_ns = least_ns
                self.latest_ns = max(self.latest_ns, greatest_ns)
                self.packets += self.process(block, 0, until_ns)
        finally:
            self._packets.release(block)
        return True

    def is_idle(self) -> bool:
        """See ``LiveInterface``."""
        return self._packets.is_idle()

    def has_passed(self, time_ns: int) -> bool:
        """See ``LiveInterface``."""
        return self.latest_ns >= time_ns

    def wake(self) -> None:
        """See ``LiveInterface``."""
        self._packets.wake()


def _known(time_ns: int) -> int | None:
    return None if time_ns == MIN_TIME_NS else time_ns
