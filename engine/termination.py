"""SIGTERM ends the process at once and in order, whatever its main thread is about."""

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
    """Waits for SIGTERM; made by the main thread, once in a process.

    A handler in Python runs in the main thread, when that comes to it, and what it raises is lost if that is in the
    callback of a weak reference or of an import. So the handler does nothing. The interpreter itself writes the number
    of the signal into a pipe as it comes, and a thread waits there. (Blocked for all threads and waited for with
    ``sigwait`` it would be blocked in Java and its Python workers, too, which are ended by it.)

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
        """Held while something is opened that must not outlive the process, until ``close_first`` was called."""
        return self._lock

    def close_first(self, close: Callable[[], object]) -> None:
        """Call ``close`` before the process ends, from another thread; to be called with ``opening`` held."""
        self._closers.append(close)

    def wait_if_terminating(self) -> None:
        """Return at once; never, if the process is being ended: what fails then, fails because of that."""
        with self._lock:
            return

    def leave(self, code: int) -> None:
        """End the process with ``code``, at once, unless it is being ended already."""
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
    """The thread has seen it."""
