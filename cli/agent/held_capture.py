"""One capture as the agent holds it: its folder, its process, and how it stands."""

from __future__ import annotations

import shutil
import signal
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.log.agent.messages import (
    ENDED,
    FAILED,
    SERVING,
    STARTING,
    CaptureState,
)
from gscope.cli.agent.settings import REQUEST_FILE, HeldRequest, read_plain, write_plain
from gscope.cli.rundir import lock as run_lock
from gscope.cli.rundir.records import FOLDER_PREFIX
from gscope.cli.rundir.run_dir import remove_run
from gscope.cli.supervision.child_process import ChildProcess
from gscope.errors import UsageError
from gscope.queries.streams.process_events import (
    REQUESTED_CAPTURE_EVENTS,
    CaptureComplete,
    CaptureServing,
    ProcessError,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.cli.events import Events

MODULE = "gscope.cli.agent.requested_capture"

START_S = 180.0
"""Seconds from the start of a capture until it must serve; the first kernels are compiled."""

DISMISSED_S = 10.0
"""Seconds that a capture that is not needed has to end."""

STABLE_S = 30.0
"""Seconds of service after which a capture whose process dies is started again at once."""


class HeldCapture:
    """A capture that another host requested.

    Args:
        folder: its folder, which exists; its name is that of the capture.
        work_dir: the folder of the runs.
        events: takes the events of its process; their source is the name of the capture.
        on_words: called with each line that its process writes to standard error.
        monotonic: a clock in seconds.

    Attributes:
        name: its name.
        state: how it stands, for the host that requested it.
        wanted_s: when that host last said that it needs it, or when this object was made.
    """

    def __init__(
        self,
        folder: Path,
        work_dir: Path,
        events: Events,
        on_words: Callable[[str], None],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name = folder.name
        self._folder = folder
        self._run = work_dir / f"{FOLDER_PREFIX}{folder.name}"
        self._events = events
        self._on_words = on_words
        self._monotonic = monotonic
        self.held: HeldRequest = read_plain(HeldRequest, folder / REQUEST_FILE)
        self.state = CaptureState(ENDED if self.held.has_ended else STARTING)
        self.wanted_s = monotonic()
        self._process: ChildProcess | None = None
        self._since_s = monotonic()
        self._ends_by_s: float | None = None
        self._complaint = ""

    @property
    def is_dismissed(self) -> bool:
        """Whether it was asked to end at once."""
        return self._ends_by_s is not None

    @property
    def is_running(self) -> bool:
        """Whether it has a process."""
        return self._process is not None

    @property
    def is_recorded(self) -> bool:
        """Whether it is a recording that is complete, and that no run has read."""
        return self.held.is_recording and self.state.is_complete

    @property
    def pid(self) -> int | None:
        """The number of its process; None without one."""
        return None if self._process is None else self._process.pid

    def start(self, *, is_known: bool) -> None:
        """Start its process, unless it runs or has ended.

        Args:
            is_known: whether the host has rows of it already.
        """
        if self.is_running or self.held.has_ended:
            return
        self._store(replace(self.held, is_known=is_known or self.held.is_known))
        self.state = CaptureState(STARTING)
        self._since_s = self._monotonic()
        self._complaint = ""
        self._process = ChildProcess(
            self.name,
            MODULE,
            self._folder,
            self._events,
            on_words=self._on_words,
            is_privileged=True,
            kinds=REQUESTED_CAPTURE_EVENTS,
        )

    def on_event(self, report: object) -> None:
        """Note what its process reports."""
        match report:
            case CaptureServing(port=port):
                self._since_s = self._monotonic()
                # A short replay may have been complete before.
                self.state = replace(self.state, state=SERVING, port=port)
                self._store(replace(self.held, port=port))
            case CaptureComplete():
                self.state = replace(self.state, is_complete=True)
            case ProcessError(message=message):
                self._complaint = message

    def on_exit(self, code: int) -> None:
        """Note the end of its process: it is complete, failed, or is started again."""
        assert self._process is not None
        words = self._process.last_words()
        self._process = None
        was_stable = self.state.state == SERVING and self._monotonic() - self._since_s >= STABLE_S
        if code == 0:
            self.state = CaptureState(ENDED)
            self._store(replace(self.held, has_ended=True))
        elif self._ends_by_s is None and code in _ORDERLY:
            self.state = CaptureState(ENDED)
        else:
            reason = self._complaint or words or f"its process ended with code {code}"
            self.state = CaptureState(FAILED, 0, reason)
            if code < 0 and was_stable:
                self.start(is_known=not self.held.is_recording)

    def on_wanted(self) -> None:
        """Note that a run reads it: from now on it lasts as long as that run."""
        self.wanted_s = self._monotonic()
        self._store(replace(self.held, is_recording=False))

    def close_windows(self) -> None:
        """Ask it to end its input, and to serve until everything is acknowledged."""
        if self._process is not None:
            self._process.signal(signal.SIGTERM)

    def dismiss(self) -> None:
        """Ask it to end at once, without its rows."""
        if self._process is not None and self._ends_by_s is None:
            self._ends_by_s = self._monotonic() + DISMISSED_S
            # Two pending signals of one kind may be delivered as one.
            self._process.signal(signal.SIGTERM)
            self._process.signal(signal.SIGINT)

    def look(self) -> None:
        """End a process that has not started or ended in time."""
        now_s = self._monotonic()
        if self._process is None:
            return
        is_late = self.state.state == STARTING and now_s >= self._since_s + START_S
        if is_late:
            self._complaint = f"it did not start within {START_S:.0f} s"
        if is_late or (self._ends_by_s is not None and now_s >= self._ends_by_s):
            self._process.stop()

    def stop(self) -> None:
        """End its process at once; its log stays."""
        if self._process is not None:
            self._process.stop()

    def forget(self) -> None:
        """Delete its folder, and what a process that was killed has left of its run."""
        shutil.rmtree(self._folder, ignore_errors=True)
        try:
            lock = run_lock.take(self._run)
        except OSError:
            return
        if lock is not None:
            remove_run(self._run)

    def _store(self, held: HeldRequest) -> None:
        if held != self.held:
            self.held = held
            try:
                write_plain(self._folder / REQUEST_FILE, held)
            except UsageError as error:
                # What is lost with the file is what a later agent would have known.
                self._on_words(str(error))


_ORDERLY = tuple(128 + number for number in (signal.SIGTERM, signal.SIGINT))
"""Exit codes of a run that a signal asked to end its input, and that has served all of it."""
