"""A source of flow records: the exports among the packets of a capture, or its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.sources.base import InputState, SourceStats
from gscope.capture.sources.flows.decoder import ExportDecoder

if TYPE_CHECKING:
    from gscope.capture.sources.base import CaptureSource, RingUse
    from gscope.capture.sources.block import Block


class FlowSource:
    """The flow records in the exports among the packets of a capture; see ``CaptureSource``.

    A record arrives with the datagram that it is in. ``stats`` count records; ``dropped_packets``
    are those that are missing by their sequence numbers, which NetFlow v9 and sFlow give to
    datagrams only: then each missing datagram counts once. Other packets are not counted. Blocks of
    a file of nfcapd, whose packets are flow records, are handed out as they are.

    Args:
        source: the packets, which this source closes.
    """

    def __init__(self, source: CaptureSource) -> None:
        self.name = source.name
        self.device = source.device
        self.size_bytes = source.size_bytes
        self._source = source
        self._decoder = ExportDecoder()
        self._is_ended = False

    @property
    def stats(self) -> SourceStats:
        """See ``PacketSource``."""
        below, decoder = self._source.stats, self._decoder
        return SourceStats(
            received_packets=decoder.records + decoder.lost + below.filtered_packets,
            received_bytes=decoder.received_bytes,
            dropped_packets=decoder.lost,
            filtered_packets=below.filtered_packets,
        )

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``."""
        findings = self._decoder.findings(self.name, is_ended=self._is_ended)
        return [*self._source.damage, *findings]

    def open(self) -> None:
        """See ``PacketSource``."""
        self._source.open()
        self.size_bytes = self._source.size_bytes

    def next_block(self) -> Block | None:
        """See ``CaptureSource``."""
        while self._next_packets():
            block = self._decoder.hand_on() or self._decoder.decode()
            if block.count:
                return block
        self._is_ended = True
        return None

    def is_ready(self, timeout_s: float) -> bool:
        """See ``CaptureSource``."""
        return self._decoder.has_packets or self._source.is_ready(timeout_s)

    def state(self) -> InputState:
        """See ``PacketSource``."""
        if self._is_ended:
            return InputState.ENDED
        return InputState.READING if self._decoder.has_packets else self._source.state()

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return self._source.ring_use()

    def close(self) -> None:
        """See ``PacketSource``."""
        self._source.close()
        self._decoder.close()

    def _next_packets(self) -> bool:
        """Return whether there is a block of packets with some that were not looked at."""
        if not self._decoder.has_packets:
            self._decoder.give(self._source.next_block())
        return self._decoder.packets is not None
