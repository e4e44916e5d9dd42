"""When the kernel dropped packets of one ring, as far as its counter says.

The counter is cumulative and is read after each block. A packet that was counted by this reading
and not by the one before was dropped between the two. It has a time of that period, or an earlier
one by the delay between its timestamp and the ring, which the skew covers::

    first = max(previous reading - skew, promised bound)
    last  = this reading

Packets below the bound would have been late. So a loss never begins below what was promised before
it was known, and the list of a heartbeat is final below its bound: a drop that no reading has
counted yet came after the last reading, and promises stay behind that, unless the ring was found
empty later, in which case nothing was dropped in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.streams.loss_reasons import KERNEL
from gscope.queries.streams.losses import NO_LOSSES, LossPeriod

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.sources.base import SourceStats
    from gscope.queries.streams.losses import Losses


class LossMeter:
    """The losses of one ring; for use by the thread that takes its packets.

    Args:
        skew_ns: the longest delay between the timestamp of a packet and its arrival.
        wall_ns: returns real time in nanoseconds since 1970, by the clock that stamps packets.
        monotonic_ns: returns nanoseconds of a clock that is never stepped.

    Attributes:
        losses: the losses so far; any thread may read it.
    """

    def __init__(
        self, skew_ns: int, wall_ns: Callable[[], int], monotonic_ns: Callable[[], int]
    ) -> None:
        self.losses: Losses = NO_LOSSES
        self._skew_ns = skew_ns
        self._wall_ns = wall_ns
        self._monotonic_ns = monotonic_ns
        self._dropped_packets = 0
        self._read_ns = wall_ns()
        self._read_monotonic_ns = monotonic_ns()

    def now(self) -> tuple[int, int]:
        """Return the time by both clocks, to be given to ``on_read``."""
        return self._wall_ns(), self._monotonic_ns()

    def on_read(self, began: tuple[int, int], stats: SourceStats, bound_ns: int) -> None:
        """Note the counter of a source that has just been read.

        Args:
            began: a time before the counter was read, of ``now``.
            stats: the counters of the source.
            bound_ns: no packet before this will be accepted.
        """
        read_ns, read_monotonic_ns = began
        end_ns, end_monotonic_ns = self.now()
        if stats.drops_read_ns is not None:
            # Closer, as the source may have waited for packets first.
            waited_ns = min(max(0, stats.drops_read_ns - read_ns), end_monotonic_ns - began[1])
            read_ns, read_monotonic_ns = stats.drops_read_ns, began[1] + waited_ns
        # When absent ones were sent is unknown: their successor came, at any later time.
        dropped_packets = stats.dropped_packets - stats.absent_packets
        if dropped_packets > self._dropped_packets:
            # Real time may have been stepped back meanwhile.
            passed_ns = end_monotonic_ns - self._read_monotonic_ns
            first_ns = min(self._read_ns, end_ns - passed_ns) - self._skew_ns
            last_ns = max(self._read_ns + passed_ns, end_ns, bound_ns)
            packets = dropped_packets - self._dropped_packets
            self.losses = self.losses.with_period(
                LossPeriod(KERNEL, min(max(first_ns, bound_ns), last_ns), last_ns, packets)
            )
            self._dropped_packets = dropped_packets
        self._read_ns, self._read_monotonic_ns = read_ns, read_monotonic_ns
