"""Processes that stand still for moments, as on a machine whose disk or memory is busy."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

MOST_AT_ONCE = 4
LONGEST_S = 4.0
"""Less than a supervisor waits for a process before it starts another one."""
LONGEST_PAUSE_S = 0.3


@contextmanager
def halts(processes: Callable[[], Iterable[int]], seed: int) -> Iterator[list[int]]:
    """Halt some of the processes at random moments, and let them go on; all of them at the end.

    Args:
        processes: called for the processes there are.
        seed: of the choice.

    Yields:
        The processes halted so far, each as often as it was.
    """
    choice, is_over = random.Random(seed), threading.Event()
    halted: list[int] = []

    def halt() -> None:
        while not is_over.wait(choice.uniform(0, LONGEST_PAUSE_S)):
            found = sorted(processes())
            chosen = choice.sample(found, min(len(found), choice.randint(1, MOST_AT_ONCE)))
            halted.extend(chosen)
            _send(chosen, signal.SIGSTOP)
            is_over.wait(choice.uniform(0.05, LONGEST_S))
            _send(chosen, signal.SIGCONT)

    thread = threading.Thread(target=halt)
    thread.start()
    try:
        yield halted
    finally:
        is_over.set()
        thread.join()


def _send(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
