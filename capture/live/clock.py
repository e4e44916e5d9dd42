"""The clock of live interfaces: the real time, which stamps packets, guarded against its own steps.

Packets are stamped with the real-time clock, so that promises on a silent link must follow it. But it may be stepped
(NTP, an operator, a machine that was asleep), and a promise cannot be taken back. The monotonic clock tells a step
from time that passed:

* back: followed at once. What is promised stays promised, so packets below it are late, and counted.
* ahead: followed when it has lasted for ``settle_ns``. A step that is taken back sooner makes nothing late.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

TOLERANCE_NS = 100_000_000
"""Slewing (at most 0.5 ms a second) is followed as it goes; only more than this at once is a step."""
SETTLE_NS = 5_000_000_000


class LiveClock:
    """What time it is for promises; for one thread.

    Args:
        wall_ns: nanoseconds since 1970, as packets are stamped.
        monotonic_ns: never stepped.
        settle_ns: how long a step ahead must last.

    Attributes:
        steps_total: steps followed, either way.
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

    @property
    def offset_ns(self) -> int:
        """Real time less monotonic time, as far as it is followed."""
        return self._offset_ns

    def resume(self, offset_ns: int) -> None:
        """Take a step for one that happened since a clock before this one, of the same machine, had that offset."""
        self._offset_ns = offset_ns

    def now_ns(self) -> int:
        """No later than the real time, and the real time itself unless that was just stepped ahead."""
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
