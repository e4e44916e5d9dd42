"""What happens to the processes of a run that fail: they are restarted, or given up."""

from __future__ import annotations

import queue
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.cli.events import CAPTURE, JOB, Event, ProcessExit
from gscope.cli.supervision.failures import TITLES, failure_of, how_ended
from gscope.cli.supervision.liveness import LOOK_S
from gscope.queries.streams.process_events import ProcessError

if TYPE_CHECKING:
    from gscope.capture.settings import CaptureSettings
    from gscope.cli.events import Events
    from gscope.cli.render.outcome import Outcome
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.supervision.process_set import RunProcesses
    from gscope.errors import GscopeError

MEMORY_REMEDY = (
    "raise --spark-memory, or replace long keys by short ones, such as string_hash(data) or"
    " substr(data, 1, 64)"
)

CAUSE_WAIT_S = 0.5
END_GRACE_S = 3.0
"""Seconds that the capture daemon may take to end when everything is answered."""


class Recovery:
    """Detects failures of the processes of a run and restarts them; for the thread of their events.

    Args:
        processes: the processes of the run.
        outcome: the outcome of the run, which counts restarts.
        observer: notified of restarts.
        events: the queue of the events of the processes.
        began: ``time.monotonic()`` when the command began.

    Attributes:
        next_look_s: when to ``look`` again, by ``time.monotonic()``.
    """

    def __init__(
        self,
        processes: RunProcesses,
        outcome: Outcome,
        observer: RunObserver,
        events: Events,
        began: float,
    ) -> None:
        self.next_look_s = 0.0
        self._processes = processes
        self._outcome = outcome
        self._observer = observer
        self._events = events
        self._began = began
        self._answered_s: float | None = None
        self._committed_step = 0
        self._short_of_memory_at: int | None = None

    def on_commit(self, step: int) -> None:
        """Note that a step is committed; a restarted job reports those before it as well."""
        self._committed_step = max(self._committed_step, step)

    def look(self) -> None:
        """Restart processes that are due, and detect those that hang.

        Raises:
            GscopeError: a process is given up.
        """
        for process in self._processes:
            silent_s = process.silence_s()
            if process.is_due:
                self._restart(process.name)
            elif process.state.is_up and silent_s is not None:
                self._on_silence(process.name, silent_s)
        self._end_capture()
        pauses = [each.until_due_s for each in self._processes]
        pause_s = min([LOOK_S, *(pause for pause in pauses if pause is not None)])
        self.next_look_s = time.monotonic() + pause_s

    def on_stopping(self) -> None:
        """Watch the processes of a replay, too, after a signal has ended its input."""
        if not self._processes.is_live:
            for process in self._processes:
                process.liveness.expect(self._processes.limits.job_s)

    def _on_silence(self, name: str, silent_s: float) -> None:
        """Restart a process that hangs, or end a replay that is to end anyway.

        Raises:
            GscopeError: the process is given up.
        """
        reason = f"did not respond for {silent_s:.0f} s"
        if self._processes.is_live:
            self.on_failure(name, reason)
        elif self._outcome.signal:
            failure = self._failure(name, f"{TITLES[name]} {reason} after the signal to stop")
            failure.exit_code = 128 + self._outcome.signal
            raise failure

    def on_exit(self, source: str, code: int) -> None:
        """Handle the end of a process, orderly or not.

        Raises:
            GscopeError: the process is given up.
        """
        process = self._processes[source]
        if not process.state.is_up:
            return
        how = f"failed: {process.complaint}" if process.complaint else how_ended(code)
        is_answered = self._processes.awaited == {CAPTURE} and not self._processes.is_sensor
        is_over = code == 0 or is_answered
        if source == CAPTURE and self._outcome.capture is not None and is_over:
            process.end()
        else:
            was_killed = code < 0 and not process.complaint
            self.on_failure(source, how, was_killed=was_killed)

    def on_failure(self, name: str, reason: str, *, was_killed: bool = False) -> None:
        """Plan the restart of a process, or give it up.

        A daemon that fails at its first start has a cause that a restart does not remove. One of a
        resumed run that is killed by a signal has none: it has worked before. A job that runs out
        of memory twice without a commit in between would do so again, after minutes of trying.

        Raises:
            GscopeError: the process is given up.
        """
        process = self._processes[name]
        title = TITLES[name]
        can_work = process.has_worked or (was_killed and self._processes.is_resumed)
        if name == CAPTURE and not (self._processes.is_live and can_work):
            process.give_up()
            raise self._failure(name, f"{title} {reason}")
        if process.lacks_memory:
            if self._short_of_memory_at == self._committed_step:
                process.give_up()
                message = f"{title} {reason} twice in the same step; {MEMORY_REMEDY}"
                raise self._failure(name, message)
            self._short_of_memory_at = self._committed_step
        if process.on_failure(reason) is None:
            raise self._failure(name, f"{title} {reason}; {process.verdict}, giving up")
        self._outcome.restarts[name] = self._outcome.restarts.get(name, 0) + 1
        self._observer.on_notice(f"{title} {reason}; restarting it")
        self.next_look_s = 0.0

    def can_retry(self, source: str, error: ProcessError) -> bool:
        """Return whether the error of a process may pass when the process is restarted."""
        has_worked = self._processes[source].has_worked
        return self._processes.is_live and has_worked and not error.is_final

    def root_cause(self, source: str, error: ProcessError) -> GscopeError:
        """Return the error that ends the run: the daemon's own, if that comes in time.

        Readers of a daemon that has died report their error before its own arrives.
        """
        until = time.monotonic() + CAUSE_WAIT_S
        while source != CAPTURE and (rest := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                match self._events.get(timeout=rest):
                    case Event("capture", ProcessError() as cause):
                        source, error = CAPTURE, cause
                    case Event("capture", ProcessExit(code=code)) if code != 0:
                        return self._failure(CAPTURE, f"{TITLES[CAPTURE]} {how_ended(code)}")
        failure = self._failure(source, error.message)
        if error.exit_code is not None:
            failure.exit_code = error.exit_code
        failure.leaves_data = error.leaves_data
        return failure

    def _restart(self, name: str) -> None:
        self._processes.restart(name, self._settings_now() if name == CAPTURE else None)
        if name == JOB:
            self._processes.connect()

    def _settings_now(self) -> CaptureSettings | None:
        """Return the settings of a daemon that replaces another.

        It captures for the rest of the duration, and may do without devices that are missing.
        """
        settings = self._processes.settings
        if settings is None:
            return None
        duration_ns = settings.duration_ns
        if duration_ns is not None:
            listening_s = self._began + self._outcome.phases.get("capture listening", 0.0)
            spent_ns = int((time.monotonic() - listening_s) * 1e9)
            duration_ns = max(1, duration_ns - spent_ns)
        return replace(settings, duration_ns=duration_ns, allow_missing_devices=True)

    def _end_capture(self) -> None:
        """End a daemon that waits for acknowledgements which an earlier daemon received."""
        is_waiting = self._processes.awaited == {CAPTURE} and not self._processes.is_sensor
        if not is_waiting or self._outcome.capture is None:
            return
        now_s = time.monotonic()
        if self._answered_s is None:
            self._answered_s = now_s
        elif now_s - self._answered_s >= END_GRACE_S:
            self._processes[CAPTURE].end()

    def _failure(self, source: str, message: str) -> GscopeError:
        return failure_of(source, message, self._processes.last_words(source))
