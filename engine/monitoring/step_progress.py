"""The current step: its duration, and the time since one of its tasks last ended.

A task that hangs while Java answers (in a user's function that never returns, on a disk that is
stuck) looks from outside like a slow one; the two cannot be distinguished. But the ends of tasks
can be observed. So the time since the last one is measured, and its interpretation is left to the
supervisor; see docs/decisions/0015.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PAUSE_S = 3.0
"""The most time that counts between two looks: in a longer one the process was halted, or Java
collected garbage."""


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """A step that is not yet committed.

    Attributes:
        number: the number of the step.
        seconds: the time since it began.
        still_seconds: the time since a task of it last ended, or since it began.
    """

    number: int
    seconds: float
    still_seconds: float


class StepWatch:
    """Measures the current step: the evaluating thread starts and ends it, another thread looks.

    Args:
        monotonic: a monotonic clock, seconds.

    Attributes:
        on_look: called with the current step by the thread that looks.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.on_look: Callable[[CurrentStep], object] = _ignore
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._number: int | None = None
        self._began_s = self._looked_s = self._still_s = 0.0
        self._ended_tasks: int | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether there is a current step."""
        return self._number is not None

    def begin(self, number: int) -> None:
        """Start measuring step ``number``."""
        with self._lock:
            self._number, self._ended_tasks = number, None
            self._began_s = self._looked_s = self._monotonic()
            self._still_s = 0.0

    def end(self) -> None:
        """Stop measuring: the step is committed."""
        with self._lock:
            self._number = None

    def look(self, ended_tasks: int) -> CurrentStep | None:
        """Return the current step as measured now; None if there is none.

        Args:
            ended_tasks: the number of tasks of all steps that have ended so far.
        """
        with self._lock:
            if self._number is None:
                return None
            now_s = self._monotonic()
            self._still_s += min(now_s - self._looked_s, MAX_PAUSE_S)
            self._looked_s = now_s
            if ended_tasks != self._ended_tasks:
                self._ended_tasks, self._still_s = ended_tasks, 0.0
            step = CurrentStep(self._number, now_s - self._began_s, self._still_s)
        self.on_look(step)
        return step


def _ignore(_step: CurrentStep) -> None:
    """Do nothing."""
