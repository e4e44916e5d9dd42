"""CPU time that is charged to no parent.

A process that ignores SIGCHLD, as PySpark's daemon does, never waits for its children, and the
kernel discards their CPU time (getrusage(2)). While a command runs, this module samples them;
what they do after the last sample is lost.
"""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from types import TracebackType

PERIOD_S = 0.1
_TICKS = os.sysconf("SC_CLK_TCK")
_IGNORES = 1 << (signal.SIGCHLD - 1)


class Uncharged:
    """Samples the descendants of this process while it is open; a context manager.

    Attributes:
        user_s: user time of children of processes that ignore SIGCHLD.
        sys_s: their system time.
    """

    def __init__(self) -> None:
        # Samples take time from the command; processes older than it are sampled only once.
        self._others = set(_pids()) - {os.getpid()}
        self._seen: dict[tuple[int, int], tuple[int, int]] = {}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look_on, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    @property
    def user_s(self) -> float:
        """See the class."""
        return sum(user for user, _ in self._seen.values()) / _TICKS

    @property
    def sys_s(self) -> float:
        """See the class."""
        return sum(system for _, system in self._seen.values()) / _TICKS

    def _look_on(self) -> None:
        while not self._over.wait(PERIOD_S):
            self._look()

    def _look(self) -> None:
        parents: dict[int, int] = {}
        found: dict[int, tuple[int, int, int]] = {}
        for pid in _pids():
            fields = [] if pid in self._others else _stat(pid)
            if fields:
                parents[pid] = int(fields[1])
                found[pid] = (int(fields[19]), int(fields[11]), int(fields[12]))
        forgetful = {
            pid
            for pid in set(parents.values()) - self._others
            if _is_ours(pid, parents) and _ignores(pid)
        }
        for pid, parent in parents.items():
            if parent in forgetful:
                began, user, system = found[pid]
                self._seen[pid, began] = (user, system)


def _pids() -> list[int]:
    return [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _stat(pid: int) -> list[str]:
    """Return the fields of a process after its name; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _is_ours(pid: int, parents: dict[int, int]) -> bool:
    while pid not in (0, os.getpid()):
        pid = parents.get(pid, 0)
    return pid != 0


def _ignores(pid: int) -> bool:
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return False
    masks = (int(line.split()[1], 16) for line in lines if line.startswith("SigIgn:"))
    return any(mask & _IGNORES for mask in masks)
