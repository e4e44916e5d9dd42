"""What an interface's LFTAs count. Every packet is in exactly one counter of its interface."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.capture.packet.decode_errors import Reason


@dataclass(slots=True)
class InterfaceCounters:
    """Packets of one interface since its start.

    Attributes:
        accepted_packets: decoded to the transport, or something else than IP.
        late_packets: earlier than a bound already promised, and discarded for all LFTAs.
        odd_packets: by reason; such packets still carry the fields that could be read, and LFTAs see them.
    """

    accepted_packets: int = 0
    late_packets: int = 0
    odd_packets: dict[Reason, int] = field(default_factory=dict)

    @property
    def packets(self) -> int:
        """All packets taken from blocks."""
        return self.accepted_packets + self.late_packets + sum(self.odd_packets.values())


@dataclass(slots=True)
class LftaCounters:
    """Tuples of one LFTA on one interface since its start.

    Attributes:
        matched_tuples: packets that passed its predicate.
        out_tuples: rows put out.
        evicted_groups: groups pushed out on a collision; each is among ``out_tuples``.
        live_groups: groups in the table now.
        without_epoch_tuples: of the matched ones, those whose epoch is NULL; they are in no group.
        out_of_order_tuples: of the matched ones, those left out because they break a declared order.
        table_slots: for so many groups its tables have room, 0 for a selection.
        table_bytes: of memory that its tables may take.
    """

    matched_tuples: int = 0
    out_tuples: int = 0
    evicted_groups: int = 0
    live_groups: int = 0
    without_epoch_tuples: int = 0
    out_of_order_tuples: int = 0
    table_slots: int = field(default=0, compare=False)
    table_bytes: int = field(default=0, compare=False)
