"""A source of flow records: the exports among the packets of another source, or its records."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.packet.flow.layout import LINKTYPE_FLOW, RECORD_BYTES
from gscope.capture.packet.workspace import WORKSPACE_BYTES
from gscope.capture.sources.base import InputState, SourceStats
from gscope.capture.sources.block import Block
from gscope.capture.sources.flows import state
from gscope.capture.sources.flows.datagrams import MAX_DATAGRAM_RECORDS
from gscope.capture.sources.flows.exports import read_exports

if TYPE_CHECKING:
    from gscope.capture.sources.base import CaptureSource, RingUse

BLOCK_RECORDS = 4096
"""Flow records after which a block is handed out: they fit into the second-level cache."""


class FlowSource:
    """The flow records in the exports among the packets of a capture; see ``CaptureSource``.

    A record arrives with the datagram that it is in. ``stats`` count records; ``dropped_packets``
    are those that are missing by their sequence numbers, which NetFlow v9 gives to datagrams only:
    then each missing datagram counts once. Other packets are not counted. Blocks of a file of
    nfcapd, whose packets are flow records, are handed out as they are.

    Args:
        source: the packets, which this source closes.
    """

    def __init__(self, source: CaptureSource) -> None:
        self.name = source.name
        self.device = source.device
        self.size_bytes = source.size_bytes
        self._source = source
        self._tables = state.new_state()
        self._workspace = np.zeros(64 + WORKSPACE_BYTES, np.uint8)
        self._records: Block | None = None
        self._packets: Block | None = None
        self._first = 0
        self._handed_out = 0
        self._received_bytes = 0
        self._is_ended = False

    @property
    def stats(self) -> SourceStats:
        """See ``PacketSource``."""
        below = self._source.stats
        lost = int(self._tables.counters[state.LOST_TOTAL])
        return SourceStats(
            received_packets=self._handed_out + lost + below.filtered_packets,
            received_bytes=self._received_bytes,
            dropped_packets=lost,
            filtered_packets=below.filtered_packets,
        )

    @property
    def damage(self) -> list[str]:
        """See ``PacketSource``."""
        return [*self._source.damage, *self._findings()]

    def open(self) -> None:
        """See ``PacketSource``."""
        self._source.open()
        self.size_bytes = self._source.size_bytes

    def next_block(self) -> Block | None:
        """See ``CaptureSource``."""
        while self._next_packets():
            block = self._hand_on() or self._decode()
            if block.count:
                return block
        self._is_ended = True
        return None

    def is_ready(self, timeout_s: float) -> bool:
        """See ``CaptureSource``."""
        return self._has_packets() or self._source.is_ready(timeout_s)

    def state(self) -> InputState:
        """See ``PacketSource``."""
        return InputState.ENDED if self._is_ended else self._reading(self._source.state())

    def ring_use(self) -> RingUse:
        """See ``PacketSource``."""
        return self._source.ring_use()

    def close(self) -> None:
        """See ``PacketSource``."""
        self._source.close()
        self._packets = self._records = None

    def _has_packets(self) -> bool:
        return self._packets is not None and self._first < self._packets.count

    def _reading(self, below: InputState) -> InputState:
        return InputState.READING if self._has_packets() else below

    def _next_packets(self) -> bool:
        """Return whether there is a block of packets with some that were not looked at."""
        if not self._has_packets():
            self._packets, self._first = self._source.next_block(), 0
        return self._packets is not None

    def _hand_on(self) -> Block | None:
        """Return the block of packets if these are flow records; a file has either kind."""
        packets = self._packets
        assert packets is not None
        if packets.linktype[0] != LINKTYPE_FLOW:
            return None
        self._first = packets.count
        self._handed_out += packets.count
        self._received_bytes += packets.wire_bytes
        return packets

    def _decode(self) -> Block:
        packets = self._packets
        assert packets is not None
        if self._records is None:
            room = BLOCK_RECORDS + MAX_DATAGRAM_RECORDS
            self._records = Block.allocate(room * RECORD_BYTES, room)
        records = self._records
        self._first, found = read_exports(
            packets.data,
            packets.index_arrays,
            self._first,
            packets.count,
            records.data,
            records.index_arrays,
            BLOCK_RECORDS,
            self._tables,
            self._workspace,
        )
        records.fill_in(found)
        records.position = packets.position
        self._handed_out += found
        self._received_bytes += records.wire_bytes
        return records

    def _findings(self) -> list[str]:
        """Return sentences on what could not be used."""
        counters = self._tables.counters
        found = []
        if self._is_ended and counters[state.PACKETS] and not counters[state.DATAGRAMS]:
            found.append(
                f"{self.name}: none of {counters[state.PACKETS]} packets is an export of flow"
                " records (NetFlow v5 or v9, or IPFIX)"
            )
        if counters[state.OVERFLOWS]:
            found.append(
                f"{self.name}: {counters[state.OVERFLOWS]} times there was no room for the state"
                f" of an exporter: at most {state.STREAMS} domains and {state.TEMPLATES} templates"
            )
        return found
