"""Flow records as they arrive: the exports among the packets of a live source."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from gscope.capture.sources.base import SourceStats
from gscope.capture.sources.flows.decoder import ExportDecoder

if TYPE_CHECKING:
    from gscope.capture.sources.base import InputState, LiveSource, RingUse
    from gscope.capture.sources.block import Block
    from gscope.queries.plan.split.kernel_filter import Condition


LEAST_TURN_S = 0.1
"""Seconds for which packets without records are passed over, even if no time to wait is given."""


class LiveFlowSource:
    """The flow records in the exports among the packets of a live source; see ``LiveSource``.

    ``stats`` count records, as those of ``FlowSource``. A datagram that the kernel dropped is also
    missing by sequence numbers, once another one follows: of the two counts the larger one counts,
    which is the least number that can be missing.

    Args:
        source: the packets, which this source closes.
    """

    def __init__(self, source: LiveSource) -> None:
        self.name = source.name
        self.device = source.device
        self._source = source
        self._decoder = ExportDecoder()
        self._held: Block | None = None

    @property
    def stats(self) -> SourceStats:
        """See ``PacketSource``."""
        below, decoder = self._source.stats, self._decoder
        dropped = max(decoder.lost, below.dropped_packets)
        return SourceStats(
            received_packets=decoder.records + dropped,
            received_bytes=decoder.received_bytes,
            dropped_packets=dropped,
            absent_packets=dropped - below.dropped_packets,
            frozen_total=below.frozen_total,
            interruptions_total=below.interruptions_total,
            drops_read_ns=below.drops_read_ns,
            waited_ns=below.waited_ns,
        )

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``."""
        return [*self._source.damage, *self._decoder.findings(self.name, is_ended=False)]

    @property
    def failure(self) -> str:
        """See ``LiveDevice``."""
        return self._source.failure

    def open(self) -> None:
        """See ``PacketSource``."""
        self._source.open()

    def narrow(self, condition: Condition) -> None:
        """See ``LiveDevice``: conditions are on records, and say nothing about packets."""

    def start(self) -> None:
        """See ``LiveDevice``."""
        self._source.start()

    def prepare(self) -> bool:
        """See ``LiveDevice``."""
        self._decoder.load()
        return self._source.prepare()

    def next_block(self, timeout_s: float) -> Block | None:
        """See ``LiveSource``."""
        self._held = None
        began = time.monotonic()
        deadline = began + timeout_s
        while True:
            if not self._decoder.has_packets:
                left_s = max(0.0, deadline - time.monotonic())
                packets = self._source.next_block(left_s)
                if packets is None:
                    return None
                self._decoder.give(packets)
            block = self._decoder.decode()
            packets = self._decoder.packets
            if packets is not None and not self._decoder.has_packets:
                # Records are copies.
                self._source.release(packets)
                self._decoder.give(None)
            if block.count:
                self._held = block
                return block
            # Packets without records may come for ever, and faster than they are read.
            if time.monotonic() >= max(deadline, began + LEAST_TURN_S):
                return None

    def release(self, block: Block) -> None:
        """See ``LiveSource``: the packets below have been released, or have further records."""
        if block is self._held:
            self._held = None

    def is_idle(self) -> bool:
        """See ``LiveSource``."""
        return self._held is None and not self._decoder.has_packets and self._source.is_idle()

    def wake(self) -> None:
        """See ``LiveSource``."""
        self._source.wake()

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return self._source.state()

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return self._source.ring_use()

    def close(self) -> None:
        """See ``PacketSource``."""
        self._source.close()
        self._decoder.close()
