"""A capture of which only some packets are read: those of a filter, the first ones, or both."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.packet.link_names import READ_LINK_TYPES, link_type_name
from gscope.capture.sources.base import InputState, SourceStats
from gscope.capture.sources.files.bpf_kernel import select_packets
from gscope.queries.int64 import MAX_INT, MIN_TIME_NS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.capture.sources.base import CaptureSource, RingUse
    from gscope.capture.sources.block import Block

    Programs = Mapping[int, Sequence[tuple[int, ...]]]
    """Instructions of classic BPF by pcap link type, each a row of four numbers."""


class SelectedSource:
    """The packets of ``source`` that a filter accepts, up to a number of them.

    See ``CaptureSource``. Packets that the filter rejects are counted as filtered; what follows the
    last packet is not read and not counted.

    Args:
        source: the capture, which this source closes.
        filters: the filter, compiled for each link type; empty to accept every packet. Packets of
            other link types are rejected, and reported as damage.
        most: number of packets to hand out; None for all.
    """

    def __init__(self, source: CaptureSource, filters: Programs, most: int | None) -> None:
        self.name = source.name
        self.device = source.device
        self.size_bytes = source.size_bytes
        self.stats = SourceStats()
        self._source = source
        self._has_filter = bool(filters)
        self._left = MAX_INT if most is None else most
        self._unfiltered: dict[str, int] = {}
        self._is_ended = False
        rows = [row for program in filters.values() for row in program]
        self._code = np.array(rows, np.int64).reshape(-1, 4)
        starts, start = [], 0
        for link_type, program in filters.items():
            starts.append((link_type, start))
            start += len(program)
        self._starts = np.array(starts, np.int64).reshape(-1, 2)

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``."""
        unfiltered = [
            f"the filter does not apply to {packets} packets of {link}, which are left out"
            for link, packets in self._unfiltered.items()
        ]
        return [*self._source.damage, *unfiltered]

    def open(self) -> None:
        """See ``PacketSource``."""
        self._source.open()
        self.size_bytes = self._source.size_bytes

    def next_block(self) -> Block | None:
        """See ``CaptureSource``."""
        while self._left and (block := self._source.next_block()) is not None:
            self._select(block)
            if block.count:
                return block
        self._is_ended = True
        return None

    def is_ready(self, timeout_s: float) -> bool:
        """See ``CaptureSource``."""
        return not self._left or self._source.is_ready(timeout_s)

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED if self._is_ended else self._source.state()

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return self._source.ring_use()

    def close(self) -> None:
        """See ``PacketSource``."""
        self._source.close()

    def _select(self, block: Block) -> None:
        """Leave in ``block`` the packets that are selected, and count the others."""
        before = block.count
        if self._has_filter:
            links = block.linktype[:before].copy()
            kept, seen, unknown = select_packets(
                self._code, self._starts, block.data, block.index_arrays, before, self._left
            )
            if unknown:
                self._count_unfiltered(links[:seen])
        else:
            kept = seen = min(before, self._left)
        if kept < before:
            block.fill_in(kept)
        self._left -= kept
        self.stats.received_packets += seen
        self.stats.filtered_packets += seen - kept
        self.stats.received_bytes += block.wire_bytes
        if self._source.stats.unread_links:
            self._count_unread(block)

    def _count_unfiltered(self, links: np.ndarray[tuple[int], np.dtype[np.int32]]) -> None:
        known = self._starts[:, 0].tolist()
        for link, packets in zip(*np.unique(links, return_counts=True), strict=True):
            if int(link) not in known:
                name = link_type_name(int(link))
                self._unfiltered[name] = self._unfiltered.get(name, 0) + int(packets)

    def _count_unread(self, block: Block) -> None:
        counts = self.stats.unread_links
        links, packets = np.unique(block.linktype[: block.count], return_counts=True)
        for link, count in zip(links.tolist(), packets.tolist(), strict=True):
            if link not in READ_LINK_TYPES:
                name = link_type_name(link)
                counts[name] = counts.get(name, 0) + count


def first_packets(sources: Sequence[CaptureSource], most: int) -> list[int]:
    """Return how many of the first ``most`` packets of all sources, in the order of time, each has.

    A packet that steps back in time follows the one before it on its source. Packets of the same
    time are taken in the order of ``sources``. Reads the sources as far as it has to.
    """
    counts = [0] * len(sources)
    left = most
    waiting = [np.empty(0, np.int64) for _ in sources]
    latest = [MIN_TIME_NS] * len(sources)
    active = set(range(len(sources)))
    while left:
        for each in sorted(active):
            if not waiting[each].size:
                if (block := sources[each].next_block()) is None:
                    active.remove(each)
                    continue
                times = np.maximum.accumulate(block.time_ns[: block.count])
                waiting[each] = np.maximum(times, latest[each])
                latest[each] = int(waiting[each][-1])
        if not active:
            break
        # No packet that has not been read precedes this time.
        known_ns = min(latest[each] for each in active)
        ready = {
            each: int(np.searchsorted(waiting[each], known_ns, side="right"))
            for each in sorted(active)
        }
        if sum(ready.values()) > left:
            ready = _earliest({each: waiting[each][:n] for each, n in ready.items()}, left)
        for each, packets in ready.items():
            counts[each] += packets
            left -= packets
            waiting[each] = waiting[each][packets:]
    return counts


def _earliest(
    times: dict[int, np.ndarray[tuple[int], np.dtype[np.int64]]], most: int
) -> dict[int, int]:
    """Return how many of the ``most`` earliest times each key has; the first key wins ties."""
    owners = np.concatenate([np.full(each.size, key) for key, each in times.items()])
    order = np.argsort(np.concatenate(list(times.values())), kind="stable")[:most]
    taken = np.bincount(owners[order], minlength=max(times) + 1)
    return {key: int(taken[key]) for key in times}
