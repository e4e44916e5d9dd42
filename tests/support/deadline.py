"""A time limit for each test: a test that hangs fails, with what its threads and children do.

The limit interrupts any wait of the main thread: joins, locks, reads, the ends of processes. A wait
inside a library that does not return to Python is left to ``faulthandler_timeout``, which ends the
whole process.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.gscope_command import descendants

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

LIMIT_S = 600.0
"""Longer than any wait of a test for a state; it decides nothing else, as machines are shared."""

TEARDOWN_S = 240.0
"""Limit for the ends of fixtures: both limits together are less than ``faulthandler_timeout``."""

AGAIN_S = 30.0
"""Seconds after which a wait that follows the first interruption is interrupted, too."""


class DeadlineError(BaseException):
    """A test has exceeded its time limit.

    It is no ``Exception``, so that neither the code under test nor Hypothesis handles it.
    """


@contextmanager
def deadline(limit_s: float = LIMIT_S, again_s: float = AGAIN_S) -> Iterator[None]:
    """Raise ``DeadlineError`` in the main thread after ``limit_s``.

    It is raised again every ``again_s`` from then. Deadlines nest: the outer one continues after
    the inner one, with the time that it had left.
    """

    def on_alarm(_number: int, _frame: FrameType | None) -> None:
        message = f"the test has exceeded {limit_s:g} s\n{activity()}"
        raise DeadlineError(message)

    handler_before = signal.signal(signal.SIGALRM, on_alarm)
    timer_before = signal.setitimer(signal.ITIMER_REAL, limit_s, again_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler_before)
        signal.setitimer(signal.ITIMER_REAL, *timer_before)


def activity() -> str:
    """Return the stacks of all other threads, and the command lines of all child processes."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    parts = [
        f"thread {names.get(ident, ident)!r}:\n{''.join(traceback.format_stack(frame))}"
        for ident, frame in sys._current_frames().items()
        if ident != threading.get_ident()
    ]
    parts += [f"process {pid}: {line:.300}" for pid, line in descendants(os.getpid()).items()]
    return "\n".join(parts)
