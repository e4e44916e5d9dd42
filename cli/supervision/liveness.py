"""Whether a process still gives signs of life: failure detection by what is missing.

Time is monotonic, so that neither a stepped clock nor a suspended machine counts as silence. Nor does time in which
the supervisor itself was kept from looking (stopped, starved, or waiting for a reader of the answers): signs may
have come meanwhile without being heard.
"""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

STILL_S = 300.0
"""Of a step of which no task has ended for so long the user is told: it may hang, or take long."""

STARVED_FACTOR = 12
"""The limit of silence is this many times longer for a process that waits for a processor."""

LOOK_S = 0.5
"""How often to look; the supervisor was away when it comes back more than ``AWAY_S`` later than that."""
AWAY_S = 1.0


class Liveness:
    """The silence of one process.

    Args:
        patience_s: a sign of life must come within so long; None: not watched.
        monotonic: seconds.
    """

    def __init__(
        self, patience_s: float | None = None, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._monotonic = monotonic
        self._patience_s = patience_s
        self._heard_s = self._looked_s = monotonic()

    def expect(self, patience_s: float | None) -> None:
        """From now on a sign must come within so long; None: not watched."""
        self._patience_s = patience_s
        self.on_sign()

    def on_sign(self, silent_s: float = 0.0) -> None:
        """A sign of life came, of somebody who had been silent for ``silent_s`` by then."""
        self._heard_s = self._monotonic() - silent_s

    def silence_s(self, *, is_runnable: Callable[[], bool] = lambda: False) -> float | None:
        """How long it has been silent if that is too long, None if all is well; ask every ``LOOK_S``.

        Args:
            is_runnable: whether it only waits for its turn, as on a machine that has too much to do.
        """
        now_s = self._monotonic()
        away_s = now_s - self._looked_s - LOOK_S
        self._looked_s = now_s
        if away_s > AWAY_S:
            self._heard_s += away_s
        silent_s = now_s - self._heard_s
        if self._patience_s is None or silent_s <= self._patience_s:
            return None
        is_starved = silent_s <= STARVED_FACTOR * self._patience_s and is_runnable()
        return None if is_starved else silent_s


def is_runnable(pid: int) -> bool:
    """Whether a thread of the process runs or waits for a processor; False where that cannot be found out."""
    with suppress(OSError, IndexError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                return True
    return False


@dataclass(frozen=True, slots=True)
class SilenceLimits:
    """How long what may be silent.

    Attributes:
        stream_s: the streams of an interface.
        start_s: a process that starts, and the daemon while it closes windows.
        step_s: a step of which no task ends; None: it is told of and waited for, however long that takes.
    """

    stream_s: float = 5.0
    start_s: float = 300.0
    step_s: float | None = None

    @classmethod
    def of(
        cls, timeout_ns: int | None, interval_ns: int, step_timeout_ns: int | None = None
    ) -> SilenceLimits:
        """That of a run with heartbeats so often; by default five may be missing, but never less than 5 s."""
        return cls(
            max(5 * interval_ns / 1e9, 5.0) if timeout_ns is None else timeout_ns / 1e9,
            step_s=None if step_timeout_ns is None else step_timeout_ns / 1e9,
        )

    @property
    def job_s(self) -> float:
        """The HFTA job: it is alive as long as its Java answers, which may collect garbage for a while."""
        return 12 * max(self.stream_s, 5.0)
