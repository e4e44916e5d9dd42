"""Processes that stand still for moments, as on a machine whose disk or memory is busy."""

from __future__ import annotations

import os
import random
import signal
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from types import TracebackType

MOST_AT_ONCE = 4
LONGEST_S = 4.0
"""Less than a supervisor waits for a process before it starts another one."""
LONGEST_PAUSE_S = 0.3


class Halts:
    """Halts some of the processes at random moments, and lets them go on; all of them at the end.

    Args:
        processes: called for the processes there are.
        seed: of the choice.

    Attributes:
        halted: how many times a process was halted.
    """

    def __init__(self, processes: Callable[[], Iterable[int]], seed: int) -> None:
        self.halted = 0
        self._processes = processes
        self._random = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._halt)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()

    def _halt(self) -> None:
        while not self._is_over.wait(self._random.uniform(0, LONGEST_PAUSE_S)):
            found = sorted(self._processes())
            count = min(len(found), self._random.randint(1, MOST_AT_ONCE))
            chosen = self._random.sample(found, count)
            self.halted += len(chosen)
            _send(chosen, signal.SIGSTOP)
            self._is_over.wait(self._random.uniform(0.05, LONGEST_S))
            _send(chosen, signal.SIGCONT)


def _send(processes: Iterable[int], number: signal.Signals) -> None:
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)
