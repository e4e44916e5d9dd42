"""When a process that failed is restarted, and when it is given up."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable


@dataclass(frozen=True, slots=True)
class RestartPolicy:
    """How often, and after which pauses, a process that fails is restarted.

    The pause before the n-th restart in a row is ``min(first_s * 2 ** (n - 1), longest_s)``. A
    process that has run for ``stable_s`` begins a new row.

    Attributes:
        first_s: the pause before the first restart of a row, in seconds.
        longest_s: the longest pause, in seconds.
        budget: the most restarts within ``window_s``.
        window_s: the period for ``budget``, in seconds; earlier restarts do not count.
        stable_s: seconds after which a process has proven that it can run.
    """

    first_s: float = 0.5
    longest_s: float = 30.0
    budget: int = 5
    window_s: float = 600.0
    stable_s: float = 60.0


class Restarts:
    """The failures of one process; time in which the machine is suspended does not count.

    Args:
        policy: how often the process is restarted.
        monotonic: the clock, in seconds.
    """

    def __init__(
        self, policy: RestartPolicy, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._policy = policy
        self._monotonic = monotonic
        self._began_s = monotonic()
        self._row = 0
        self._times: deque[float] = deque()

    def on_start(self) -> None:
        """Note that the process was started."""
        self._began_s = self._monotonic()

    def on_failure(self) -> float | None:
        """Return the seconds to wait before the restart of a process that failed; None: give up."""
        policy, now_s = self._policy, self._monotonic()
        if now_s - self._began_s >= policy.stable_s:
            self._row = 0
        while self._times and now_s - self._times[0] > policy.window_s:
            self._times.popleft()
        if len(self._times) >= policy.budget:
            return None
        self._times.append(now_s)
        self._row += 1
        return min(policy.first_s * 2.0 ** (self._row - 1), policy.longest_s)

    @property
    def verdict(self) -> str:
        """Why the process is given up, one phrase."""
        minutes = self._policy.window_s / 60
        return f"it failed {len(self._times) + 1} times in {minutes:g} minutes"
