"""Policies for a disk budget that is used up, one class each.

Files can wait, so a replay blocks until consumers acknowledge; a live interface cannot, so its
policy sheds and counts. Both decide for every segment whether it is written. A policy that sheds by
another rule than age (one that knows which tuples matter least) is another class with the same
methods.
"""

from __future__ import annotations

from typing import Protocol

from gscope.errors import StreamError
from gscope.records import dataclass

MAX_HELD_BATCHES = 100_000
"""Limit of retained batches, however small: each takes half a kilobyte of memory beside its
segment."""

MAX_SMALL_BATCH_BYTES = 1 << 20
"""Batches at least this large are not merged: merging takes a few times their size in memory."""

DISK_RESERVE_BYTES = 16 << 20
"""Bytes of the disk that stay free for small files: index, acknowledgements, commits."""


class Usage(Protocol):
    """What a policy can see of the log, and what it can do."""

    @property
    def used_bytes(self) -> int:
        """Bytes of all retained segments."""

    @property
    def held_batches(self) -> int:
        """Number of retained segments."""

    @property
    def free_bytes(self) -> int:
        """Free bytes of the disk."""

    @property
    def has_consumers(self) -> bool:
        """Whether any reader acknowledges segments, which releases room."""

    def wait_for_room(self, used_bytes: int, timeout_s: float) -> bool:
        """Block until less than ``used_bytes`` are used; return False after the timeout."""

    def shed_oldest(self) -> bool:
        """Delete the oldest batch that no consumer is reading; return False if there is none.

        The log counts the batch, and reports a gap to its readers.
        """


class Budget(Protocol):
    """Decides whether a segment may be written.

    Attributes:
        is_lossy: whether tuples may be shed, so that a full disk does not end the capture.
        limit_bytes: of all segments together.
        reserve_bytes: bytes of the disk that must stay free.
    """

    is_lossy: bool
    limit_bytes: int
    reserve_bytes: int = 0

    @property
    def small_bytes(self) -> int:
        """Size below which waiting batches are merged; 0 if none are."""
        return 0

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Return whether to write a segment of ``size_bytes``; False sheds its rows.

        May block or shed other batches.

        Raises:
            StreamError: neither writing nor shedding would be right.
        """


@dataclass(frozen=True)
class WaitForRoom(Budget):
    """For input that can wait: block until consumers have acknowledged enough.

    Attributes:
        limit_bytes: of all segments together.
        patience_s: how long not one segment may be acknowledged before the wait is given up: a
            consumer that waits for the end of an epoch larger than the budget would never make
            room.
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
                    f"{full}, and no reader has acknowledged anything for {self.patience_s:g} s; "
                    "raise its limit with --log, or use a shorter epoch or RANGE"
                )
                raise StreamError(problem)
        return True


@dataclass(frozen=True)
class _Limits(Budget):
    """The limits for input that does not wait for the log.

    Attributes:
        limit_bytes: of all segments together.
        limit_batches: of all streams together.
        reserve_bytes: that the disk is to have left.
    """

    limit_bytes: int
    limit_batches: int = MAX_HELD_BATCHES
    reserve_bytes: int = DISK_RESERVE_BYTES

    @property
    def small_bytes(self) -> int:
        """Size below which a batch is small: a quarter of the batches, of this size, fills it."""
        return min(MAX_SMALL_BATCH_BYTES, 4 * self.limit_bytes // self.limit_batches)

    def _is_within(self, size_bytes: int, usage: Usage) -> bool:
        return (
            usage.used_bytes + size_bytes <= self.limit_bytes
            and usage.held_batches < self.limit_batches
            and usage.free_bytes >= size_bytes + self.reserve_bytes
        )


@dataclass(frozen=True)
class ShedOldest(_Limits):
    """For input that cannot wait: whole batches are shed, the oldest first, until there is room.

    Batches that are being read are kept. If there is still no room once all others are shed, the
    new rows are shed.
    """

    is_lossy = True

    def admit(self, size_bytes: int, usage: Usage) -> bool:
        """Return whether there is room now, or could be made."""
        if size_bytes > self.limit_bytes:
            return False
        while not self._is_within(size_bytes, usage):
            if not usage.shed_oldest():
                return False
        return True


@dataclass(frozen=True)
class AdmitAll(_Limits):
    """For a relay, which looks for room itself before it takes more from its inputs."""

    is_lossy = False

    def admit(self, size_bytes: int, usage: Usage) -> bool:  # noqa: ARG002  # of all budgets
        """Return True."""
        return True

    def has_room(self, usage: Usage) -> bool:
        """Return whether all limits are kept; they may be exceeded by the next segment."""
        return self._is_within(0, usage)
