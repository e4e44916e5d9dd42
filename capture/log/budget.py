"""What to do when the log's budget of disk space is used up: one policy a class.

Files can wait, so a replay blocks until consumers acknowledge; a live interface cannot, its policy sheds and counts.
Both answer the same question for every segment about to be written. A policy that sheds by another rule than age
(one that knows which tuples matter least) is another class with the same methods.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.streams.messages import Batch

MAX_HELD_BATCHES = 100_000
"""So many batches are held at most, however small: each takes half a kilobyte of memory besides its segment."""

MAX_SMALL_BATCH_BYTES = 1 << 20
"""Merging takes memory for a few times as much."""

DISK_RESERVE_BYTES = 16 << 20
"""So much of the disk stays free for everything that is small: index, acknowledgements, commits."""


class Usage(Protocol):
    """What a policy may know of the log, and what it may do about it."""

    @property
    def used_bytes(self) -> int:
        """Bytes of all segments that are still held."""

    @property
    def held_batches(self) -> int:
        """How many segments these are."""

    @property
    def free_bytes(self) -> int:
        """Bytes that the disk has left."""

    @property
    def has_consumers(self) -> bool:
        """Whether anybody is to acknowledge segments, so that room can come."""

    def wait_for_room(self, used_bytes: int, timeout_s: float) -> bool:
        """Block until less than ``used_bytes`` are used; False when that took longer than the timeout."""

    def sheddable(self) -> Iterator[Batch]:
        """The batches that no consumer is reading, oldest first; to be asked for anew after ``shed``."""

    def shed(self, batch: Batch) -> None:
        """Drop a sealed batch; the log counts it and tells its readers."""


class Budget(Protocol):
    """Decides whether a segment may be written.

    Attributes:
        is_lossy: whether tuples may be shed, so that a full disk does not end the capture.
        reserve_bytes: that the disk is to have left.
    """

    is_lossy: bool
    reserve_bytes: int = 0

    @property
    def small_bytes(self) -> int:
        """Of batches with less than that several become one when they wait; 0 where none do."""
        return 0

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Whether to write a segment of ``size_bytes``; may block, or shed others. False sheds its rows.

        Raises:
            StreamError: neither writing nor shedding would be right.
        """


@dataclass(frozen=True)
class WaitForRoom(Budget):
    """For input that can wait: block until consumers have acknowledged enough.

    Attributes:
        limit_bytes: of all segments together.
        patience_s: how long not one segment may be acknowledged before the wait is given up: a consumer
            that waits for the end of an epoch larger than the budget would never make room.
    """

    limit_bytes: int
    patience_s: float = 120.0
    is_lossy = False

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """True as soon as there is room."""
        while (used := usage.used_bytes) + size_bytes > self.limit_bytes:
            full = (
                f"the stream log is full: {used} of {self.limit_bytes} bytes are unread, and "
                f"{size_bytes} more are to be written"
            )
            if used == 0 or not usage.has_consumers:
                problem = f"{full}; raise its limit with --log"
                raise StreamError(problem)
            if not usage.wait_for_room(used, self.patience_s):
                problem = (
                    f"{full}, and no reader has acknowledged anything for {self.patience_s:g} s; raise "
                    "its limit with --log, or use a shorter epoch"
                )
                raise StreamError(problem)
        return True


@dataclass(frozen=True)
class ShedOldest(Budget):
    """For input that cannot wait: whole batches are shed, the oldest first, until there is room.

    What is being read is spared. Where all else is shed and there is still no room, the new rows are.

    Attributes:
        limit_bytes: of all segments together.
        limit_batches: of all streams together.
        reserve_bytes: that the disk is to have left.
    """

    limit_bytes: int
    limit_batches: int = MAX_HELD_BATCHES
    reserve_bytes: int = DISK_RESERVE_BYTES
    is_lossy = True

    @property
    def small_bytes(self) -> int:
        """So much that of those that are not small a quarter of the batches uses all the bytes."""
        return min(MAX_SMALL_BATCH_BYTES, 4 * self.limit_bytes // self.limit_batches)

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Whether there is room now, or could be made."""
        if size_bytes > self.limit_bytes:
            return False
        while not self._has_room(size_bytes, usage):
            oldest = next(usage.sheddable(), None)
            if oldest is None:
                return False
            usage.shed(oldest)
        return True

    def _has_room(self, size_bytes: int, usage: Usage) -> bool:
        return (
            usage.used_bytes + size_bytes <= self.limit_bytes
            and usage.held_batches < self.limit_batches
            and usage.free_bytes >= size_bytes + self.reserve_bytes
        )
