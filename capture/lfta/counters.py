"""Counters of an interface's LFTAs. Every packet is in exactly one counter of its interface."""

from __future__ import annotations

from dataclasses import field

from gscope.capture.packet.decode_errors import UNSUPPORTED, Reason
from gscope.records import dataclass


@dataclass(slots=True)
class InterfaceCounters:
    """Packets of one interface since its start.

    Attributes:
        accepted_packets: packets decoded up to the transport header, or not of IP.
        late_packets: packets earlier than a bound already promised, discarded for all LFTAs.
        shed_packets: packets decoded like accepted ones that an LFTA wanted and none took, because
            they are not in the sample.
        odd_packets: malformed and unsupported packets by reason; LFTAs see the fields that could be
            read.
    """

    accepted_packets: int = 0
    late_packets: int = 0
    shed_packets: int = 0
    odd_packets: dict[Reason, int] = field(default_factory=dict)

    @property
    def packets(self) -> int:
        """All packets taken from blocks."""
        taken = self.accepted_packets + self.late_packets + self.shed_packets
        return taken + sum(self.odd_packets.values())

    @property
    def malformed(self) -> dict[str, int]:
        """Packets that are damaged or not captured completely, by the name of the reason."""
        return self._by_name(is_unsupported=False)

    @property
    def unsupported(self) -> dict[str, int]:
        """Packets that gscope does not decode, by the name of the reason."""
        return self._by_name(is_unsupported=True)

    def _by_name(self, *, is_unsupported: bool) -> dict[str, int]:
        return {
            reason.name.lower(): count
            for reason, count in self.odd_packets.items()
            if (reason in UNSUPPORTED) is is_unsupported
        }


@dataclass(slots=True)
class LftaCounters:
    """Tuples of one LFTA on one interface since its start.

    Attributes:
        matched_tuples: packets that passed its predicate and are in its sample.
        out_tuples: rows emitted.
        evicted_groups: groups evicted on a collision; each is among ``out_tuples``.
        live_groups: groups in the tables now.
        without_epoch_tuples: matched tuples whose epoch is NULL; they are in no group.
        out_of_order_tuples: matched tuples discarded because they break a declared order.
        table_slots: number of groups that its tables have room for, 0 for a selection.
        table_bytes: bytes of memory that its tables may take.
    """

    matched_tuples: int = 0
    out_tuples: int = 0
    evicted_groups: int = 0
    live_groups: int = 0
    without_epoch_tuples: int = 0
    out_of_order_tuples: int = 0
    table_slots: int = field(default=0, compare=False)
    table_bytes: int = field(default=0, compare=False)
