"""Slots for work that holds its rows in memory.

The largest of those that wait gets the next one.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Slots:
    """A number of slots, each held by one thread at a time.

    Long work must not begin last: it would run alone at the end of a step while other cores wait.

    Args:
        number: the number of slots.
    """

    def __init__(self, number: int) -> None:
        self._free = number
        self._lock = threading.Lock()
        self._order = itertools.count()
        self._waiting: list[tuple[int, int, threading.Event]] = []

    @contextmanager
    def held(self, rows: int) -> Iterator[None]:
        """Hold a slot meanwhile, for work that reads about ``rows`` rows.

        Wait for one if need be.
        """
        turn = threading.Event()
        with self._lock:
            if self._free:
                self._free -= 1
                turn.set()
            else:
                heapq.heappush(self._waiting, (-rows, next(self._order), turn))
        turn.wait()
        try:
            yield
        finally:
            with self._lock:
                if self._waiting:
                    *_, following = heapq.heappop(self._waiting)
                    following.set()
                else:
                    self._free += 1
