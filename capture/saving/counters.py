"""What became of the packets to be saved."""

from __future__ import annotations

from gscope.records import dataclass


@dataclass(slots=True)
class SavingCounters:
    """Counters of a packet file.

    Attributes:
        packets: packets in the file.
        bytes: size of the file.
        over_limit: packets left out because the file has reached its limit.
        unwritten: packets left out because the disk refused them.
        outrun: packets of a live capture left out because the disk was slower than they came.
        failure: why the disk refused packets; "" if it did not.
    """

    packets: int = 0
    bytes: int = 0
    over_limit: int = 0
    unwritten: int = 0
    outrun: int = 0
    failure: str = ""

    @property
    def lost(self) -> int:
        """Packets that are missing from the file."""
        return self.over_limit + self.unwritten + self.outrun
