"""The rings of one interface that several threads share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.af_packet.fanout_program import compile_fanout
from gscope.capture.sources.af_packet.live_stats import LiveStats, total_of
from gscope.capture.sources.af_packet.ring import load_kernels
from gscope.capture.sources.base import InputState, RingUse

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.capture.sources.af_packet.source import AfPacketSource
    from gscope.queries.plan.program_partitioning import PartitionMember
    from gscope.queries.plan.split.kernel_filter import Condition

_WORST_FIRST = (InputState.GONE, InputState.DOWN, InputState.UP)


class FanoutSource:
    """All rings of an interface.

    See ``LiveDevice``. Each ring's packets are for the thread that it belongs to.

    Args:
        name: of the interface.
        rings: at least one, not yet open, each with a ``Fanout`` of no group: the first founds the
            group.
    """

    def __init__(self, name: str, rings: Sequence[AfPacketSource]) -> None:
        self.name = name
        self.device = rings[0].device
        self.rings = tuple(rings)

    def open(self) -> None:
        """See ``PacketSource``."""
        try:
            for ring in self.rings:
                ring.open()
        except BaseException:
            self.close()
            raise

    def narrow(self, condition: Condition) -> None:
        """See ``LiveDevice``."""
        for ring in self.rings:
            ring.narrow(condition)

    def divide(self, members: Sequence[PartitionMember]) -> None:
        """Let each thread get all packets that agree in a partitioning set, if the kernel can.

        Otherwise it gets all packets of a flow.
        """
        program = compile_fanout(members)
        if program is not None:
            for ring in self.rings:
                ring.divide(program)

    def start(self) -> None:
        """See ``LiveDevice``; all rings become members of one fanout group before packets come."""
        founder, *others = self.rings
        founder.share()
        for ring in others:
            ring.share(founder.fanout_group)
        for ring in self.rings:
            ring.start()

    def prepare(self) -> bool:
        """See ``LiveDevice``; if one ring starts again, all do."""
        load_kernels()
        has_dropped = any(ring.has_dropped() for ring in self.rings)
        if has_dropped:
            for ring in self.rings:
                ring.start_again()
        return has_dropped

    @property
    def stats(self) -> LiveStats:
        """See ``PacketSource``."""
        return total_of([ring.stats for ring in self.rings])

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``; what several rings report appears once."""
        return list(dict.fromkeys(sentence for ring in self.rings for sentence in ring.damage))

    def state(self) -> InputState:
        """See ``PacketSource``; the worst state that a ring reports."""
        return min((ring.state() for ring in self.rings), key=_WORST_FIRST.index)

    def ring_use(self) -> RingUse:
        """See ``PacketSource``; the size of all rings and the occupancy of the fullest."""
        uses = [ring.ring_use() for ring in self.rings]
        return RingUse(sum(use.size_bytes for use in uses), max(use.occupancy for use in uses))

    @property
    def failure(self) -> str:
        """See ``LiveDevice``; the reason that the first failed ring gives."""
        return next((ring.failure for ring in self.rings if ring.failure), "")

    def close(self) -> None:
        """See ``PacketSource``."""
        for ring in self.rings:
            ring.close()
