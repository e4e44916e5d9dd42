"""Signs of life: whether the threads of the daemon get on, told to the supervisor twice a second.

A process that is halted tells nothing. One of which a single thread hangs tells for how long; see ``failure.timeout``.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.capture.process.events import Events

PERIOD_S = 0.5
AWAY_S = 1.0
"""Woken so much later than it asked for, this thread was not let run, nor need the others have been."""


class ThreadWatchdog:
    """Who turned when; a context manager that tells it meanwhile.

    Args:
        events: to the supervisor.
        monotonic: seconds; a machine that is suspended is not silent.
    """

    def __init__(self, events: Events, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._events = events
        self._monotonic = monotonic
        self._turned: dict[str, float] = {}
        self._told_s = monotonic()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watchdog", daemon=True)

    def on_turn(self, name: str) -> None:
        """The thread called ``name`` gets on."""
        with self._lock:
            self._turned[name] = self._monotonic()

    def on_end(self, name: str) -> None:
        """The thread called ``name`` has nothing more to do."""
        with self._lock:
            self._turned.pop(name, None)

    def report(self) -> None:
        """Tell how long the most silent thread has been so."""
        now_s = self._monotonic()
        away_s = now_s - self._told_s - PERIOD_S
        self._told_s = now_s
        with self._lock:
            if away_s > AWAY_S:
                self._turned = {name: turned + away_s for name, turned in self._turned.items()}
            silent_s = max((now_s - turned for turned in self._turned.values()), default=0.0)
        self._events.send("alive", silent_s=round(max(0.0, silent_s), 3))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self.report()
