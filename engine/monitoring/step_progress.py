"""The step at hand: how long it lasts, and for how long nothing of it has come to an end.

A task that hangs while Java answers (in a user's function that waits for ever, on a disk that is stuck) looks from
outside like one that takes long: nobody can tell them apart. What can be told is that tasks end. So the time since the
last one did is measured, and what it means is left to whoever asks; see docs/decisions/0015.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_PAUSE_S = 3.0
"""Looked at after a longer pause, the process was halted or Java collected garbage: more than this is not counted."""


@dataclass(frozen=True, slots=True)
class CurrentStep:
    """A step that is not committed yet.

    Attributes:
        number: of the step.
        seconds: since it began.
        still_seconds: since a task of it ended last, or since it began.
    """

    number: int
    seconds: float
    still_seconds: float


class StepWatch:
    """Measures the step at hand: the thread that evaluates begins and ends it, another one looks.

    Args:
        monotonic: seconds.

    Attributes:
        on_look: told how the step at hand stands, by the thread that looks.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self.on_look: Callable[[CurrentStep], object] = _nobody
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._number: int | None = None
        self._began_s = self._looked_s = self._still_s = 0.0
        self._ended_tasks: int | None = None

    @property
    def is_under_way(self) -> bool:
        """Whether there is a step at hand."""
        return self._number is not None

    def begin(self, number: int) -> None:
        """Step ``number`` is evaluated from now on."""
        with self._lock:
            self._number, self._ended_tasks = number, None
            self._began_s = self._looked_s = self._monotonic()
            self._still_s = 0.0

    def end(self) -> None:
        """It is committed."""
        with self._lock:
            self._number = None

    def look(self, ended_tasks: int) -> CurrentStep | None:
        """How the step at hand stands now; None if there is none.

        Args:
            ended_tasks: how many tasks have ended by now, of all steps.
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


def _nobody(_step: CurrentStep) -> None:
    """Nobody wants to be told."""
