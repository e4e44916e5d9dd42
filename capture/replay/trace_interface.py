"""One interface of a replay: its source, its LFTAs and the packet reached."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.interface.base import Feed
from gscope.capture.interface.source_state import SourceState
from gscope.capture.replay.bulk_path import Pump
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gscope.capture.interface.summary import InterfaceSummary
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.sources.base import CaptureSource
    from gscope.capture.sources.block import Block


class TraceInterface(Feed):
    """One interface of a replay: its source, its LFTAs and the packet reached.

    Args:
        name: name of the interface.
        source: the open source, which its owner closes.
        runtime: the LFTAs of the interface.
        streams: for each LFTA, by name, the stream that it writes.
        skew_ns: how far a packet may step back in time and still be on time; or a function that
            returns that, None until it is known. Until then, no packet is late.

    Attributes:
        head_ns: time of the next packet; meaningless once ``is_ended``.
        packets: number of packets processed, without late ones.
        late_packets: number of packets left out because they step back by more than ``skew_ns``.
        heartbeat_ns: time of the last heartbeat; ``MIN_TIME_NS`` if there was none.
    """

    def __init__(
        self,
        name: str,
        source: CaptureSource,
        runtime: LftaEngine,
        streams: Mapping[str, str],
        skew_ns: int | Callable[[], int | None],
    ) -> None:
        super().__init__(name, runtime, streams)
        self.source = source
        self.skew_ns = skew_ns if isinstance(skew_ns, int) else MAX_TIME_NS
        self._later_skew = None if isinstance(skew_ns, int) else skew_ns
        self.head_ns = MIN_TIME_NS
        self.heartbeat_ns = MIN_TIME_NS
        self.packets = 0
        self.input_bytes = 0
        self.is_ended = False
        self._block: Block | None = None
        self._index = 0
        self._first_ns: int | None = None
        self._latest_ns = MIN_TIME_NS
        self._before_ns = MIN_TIME_NS
        self._pump = Pump.between(source, runtime)
        self.knows_skew()

    def knows_skew(self) -> bool:
        """Return whether ``skew_ns`` is known, without which nothing can be promised."""
        if self._later_skew is not None and (skew_ns := self._later_skew()) is not None:
            self.skew_ns, self._later_skew = skew_ns, None
        return self._later_skew is None

    @property
    def unread_packets(self) -> int:
        """Packets of the current block that are not processed; 0 at the end of input."""
        return 0 if self._block is None else self._block.count - self._index

    @property
    def last_ns(self) -> int:
        """Time of the last packet of the current block."""
        block = self._block
        return self.head_ns if block is None else int(block.time_ns[block.count - 1])

    def expected_ns(self, part_bytes: int) -> int:
        """Return the time, in ns, at which ``part_bytes`` more are read.

        That is the time if packets stay as frequent.
        """
        if self._first_ns is None or self.input_bytes == 0:
            return self.last_ns
        passed_ns = max(self.last_ns - self._first_ns, 0)
        return min(self.last_ns + passed_ns * part_bytes // self.input_bytes, MAX_TIME_NS)

    @property
    def reached_ns(self) -> int:
        """Latest time of the packets processed; ``MIN_TIME_NS`` if there was none."""
        return self._latest_ns if self.is_ended else min(self._latest_ns, self.head_ns)

    @property
    def own_ns(self) -> int:
        """Latest time of the packets processed, regardless of the next packet."""
        if self._block is None or not self._index:
            return self._latest_ns if self._block is None else self._before_ns
        return max(self._before_ns, int(self._block.time_ns[: self._index].max()))

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
            skew_ns=self.skew_ns if self.knows_skew() else None,
            largest_lag_ns=None,
            last_packet_ns=None if self._latest_ns == MIN_TIME_NS else self._latest_ns,
            clock_ns=None if self.reached_ns == MIN_TIME_NS else self.reached_ns,
        )

    def current_summary(self) -> InterfaceSummary:
        """See ``Feed``."""
        return self.summary(self.source.stats, self.unread_packets, tuple(self.source.damage))

    def fetch(self) -> None:
        """Get the next block that contains a packet that is not late, or end."""
        while (block := self.source.next_block()) is not None:
            if self._begin(block, 0):
                return
        self._block = None
        self.is_ended = True

    def is_starved(self, patience_s: float) -> bool:
        """Return whether no packet has followed the current block after ``patience_s`` seconds.

        Only a source that reads ahead knows: pipes are read ahead, files have packets at once.
        """
        return not self.source.is_ready(patience_s)

    def advance(
        self,
        until_ns: int,
        is_stopped: Callable[[], bool],
        before_fetch: Callable[[TraceInterface], None],
        most_bytes: int | None = None,
    ) -> None:
        """Process packets up to the first at or past ``until_ns``, or to the end.

        Args:
            until_ns: time at which to stop.
            is_stopped: called before each block.
            before_fetch: called when all packets of a block are processed, before waiting for the
                next block.
            most_bytes: bytes of input after which to stop at the next block; None for no limit.
        """
        limit = None if most_bytes is None else self.input_bytes + most_bytes
        while (block := self._block) is not None and self.head_ns < until_ns and not is_stopped():
            reached = self.process(block, self._index, until_ns)
            self.packets += reached - self._index
            self._index = reached
            if reached < block.count:
                self.head_ns = int(block.time_ns[reached])
                return
            if not self._pass_blocks(until_ns):
                before_fetch(self)
                self.fetch()
            if limit is not None and self.input_bytes >= limit:
                return

    def _begin(self, block: Block, index: int) -> bool:
        """Continue with packet ``index`` of a new block; return False if all are late."""
        self.input_bytes = block.position
        self._leave_out_late(block)
        if not block.count:
            return False
        self._block, self._index = block, index
        self.head_ns = int(block.time_ns[index])
        if self._first_ns is None:
            self._first_ns = self.head_ns
        return True

    def _pass_blocks(self, until_ns: int) -> bool:
        """Process the next blocks that are wholly before ``until_ns``.

        Returns:
            Whether the block behind them is the current one.
        """
        if self._pump is None:
            return False
        pumped = self._pump.run(self._latest_ns, self.skew_ns, until_ns)
        if pumped is None:
            return False
        self.packets += pumped.packets + pumped.position
        self.input_bytes = pumped.input_bytes
        self.worked_ns += pumped.worked_ns
        self._latest_ns = pumped.latest_ns
        return pumped.block is not None and self._begin(pumped.block, pumped.position)

    def _leave_out_late(self, block: Block) -> None:
        if not block.count:
            return
        times = block.time_ns[: block.count]
        least, greatest = block.time_extent_ns
        latest = max(self._latest_ns, greatest)
        if latest == MAX_TIME_NS:
            # The source has saturated it. Lower it by one, so that there is a time after it.
            np.minimum(times, MAX_TIME_NS - 1, out=times)
            latest = MAX_TIME_NS - 1
        if least < latest - self.skew_ns:
            self._compress(block, times)
        self._before_ns, self._latest_ns = self._latest_ns, latest

    def _compress(self, block: Block, times: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        floor = max(self._latest_ns, int(times[0]))
        highest = np.maximum.accumulate(np.maximum(times, floor))
        # Where the difference would wrap, no packet is late.
        skew_ns = min(self.skew_ns, MAX_TIME_NS)
        wanted = (highest < MIN_TIME_NS + skew_ns) | (times >= highest - skew_ns)
        kept = np.flatnonzero(wanted)
        if kept.size < block.count:
            late = ~wanted
            # A late packet is late by less than 2**64.
            steps = highest[late].astype(np.uint64) - times[late].astype(np.uint64)
            self.needed_skew_ns = max(self.needed_skew_ns, int(steps.max()))
        for array in (block.offset, block.caplen, block.wirelen, block.time_ns, block.linktype):
            array[: kept.size] = array[kept]
        self.late_packets += block.count - kept.size
        block.count = int(kept.size)
