"""The switch that ends a replay from another thread.

It does so at any moment from the opening of its inputs.
"""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator


class Interruptible(Protocol):
    """What reads an input and may be waiting for it."""

    def interrupt(self) -> None:
        """Make reads end soon, as if the input ended; for any thread."""


class ReplayStop:
    """A switch that ends a replay from another thread, as if the input ended there."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self._reader: Interruptible | None = None
        self._lock = threading.Lock()

    def request(self) -> None:
        """End the replay soon, also if it is waiting for a pipe."""
        self.event.set()
        with self._lock:
            if self._reader is not None:
                self._reader.interrupt()

    @contextmanager
    def watching(self, reader: Interruptible) -> Iterator[None]:
        """Interrupt ``reader`` on a request meanwhile, also on one that was made before."""
        with self._lock:
            self._reader = reader
            if self.event.is_set():
                reader.interrupt()
        try:
            yield
        finally:
            with self._lock:
                self._reader = None
