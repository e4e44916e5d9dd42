"""Decodes the exports among the packets of blocks, and counts what they say is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from gscope.capture.packet.flow.layout import LINKTYPE_FLOW, RECORD_BYTES
from gscope.capture.packet.workspace import WORKSPACE_BYTES
from gscope.capture.sources.block import Block
from gscope.capture.sources.flows import state
from gscope.capture.sources.flows.datagrams import MAX_DATAGRAM_RECORDS

if TYPE_CHECKING:
    from numpy.typing import NDArray

BLOCK_RECORDS = 4096
"""Flow records after which a block is handed out: they fit into the second-level cache."""


class ExportDecoder:
    """The state of exporters, and the block of flow records that is filled again and again.

    Attributes:
        packets: the block of packets that is being read; None if there is none.
        records: number of records handed out.
        received_bytes: their bytes as exported.
    """

    def __init__(self) -> None:
        self.packets: Block | None = None
        self.records = 0
        self.received_bytes = 0
        self._tables = state.new_state()
        self._workspace: NDArray[np.uint8] | None = None
        self._block: Block | None = None
        self._first = 0

    @property
    def lost(self) -> int:
        """What is missing by sequence numbers: records, or datagrams of NetFlow v9 and sFlow."""
        return int(self._tables.counters[state.LOST_TOTAL])

    @property
    def has_packets(self) -> bool:
        """Whether there are packets that were not looked at."""
        return self.packets is not None and self._first < self.packets.count

    def give(self, packets: Block | None) -> None:
        """Take a block of packets, which must stay until they were looked at."""
        self.packets, self._first = packets, 0

    def load(self) -> None:
        """Load the kernel, or compile it, so that the first block need not wait for it."""
        nothing = Block.allocate(0, 0)
        self._read(nothing, 0)

    def hand_on(self) -> Block | None:
        """Return the block of packets if these are flow records; a source has either kind."""
        packets = self.packets
        assert packets is not None
        if packets.linktype[0] != LINKTYPE_FLOW:
            return None
        self._first = packets.count
        self.records += packets.count
        self.received_bytes += packets.wire_bytes
        return packets

    def decode(self) -> Block:
        """Return the records in packets, from those of the first that was not looked at on.

        There may be none. The block is valid until the next call.
        """
        packets = self.packets
        assert packets is not None
        self._first, found = self._read(packets, self._first)
        records = self._block
        assert records is not None
        records.fill_in(found)
        records.position = packets.position
        self.records += found
        self.received_bytes += records.wire_bytes
        return records

    def close(self) -> None:
        """Give up the blocks; counters still answer."""
        self.packets = self._block = None

    def findings(self, name: str, *, is_ended: bool) -> list[str]:
        """Return sentences on what could not be used.

        Args:
            name: what the user calls the source.
            is_ended: whether all of it was read.
        """
        counters = self._tables.counters
        found = []
        if is_ended and counters[state.PACKETS] and not counters[state.DATAGRAMS]:
            found.append(
                f"{name}: none of {counters[state.PACKETS]} packets is an export of flow"
                " records (NetFlow v5 or v9, IPFIX, or sFlow v5)"
            )
        if counters[state.OVERFLOWS]:
            found.append(
                f"{name}: {counters[state.OVERFLOWS]} times there was no room for the state"
                f" of an exporter: at most {state.STREAMS} domains and {state.TEMPLATES} templates"
            )
        return found

    def _read(self, packets: Block, first: int) -> tuple[int, int]:
        # A kernel is cached for the user who imports it: a live capture opens its source as root,
        # and reads from it as another user, who can neither read nor write root's cache.
        from gscope.capture.sources.flows.exports import LOCATED_BYTES, read_exports

        if self._workspace is None:
            self._workspace = np.zeros(LOCATED_BYTES + WORKSPACE_BYTES, np.uint8)
        if self._block is None:
            room = BLOCK_RECORDS + MAX_DATAGRAM_RECORDS
            self._block = Block.allocate(room * RECORD_BYTES, room)
        return read_exports(
            packets.data,
            packets.index_arrays,
            first,
            packets.count,
            self._block.data,
            self._block.index_arrays,
            BLOCK_RECORDS,
            self._tables,
            self._workspace,
        )
