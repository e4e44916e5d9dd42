"""The clock of live interfaces: real time, guarded against steps of the clock.

The real-time clock stamps packets, so promises on a silent link must follow it. But it may be
stepped (by NTP, by an operator, after suspension), and a promise cannot be withdrawn. The monotonic
clock distinguishes a step from time that has passed:

* A step back is followed at once. Promises stay valid; packets below them are late, and counted.
* A step ahead is followed once it has lasted for ``settle_ns``. If it is reverted earlier, no
  packet is late because of it.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE_NS = 100_000_000
"""Largest change that counts as slewing (at most 0.5 ms a second) and is followed at once."""
SETTLE_NS = 5_000_000_000
"""Time for which a step ahead must last before it is followed."""


class LiveClock:
    """The time on which promises are based; for use by one thread.

    Args:
        wall_ns: returns real time in nanoseconds since 1970, by the clock that stamps packets.
        monotonic_ns: returns nanoseconds of a clock that is never stepped.
        settle_ns: time for which a step ahead must last before it is followed.

    Attributes:
        steps_total: number of steps followed, back or ahead.
    """

    def __init__(
        self,
        wall_ns: Callable[[], int] = time.time_ns,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
        settle_ns: int = SETTLE_NS,
    ) -> None:
        self._wall_ns = wall_ns
        self.monotonic_ns = monotonic_ns
        self._settle_ns = settle_ns
        self._offset_ns = wall_ns() - monotonic_ns()
        self._ahead_since_ns: int | None = None
        self.steps_total = 0

    def real_ns(self) -> int:
        """Return real time, by the clock that stamps packets; for any thread."""
        return self._wall_ns()

    @property
    def offset_ns(self) -> int:
        """Real time minus monotonic time, without a step ahead that is not followed yet."""
        return self._offset_ns

    def resume(self, offset_ns: int) -> None:
        """Continue from a clock of an earlier daemon on this machine, which had that offset.

        A different offset now is then a step that happened in between.
        """
        self._offset_ns = offset_ns

    def now_ns(self) -> int:
        """Return the time to base promises on.

        It is never later than real time, and equal to it unless a step ahead is not followed yet.
        """
        monotonic_ns = self.monotonic_ns()
        offset_ns = self._wall_ns() - monotonic_ns
        step_ns = offset_ns - self._offset_ns
        if step_ns <= TOLERANCE_NS:
            self.steps_total += step_ns < -TOLERANCE_NS
            self._follow(offset_ns)
        elif self._ahead_since_ns is None:
            self._ahead_since_ns = monotonic_ns
        elif monotonic_ns - self._ahead_since_ns >= self._settle_ns:
            self.steps_total += 1
            self._follow(offset_ns)
        return monotonic_ns + self._offset_ns

    def _follow(self, offset_ns: int) -> None:
        self._offset_ns = offset_ns
        self._ahead_since_ns = None
