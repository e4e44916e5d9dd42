"""One process of a run: started, watched, and restarted when it fails."""

from __future__ import annotations

import os
import signal
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from gscope.cli.supervision.liveness import Liveness, is_runnable
from gscope.cli.supervision.process_state import Lifecycle, ProcessState
from gscope.cli.supervision.restart_policy import RestartPolicy, Restarts

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.supervision.child_process import ChildProcess


class ManagedProcess:
    """The capture daemon or the HFTA job of a run, over its restarts; owns its state.

    Args:
        name: of the process in ``run.json``.
        spawn: starts the process.
        start_s: how long the process may take to report that it works, in seconds.
        file: the run's record, which each change of state is written to.
        policy: when the process is restarted.
        monotonic: the clock, in seconds.

    Attributes:
        process: the present process, or the last one.
        liveness: its signs of life.
        complaint: why the present process says that it will end; "" if it does not.
        lacks_memory: whether the present process says that it ends for lack of memory.
    """

    def __init__(
        self,
        name: str,
        spawn: Callable[[], ChildProcess],
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
        self._lifecycle = Lifecycle(name)
        self.liveness = Liveness(None, monotonic)
        self.process = self._start()

    def _start(self) -> ChildProcess:
        self.complaint, self.lacks_memory = "", False
        self.liveness.expect(self._start_s)
        self._restarts.on_start()
        process = self._spawn()
        self._file.on_process(self.name, "starting", process.pid)
        return process

    @property
    def state(self) -> ProcessState:
        """What the process is doing."""
        return self._lifecycle.state

    @property
    def has_worked(self) -> bool:
        """Whether this process or one before it worked: if so, a failure may pass at a restart."""
        return self._lifecycle.has_worked

    def on_working(self, limit_s: float | None) -> None:
        """Note that the process works.

        Args:
            limit_s: how long it may give no sign of life from now on, in seconds; None: for ever.
        """
        is_interrupted = self.state is ProcessState.INTERRUPTED
        self._lifecycle.enter(ProcessState.STOPPING if is_interrupted else ProcessState.RUNNING)
        self.liveness.expect(limit_s)
        self._file.on_process(self.name, "running")

    def end_input(self, limit_s: float | None) -> None:
        """Ask the process, the capture daemon, to end its input.

        Args:
            limit_s: see ``on_working``.
        """
        is_working = self.state is ProcessState.RUNNING
        self._lifecycle.enter(ProcessState.STOPPING if is_working else ProcessState.INTERRUPTED)
        self.process.signal(signal.SIGTERM)
        self.liveness.expect(limit_s)

    def on_finished(self) -> None:
        """Note that the process, the HFTA job, has answered everything."""
        self._lifecycle.enter(ProcessState.FINISHED)
        self.liveness.expect(None)
        self._file.on_process(self.name, "ended")

    def on_child(self, pid: int) -> None:
        """Note that the process has a child, which must not outlive it."""
        # The descriptor means this very process, even after its number is reused.
        with suppress(OSError):
            self._children.append(os.pidfd_open(pid))

    def on_failure(self, reason: str) -> float | None:
        """End what is left of the process that failed, and plan its restart.

        Returns:
            The seconds until the restart; None if the process is given up.
        """
        self._kill()
        delay_s = self._restarts.on_failure()
        if delay_s is None:
            self.give_up()
        else:
            self._lifecycle.enter(ProcessState.BACKOFF)
            self._due_s = self._monotonic() + delay_s
            self._file.on_restart(self.name, reason)
        return delay_s

    def give_up(self) -> None:
        """Note that the process failed and is not restarted."""
        self._lifecycle.enter(ProcessState.FATAL)

    def silence_s(self) -> float | None:
        """Return the seconds without a sign of life if they exceed the limit, else None.

        To be called every ``LOOK_S``.
        """
        return self.liveness.silence_s(is_runnable=lambda: is_runnable(self.process.pid))

    @property
    def verdict(self) -> str:
        """Why the process was given up, one phrase."""
        return self._restarts.verdict

    @property
    def is_due(self) -> bool:
        """Whether the process is to be restarted now."""
        return self.state is ProcessState.BACKOFF and self._monotonic() >= self._due_s

    @property
    def until_due_s(self) -> float | None:
        """Seconds until the process is restarted; None if no restart is planned."""
        if self.state is not ProcessState.BACKOFF:
            return None
        return max(0.0, self._due_s - self._monotonic())

    def restart(self) -> None:
        """Start the process again."""
        self._lifecycle.enter(ProcessState.STARTING)
        self.process = self._start()

    def end(self) -> None:
        """End the process, which is not needed any more."""
        self.stop()
        self.liveness.expect(None)
        self._file.on_process(self.name, "ended")

    def stop(self) -> None:
        """End the process and its children; harmless when they have ended."""
        self._kill()
        if self.state not in (ProcessState.EXITED, ProcessState.FATAL):
            self._lifecycle.enter(ProcessState.EXITED)

    def _kill(self) -> None:
        """End the process and its children, also those that are halted."""
        self.process.stop()
        for child in self._children:
            with suppress(OSError):
                signal.pidfd_send_signal(child, signal.SIGKILL)
            os.close(child)
        self._children = []
