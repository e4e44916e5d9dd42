"""Failure detection: whether a process still gives signs of life.

Time is monotonic, so that neither a stepped clock nor a suspended machine counts as silence. Nor
does time in which the supervisor itself could not look (it was stopped, starved, or blocked by a
reader of the answers): signs of life may have arrived meanwhile.
"""

from __future__ import annotations

import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

STILL_S = 300.0
"""Seconds without the end of a task after which a step is reported: it may hang, or take long."""

STARVED_FACTOR = 12
"""The limit of silence is this many times longer for a process that waits for a processor."""

LOOK_S = 0.5
"""Seconds between two looks at a process."""

AWAY_S = 1.0
"""A look that is this many seconds late means that the supervisor itself was away."""


class Liveness:
    """The silence of one process.

    Args:
        limit_s: seconds within which a sign of life must come; None: the process is not watched.
        monotonic: the clock, in seconds.
    """

    def __init__(
        self, limit_s: float | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._limit_s = limit_s
        self._heard_s = self._looked_s = monotonic()

    def expect(self, limit_s: float | None) -> None:
        """Expect a sign of life within ``limit_s`` from now on; None: stop watching."""
        self._limit_s = limit_s
        self.on_sign()

    def on_sign(self, silent_s: float = 0.0) -> None:
        """Note a sign of life.

        Args:
            silent_s: for how long the silent part of the process has been silent, in seconds.
        """
        self._heard_s = self._monotonic() - silent_s

    def silence_s(self, *, is_runnable: Callable[[], bool] = lambda: False) -> float | None:
        """Return the seconds of silence if they exceed the limit, else None.

        To be called every ``LOOK_S``.

        Args:
            is_runnable: whether the process waits for a processor, as on an overloaded machine.
        """
        now_s = self._monotonic()
        away_s = now_s - self._looked_s - LOOK_S
        self._looked_s = now_s
        if away_s > AWAY_S:
            self._heard_s += away_s
        silent_s = now_s - self._heard_s
        if self._limit_s is None or silent_s <= self._limit_s:
            return None
        is_starved = silent_s <= STARVED_FACTOR * self._limit_s and is_runnable()
        return None if is_starved else silent_s


def is_runnable(pid: int) -> bool:
    """Return whether a thread of the process runs or waits for a processor; False if unknown."""
    with suppress(OSError, IndexError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """How long each part of a run may be silent, in seconds.

    Attributes:
        stream_s: the streams of an interface.
        start_s: a process that starts, and the daemon while it closes windows.
        step_s: a step without the end of a task; None: no limit, the step is only reported.
    """

    stream_s: float = 5.0
    start_s: float = 300.0
    step_s: float | None = None

    @classmethod
    def of(
        cls, timeout_ns: int | None, interval_ns: int, step_timeout_ns: int | None = None
    ) -> SilenceLimits:
        """Return the limits of a run.

        Args:
            timeout_ns: limit for streams; None: five intervals of heartbeats, but at least 5 s.
            interval_ns: the interval of heartbeats.
            step_timeout_ns: limit for a step; None: no limit.
        """
        return cls(
            max(5 * interval_ns / 1e9, 5.0) if timeout_ns is None else timeout_ns / 1e9,
            step_s=None if step_timeout_ns is None else step_timeout_ns / 1e9,
        )

    @property
    def job_s(self) -> float:
        """The limit of the HFTA job, whose Java may be silent while it collects garbage."""
        return 12 * max(self.stream_s, 5.0)
