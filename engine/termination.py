"""Termination by SIGTERM: at once and in order, whatever the main thread is doing."""

from __future__ import annotations

import os
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

EXIT_CODE = 128 + signal.SIGTERM


class Termination:
    """A thread that waits for SIGTERM; created by the main thread, once in a process.

    Python runs a signal handler in the main thread, once that returns to the interpreter, and loses
    an exception that the handler raises within the callback of a weak reference or an import. So
    the handler does nothing. The interpreter writes the number of the signal to a pipe on arrival,
    and the thread reads that pipe. (Blocking the signal in all threads and calling ``sigwait``
    would also block it in Java and its Python workers, which SIGTERM is to end.)

    Args:
        end: ends the process.
    """

    def __init__(self, end: Callable[[int], object] = os._exit) -> None:
        self._end = end
        self._closers: list[Callable[[], object]] = []
        self._lock = threading.Lock()
        self._signals, writer = os.pipe()
        os.set_blocking(writer, False)
        signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGTERM, _ignored)
        threading.Thread(target=self._wait, name="termination", daemon=True).start()

    def opening(self) -> threading.Lock:
        """Return a lock to hold from before something opens that must not outlive the process.

        Hold it until ``close_first`` has been called.
        """
        return self._lock

    def close_first(self, close: Callable[[], object]) -> None:
        """Have the thread call ``close`` before the process ends; hold ``opening`` meanwhile."""
        self._closers.append(close)

    def wait_if_terminating(self) -> None:
        """Return at once, or never if the process is ending, which explains any failure then."""
        with self._lock:
            return

    def leave(self, code: int) -> None:
        """End the process with ``code`` at once, unless it is already ending."""
        self.wait_if_terminating()
        self._end(code)

    def _wait(self) -> None:
        while number := os.read(self._signals, 1):
            if number[0] == signal.SIGTERM:
                break
        with self._lock:
            for close in reversed(self._closers):
                with suppress(Exception):
                    close()
            self._end(EXIT_CODE)


def _ignored(*_: object) -> None:
    """Do nothing: the thread reads the signal from the pipe."""
