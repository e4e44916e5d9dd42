"""One process of a run: started, watched, and started again when it fails."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.cli.supervision.liveness import Liveness, is_runnable
from gscope.cli.supervision.restart_policy import RestartPolicy, Restarts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.records import ProcessState
    from gscope.cli.supervision.child_process import Process


class Supervised:
    """A process and what became of those before it.

    Args:
        name: of the process in ``run.json``.
        spawn: starts it.
        start_s: how long it may take to begin its work.
        file: the run's record.
        policy: when it is started again.
        monotonic: seconds.

    Attributes:
        process: the present one, or the last.
        is_down: whether it ended and is not started again yet.
        has_worked: whether it, or one before it, ever began its work: what fails later can be tried again.
        is_working: whether the present one has begun its work.
        is_stopping: whether the present one was asked to end its input.
        complaint: why the present one says that it will end, "" if it does not.
        lacks_memory: whether it says that it ends because its memory was too small.
    """

    def __init__(
        self,
        name: str,
        spawn: Callable[[], Process],
        start_s: float,
        file: RunFile,
        policy: RestartPolicy,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = name
        self._spawn = spawn
        self._start_s = start_s
        self._file = file
        self._monotonic = monotonic
        self._restarts = Restarts(policy, monotonic)
        self._due_s = 0.0
        self._children: list[int] = []
        self.liveness = Liveness(None, monotonic)
        self.has_worked = False
        self.process = self._start()

    def _start(self) -> Process:
        self.is_down = self.is_working = self.is_stopping = False
        self.complaint, self.lacks_memory = "", False
        self.liveness.expect(self._start_s)
        self._restarts.on_start()
        process = self._spawn()
        self._file.on_process(self.name, "starting", process.pid)
        return process

    def on_working(self, patience_s: float | None) -> None:
        """It has begun its work; from now on a sign of life must come within so long (None: not watched)."""
        self.is_working = self.has_worked = True
        self.liveness.expect(patience_s)
        self._file.on_process(self.name, "running")

    def on_child(self, pid: int) -> None:
        """It has a child, which must not outlive it."""
        # The descriptor means this very process, also when its number is given to another.
        with suppress(OSError):
            self._children.append(os.pidfd_open(pid))

    def on_failure(self, reason: str) -> float | None:
        """It failed: stop what is left, note it, and plan the next start.

        Returns:
            The seconds until then; None if it is given up.
        """
        self.stop()
        self.is_down, self.is_working = True, False
        delay_s = self._restarts.on_failure()
        if delay_s is not None:
            self._due_s = self._monotonic() + delay_s
            self._file.on_restart(self.name, reason)
        return delay_s

    def silence_s(self) -> float | None:
        """How long it has given no sign of life if that is too long, None if all is well; ask every ``LOOK_S``."""
        return self.liveness.silence_s(is_runnable=lambda: is_runnable(self.process.pid))

    @property
    def verdict(self) -> str:
        """Why it was given up, one phrase."""
        return self._restarts.verdict

    @property
    def is_due(self) -> bool:
        """Whether it is to be started again now."""
        return self.is_down and self._monotonic() >= self._due_s

    @property
    def until_due_s(self) -> float | None:
        """Seconds until it is to be started again; None if it need not be."""
        return max(0.0, self._due_s - self._monotonic()) if self.is_down else None

    def start_again(self) -> None:
        """Start it again."""
        self.process = self._start()

    def end(self, state: ProcessState = "ended") -> None:
        """It is needed no more."""
        self.stop()
        self.liveness.expect(None)
        self._file.on_process(self.name, state)

    def stop(self) -> None:
        """End it and its children, also those that are halted; harmless when they have ended."""
        self.process.stop()
        for child in self._children:
            with suppress(OSError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)
        self._children = []
