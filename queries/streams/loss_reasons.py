"""Why packets are missing from answers, and the epochs that lack them."""

from __future__ import annotations

from gscope.records import dataclass

KERNEL = "kernel"
"""The kernel dropped packets, because the capture ring was full."""

LOG = "log"
"""The stream log or the HFTA job shed rows, because the disk space that they may use was full."""

RESTART = "restart"
"""The capture daemon had died, and the next one had not begun."""

UNREAD = "unread"
"""Packets that had arrived were not processed in the time that a stop leaves."""

REASONS = (KERNEL, LOG, RESTART, UNREAD)


@dataclass(frozen=True, slots=True)
class IncompleteEpochs:
    """Epochs of a query whose answers may lack packets.

    Attributes:
        query: the name of the query.
        reason: one of ``REASONS``.
        first: the first epoch; None if that is unknown.
        last: the last one; None if that is unknown.
        packets: number of packets lost in the periods that the epochs overlap; None if it is
            unknown.
    """

    query: str
    reason: str
    first: int | None
    last: int | None
    packets: int | None = None

    @property
    def number(self) -> int:
        """The number of epochs: 1 if their bounds are unknown."""
        if self.first is None or self.last is None:
            return 1
        return self.last - self.first + 1
