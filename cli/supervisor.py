"""Launches the capture daemon and the HFTA job of one run, and watches both.

Of a live run both are started again when they fail, the daemon into its log and the job from its last commit; see
``restarts.py`` for how often and ``liveness.py`` for how it is noticed that one hangs. Of a replay only the job is: its
captures can be read again.
"""

from __future__ import annotations

import pickle
import queue
import signal
import threading
import time
from contextlib import nullcontext, suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from gscope.cli.balance import standing_lines
from gscope.cli.failures import CAPTURE, JOB, TITLES, failure_of, how_ended
from gscope.cli.interfaces import STDIN
from gscope.cli.liveness import LOOK_S, Patience
from gscope.cli.outcome import Outcome
from gscope.cli.processes import Event, Events, Process
from gscope.cli.restarts import RestartPolicy
from gscope.cli.summary import counter_line
from gscope.cli.supervised import Supervised
from gscope.engine.settings import JOB_FOLDER, PROGRAM_FILE, EngineSettings
from gscope.errors import GscopeError
from gscope.queries.streams.snapshot import CAPTURE_FILE, read_snapshot

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.answers import Answers
    from gscope.cli.passthrough import Passthrough
    from gscope.cli.run_file import RunFile
    from gscope.cli.run_log import RunLog
    from gscope.cli.watchers import Watcher
    from gscope.queries.plan.program import Program

CAUSE_WAIT_S = 0.5
JOB_GRACE_S = 3.0
END_GRACE_S = 3.0
"""How long the capture daemon may take to end when everything is answered."""

PASSTHROUGH = "passthrough"
MODULES = {CAPTURE: "gscope.capture.daemon", JOB: "gscope.engine.job"}


class Interrupted(GscopeError):
    """A signal asked to stop at once.

    Args:
        number: of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__("interrupted")
        self.exit_code = 128 + number


class Supervisor:
    """One run: processes, their events, and the answers they give.

    ``start_job`` may come long before the program is known, so that Java starts meanwhile.

    Args:
        run_file: the run's record of itself, kept true; its folder is where everything is.
        began: ``time.monotonic()`` when the command began, where phases are counted from.
        patience: how long processes may be silent.
        policy: how often they are started again.
        log: told what they write to standard error.
    """

    def __init__(
        self,
        run_file: RunFile,
        watcher: Watcher,
        began: float,
        patience: Patience | None = None,
        policy: RestartPolicy | None = None,
        log: RunLog | None = None,
    ) -> None:
        self.run_dir = run_file.record.path
        self._file = run_file
        self._watcher = watcher
        self._patience = patience or Patience()
        self._policy = policy or RestartPolicy()
        self._log = log
        self._events: Events = queue.SimpleQueue()
        self._processes: dict[str, Supervised] = {}
        self._waiting: set[str] = set()
        self._settings: CaptureSettings | None = None
        self._next_look_s = 0.0
        self._answered_s: float | None = None
        self._began = began
        self._progress: dict[str, Any] = {}
        self._dropping: threading.Thread | None = None
        self.outcome = Outcome()

    @property
    def outputs(self) -> Path:
        """Where the HFTA job publishes its outputs."""
        return self.run_dir / JOB_FOLDER / "outputs"

    def start_job(self, settings: EngineSettings) -> None:
        """Start the HFTA job; it starts its Java and waits for the program."""
        settings.write(self.run_dir)
        # Killed while its Java starts, it would leave one that waits for ever: the run's folder, in
        # which Java answers its owner, is removed with the run.
        self._supervise(JOB, grace_s=JOB_GRACE_S)
        self.reached("processes started")

    def drop_job(self) -> None:
        """The program needs no Spark after all; the job ends while the capture begins."""
        job = self._processes.pop(JOB, None)
        if job is not None:
            self._file.drop(JOB)
            self._dropping = threading.Thread(target=job.stop, name="drop the job")
            self._dropping.start()

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Hand the program over and start the capture daemon, which compiles its kernel first."""
        self._watcher.on_phase("compiling")
        with (self.run_dir / PROGRAM_FILE).open("wb") as file:
            pickle.dump(program, file)
        self._settings = settings
        self._write_settings(settings)
        self._supervise(
            CAPTURE,
            is_privileged=True,
            gets_stdin=any(STDIN in interface.files for interface in settings.interfaces),
        )

    def _supervise(self, name: str, **how: Any) -> None:
        on_words = partial(self._log.note, name) if self._log is not None else None

        def spawn() -> Process:
            return Process(
                name, MODULES[name], self.run_dir, self._events, on_words=on_words, **how
            )

        self._processes[name] = Supervised(
            name, spawn, self._patience.start_s, self._file, self._policy
        )

    def _write_settings(self, settings: CaptureSettings) -> None:
        from gscope.capture.settings import SETTINGS_FILE

        (self.run_dir / SETTINGS_FILE).write_text(settings.to_json(), encoding="utf-8")

    def reached(self, phase: str) -> None:
        """Note when a phase was reached first."""
        self.outcome.phases.setdefault(phase, time.monotonic() - self._began)

    def on_signal(self, number: int) -> None:
        """A signal handler: the first closes the windows and flushes, the second leaves at once.

        Before there is anything to close, the first leaves at once too.

        Raises:
            Interrupted: leave.
        """
        if self.outcome.signal or CAPTURE not in self._processes:
            raise Interrupted(number)
        self.outcome.signal = number
        self._events.put(Event("user", "signal", {}))

    def ask_counters(self) -> None:
        """A signal handler: tell the user how the run goes."""
        self._events.put(Event("user", "counters", {}))

    def run(self, answers: Answers, passthrough: Passthrough) -> None:
        """Follow the events until everything is answered.

        Raises:
            GscopeError: a process failed for good, or the user left.
            BrokenPipeError: nobody reads the answers any more.
        """
        self._waiting = {CAPTURE} | ({JOB} & self._processes.keys())
        if passthrough.streams:
            self._waiting.add(PASSTHROUGH)
        while self._waiting:
            event = self._next()
            if event is not None:
                self._on_event(event, answers, passthrough)
            if time.monotonic() >= self._next_look_s:
                self._look()
        self.reached("answered")

    def stop(self) -> None:
        """End every process, and the progress display."""
        self._watcher.close()
        for each in self._processes.values():
            each.stop()
        if self._dropping is not None:
            self._dropping.join()

    def _next(self) -> Event | None:
        """The next event; None if it is time to look after the processes."""
        with suppress(queue.Empty):
            return self._events.get(timeout=max(0.0, self._next_look_s - time.monotonic()))
        return None

    def _on_event(self, event: Event, answers: Answers, passthrough: Passthrough) -> None:
        process = self._processes.get(event.source)
        # Progress is that of one interface; another one may hang.
        if process is not None and event.name != "progress":
            process.liveness.on_sign(event.fields.get("silent_s", 0.0))
        match event:
            case Event("user", "signal"):
                self._file.enter("stopping")
                self._watcher.on_phase("closing windows")
                self._close_windows()
            case Event("user", "counters"):
                seconds = time.monotonic() - self._began
                with self._watcher.aside():
                    click.echo(counter_line(self._progress, answers.rows, seconds), err=True)
                    for line in standing_lines(read_snapshot(self.run_dir / CAPTURE_FILE) or {}):
                        click.echo(line, err=True)
            case Event("job") if process is None:
                return  # dropped: whatever it complains of, nobody needs it
            case Event("capture" | "job", "error") if self._can_try_again(event):
                self._processes[event.source].complaint = event.fields["message"]
            case Event(_, "error"):
                raise self._root_cause(event)
            case Event("job", "failed"):
                self._processes[JOB].complaint = event.fields["message"]
            case Event("capture", "listening"):
                self._on_listening(answers, passthrough)
            case Event("capture", "progress"):
                self._progress = event.fields
                self._watcher.on_progress(event.fields)
                answers.on_tick()
            case Event("capture", "summary"):
                self.outcome.capture = event.fields
                self.reached("capture finished")
                self._watcher.on_phase("answering")
                # What follows, until the last step is acknowledged, takes as long as it takes.
                self._processes[CAPTURE].liveness.expect(self._stream_s())
            case Event("job", "java"):
                self._processes[JOB].on_child(event.fields["pid"])
            case Event("job", "ready"):
                self.reached("Spark ready")
                self._processes[JOB].on_working(self._patience.job_s if self._is_live else None)
            case Event("job", "commit"):
                self.reached("first step committed")
                self.outcome.late_tuples = event.fields["late_tuples"]
                self.outcome.shed_tuples = event.fields["shed_tuples"]
                self.outcome.undecodable = event.fields["undecodable"]
                with self._watcher.aside():
                    answers.on_commit(event.fields["step"], event.fields["outputs"])
                self.reached("first rows delivered")
            case Event("job", "finished"):
                self._file.on_process(JOB, "ended")
                self.outcome.job_phases = event.fields["phases"]
                self._waiting.discard(JOB)
                self._processes[JOB].liveness.expect(None)
            case Event("passthrough", "rows"):
                self._on_rows(event.fields, answers)
            case Event("passthrough", "finished"):
                self._waiting.discard(PASSTHROUGH)
            case Event("capture" | "job", "exit"):
                self._on_exit(event.source, event.fields)

    @property
    def _is_live(self) -> bool:
        return self._settings is not None and self._settings.is_live

    def _stream_s(self) -> float | None:
        return self._patience.stream_s if self._is_live else None

    def _on_listening(self, answers: Answers, passthrough: Passthrough) -> None:
        """The daemon lets packets in and consumers may connect: for the first time, or once more."""
        capture = self._processes[CAPTURE]
        is_first = not capture.has_worked
        capture.on_working(self._stream_s())
        self.reached("capture listening")
        if is_first:
            with self._watcher.aside():
                answers.begin()
        if self.outcome.signal:
            self._close_windows()
        else:
            self._file.enter("running")
        self._connect()
        if passthrough.streams:
            passthrough.connect(self._events)

    def _on_rows(self, fields: dict[str, Any], answers: Answers) -> None:
        rows, streams = fields["rows"], fields["streams"]
        with self._watcher.aside() if rows else nullcontext():
            cursors = answers.on_rows(rows, streams, is_last=fields["is_last"])
        if rows:
            self.reached("first rows delivered")
        fields["done"](cursors)

    def _connect(self) -> None:
        """Tell the job that the daemon is there."""
        capture, job = self._processes.get(CAPTURE), self._processes.get(JOB)
        if capture is not None and job is not None and capture.is_working and not job.is_down:
            job.process.tell("connect")

    def _close_windows(self) -> None:
        """End the input, once; a live daemon is told when it listens, before that it would only die of it."""
        capture = self._processes[CAPTURE]
        if not capture.is_stopping and (capture.is_working or not self._is_live):
            capture.is_stopping = True
            capture.process.signal(signal.SIGTERM)
            capture.liveness.expect(self._patience.start_s if self._is_live else None)

    # -- failures --------------------------------------------------------------------------------

    def _look(self) -> None:
        """Start again what is due, and find out who hangs."""
        for name, process in self._processes.items():
            silent_s = process.silence_s()
            if process.is_due:
                self._start_again(name)
            elif not process.is_down and silent_s is not None and self._is_live:
                self._on_failure(name, f"gave no sign of life for {silent_s:.0f} s")
        self._end_capture()
        pauses = [each.until_due_s for each in self._processes.values()]
        pause_s = min([LOOK_S, *(pause for pause in pauses if pause is not None)])
        self._next_look_s = time.monotonic() + pause_s

    def _start_again(self, name: str) -> None:
        settings = self._settings
        if name == CAPTURE and settings is not None and settings.duration_ns is not None:
            listening_s = self._began + self.outcome.phases.get("capture listening", 0.0)
            spent_ns = int((time.monotonic() - listening_s) * 1e9)
            self._write_settings(
                replace(settings, duration_ns=max(1, settings.duration_ns - spent_ns))
            )
        self._processes[name].start_again()
        if name == JOB:
            self._connect()

    def _end_capture(self) -> None:
        """End a daemon that waits for acknowledgements which the one before it was given."""
        if self._waiting != {CAPTURE} or not self.outcome.capture:
            return
        now_s = time.monotonic()
        if self._answered_s is None:
            self._answered_s = now_s
        elif now_s - self._answered_s >= END_GRACE_S:
            self._processes[CAPTURE].end()
            self._waiting.discard(CAPTURE)

    def _on_exit(self, source: str, fields: dict[str, Any]) -> None:
        process = self._processes[source]
        if process.is_down or process.process.pid != fields["pid"]:
            return
        how = how_ended(fields["code"])
        if process.complaint:
            how = f"failed: {process.complaint}"
        is_over = fields["code"] == 0 or self._waiting == {CAPTURE}
        if source == CAPTURE and self.outcome.capture and is_over:
            process.end()
            self._waiting.discard(CAPTURE)
        elif source in self._waiting:
            self._on_failure(source, how)

    def _on_failure(self, name: str, reason: str) -> None:
        """Start a process again in a while, or give it up.

        Raises:
            GscopeError: it is given up.
        """
        process = self._processes[name]
        title = TITLES[name]
        if name == CAPTURE and not (self._is_live and process.has_worked):
            raise self._failure(name, f"{title} {reason}")
        if process.on_failure(reason) is None:
            raise self._failure(name, f"{title} {reason}; {process.verdict}, and is given up")
        self.outcome.restarts[name] = self.outcome.restarts.get(name, 0) + 1
        self._watcher.on_notice(f"{title} {reason}; it is started again")
        self._next_look_s = 0.0

    def _can_try_again(self, event: Event) -> bool:
        """Whether what a process complains of may be over when it is started again."""
        is_final = event.fields.get("is_final", False)
        return self._is_live and self._processes[event.source].has_worked and not is_final

    def _root_cause(self, error: Event) -> GscopeError:
        """The error to report: readers of a dead capture daemon complain before its own word comes."""
        until = time.monotonic() + CAUSE_WAIT_S
        while error.source != CAPTURE and (rest := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                match self._events.get(timeout=rest):
                    case Event("capture", "error") as cause:
                        error = cause
                    case Event("capture", "exit", {"code": int(code)}) if code != 0:
                        return self._failure(CAPTURE, f"{TITLES[CAPTURE]} {how_ended(code)}")
        failure = self._failure(error.source, error.fields["message"])
        failure.exit_code = error.fields.get("exit_code", failure.exit_code)
        return failure

    def _failure(self, source: str, message: str) -> GscopeError:
        supervised = self._processes.get(source)
        words = supervised.process.last_words() if supervised is not None else ""
        return failure_of(source, message, words)
