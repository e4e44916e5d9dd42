"""Signs of life: reports to the supervisor, twice a second, whether all capture threads take turns.

A process that is halted sends none. A process with a single thread that hangs reports for how long
it has been hanging; see ``failure.timeout``.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Self

from gscope.queries.streams.process_events import ThreadsAlive

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.streams.event_codec import EventWriter

PERIOD_S = 0.5
SUSPENDED_S = 1.0
"""Delay after which this thread counts as suspended, in seconds.

The other threads may not have run either, so they are not reported as silent for that time."""


class ThreadWatchdog:
    """A watchdog of capture threads; a context manager that reports while it is entered.

    Args:
        events: writes to the supervisor.
        monotonic: returns seconds of a clock that stands while the machine is suspended.
    """

    def __init__(
        self, events: EventWriter, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._events = events
        self._monotonic = monotonic
        self._turned: dict[str, float] = {}
        self._reported_s = monotonic()
        self._lock = threading.Lock()
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="watchdog", daemon=True)

    def on_turn(self, name: str) -> None:
        """Note that the thread called ``name`` has taken a turn."""
        with self._lock:
            self._turned[name] = self._monotonic()

    def on_end(self, name: str) -> None:
        """Stop watching the thread called ``name``, which has ended."""
        with self._lock:
            self._turned.pop(name, None)

    def report(self) -> None:
        """Report for how long the thread that is silent longest has been silent."""
        now_s = self._monotonic()
        suspended_s = now_s - self._reported_s - PERIOD_S
        self._reported_s = now_s
        with self._lock:
            if suspended_s > SUSPENDED_S:
                self._turned = {name: turned + suspended_s for name, turned in self._turned.items()}
            silent_s = max((now_s - turned for turned in self._turned.values()), default=0.0)
        self._events.send(ThreadsAlive(round(max(0.0, silent_s), 3)))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        self._thread.join()

    def _follow(self) -> None:
        while not self._is_over.wait(PERIOD_S):
            self.report()
