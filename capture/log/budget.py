"""What to do when the log's disk budget is used up: one policy a class.

Files can wait, so a replay blocks until consumers acknowledge; a live interface cannot, its policy sheds
and counts. Both answer the same question for every segment about to be written.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from gscope.errors import StreamError


class Usage(Protocol):
    """What a policy may know of the log, and the one thing it may wait for."""

    @property
    def used_bytes(self) -> int:
        """Bytes of all segments that are still held."""

    @property
    def has_consumers(self) -> bool:
        """Whether anybody is to acknowledge segments, so that room can come."""

    def wait_for_room(self, used_bytes: int, timeout_s: float) -> bool:
        """Block until less than ``used_bytes`` are used; False when that took longer than the timeout."""


class Budget(Protocol):
    """Decides whether a segment may be written."""

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Whether to write a segment of ``size_bytes``; may block. False sheds its rows with a count.

        Raises:
            StreamError: neither writing nor shedding would be right.
        """


@dataclass(frozen=True, slots=True)
class WaitForRoom:
    """For input that can wait: block until consumers have acknowledged enough.

    Attributes:
        limit_bytes: of all segments together.
        patience_s: how long not one segment may be acknowledged before the wait is given up: a consumer
            that waits for the end of an epoch larger than the budget would never make room.
    """

    limit_bytes: int
    patience_s: float = 120.0

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """True as soon as there is room."""
        while (used := usage.used_bytes) + size_bytes > self.limit_bytes:
            full = (
                f"the stream log is full: {used} of {self.limit_bytes} bytes are waiting to be"
                f" read and {size_bytes} more are to be written"
            )
            if used == 0 or not usage.has_consumers:
                problem = f"{full}; raise the log budget"
                raise StreamError(problem)
            if not usage.wait_for_room(used, self.patience_s):
                problem = (
                    f"{full}, and nothing was acknowledged for {self.patience_s:g} s; raise the log"
                    " budget, or use a shorter epoch"
                )
                raise StreamError(problem)
        return True


@dataclass(frozen=True, slots=True)
class ShedNewest:
    """For input that cannot wait: what finds no room is shed, with a count.

    Attributes:
        limit_bytes: of all segments together.
    """

    limit_bytes: int

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Whether there is room now."""
        return usage.used_bytes + size_bytes <= self.limit_bytes
