"""Launches the capture daemon and the HFTA job of one run, and watches both."""

from __future__ import annotations

import pickle
import queue
import signal
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gscope.cli.interfaces import STDIN
from gscope.cli.processes import Event, Events, Process, stop_all
from gscope.engine.settings import JOB_FOLDER, PROGRAM_FILE, EngineSettings
from gscope.errors import CaptureError, EngineError, GscopeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.answers import Answers
    from gscope.cli.passthrough import Passthrough
    from gscope.cli.run_file import RunFile
    from gscope.queries.plan.program import Program

MAX_RESTARTS = 3
BACKOFF_S = 0.5
CAUSE_WAIT_S = 0.5
JOB_GRACE_S = 3.0

CAPTURE = "capture"
JOB = "job"
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


class Watcher(Protocol):
    """Who is told how the run goes, for a progress bar."""

    def aside(self) -> AbstractContextManager[None]:
        """Make room on the terminal while answers are written."""

    def close(self) -> None:
        """Nothing more will come."""

    def on_progress(self, fields: dict[str, Any]) -> None:
        """The capture daemon got further; see its ``progress`` event."""

    def on_phase(self, text: str) -> None:
        """The run entered another phase."""


@dataclass(slots=True)
class Outcome:
    """How a run ended.

    Attributes:
        capture: the capture daemon's ``summary`` event.
        phases: seconds since the start of the command by what had been reached then.
        job_phases: the same of the HFTA job by its own account, since its own start.
        late_tuples: rows that came to the HFTA job below a watermark and are in no answer, by query.
        undecodable: payloads that a function of a query could not read, by function.
        restarts: how often the HFTA job was started again.
        signal: that ended the input, 0 for none.
    """

    capture: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    job_phases: dict[str, float] = field(default_factory=dict)
    late_tuples: dict[str, int] = field(default_factory=dict)
    undecodable: dict[str, int] = field(default_factory=dict)
    restarts: int = 0
    signal: int = 0


class Supervisor:
    """One run: processes, their events, and the answers they give.

    ``start_job`` may come long before the program is known, so that Java starts meanwhile.

    Args:
        run_file: the run's record of itself, kept true; its folder is where everything is.
        began: ``time.monotonic()`` when the command began, where phases are counted from.
    """

    def __init__(self, run_file: RunFile, watcher: Watcher, began: float) -> None:
        self.run_dir = run_file.record.path
        self._file = run_file
        self._watcher = watcher
        self._events: Events = queue.SimpleQueue()
        self._processes: dict[str, Process] = {}
        self._began = began
        self.outcome = Outcome()

    @property
    def outputs(self) -> Path:
        """Where the HFTA job publishes its outputs."""
        return self.run_dir / JOB_FOLDER / "outputs"

    def start_job(self, settings: EngineSettings) -> None:
        """Start the HFTA job; it starts its Java and waits for the program."""
        settings.write(self.run_dir)
        self._processes[JOB] = self._job()
        self.reached("processes started")

    def drop_job(self) -> None:
        """The program needs no Spark after all."""
        process = self._processes.pop(JOB, None)
        if process is not None:
            process.stop()
            self._file.drop(JOB)

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Hand the program over and start the capture daemon, which compiles its kernel first."""
        from gscope.capture.settings import SETTINGS_FILE

        self._watcher.on_phase("compiling")
        with (self.run_dir / PROGRAM_FILE).open("wb") as file:
            pickle.dump(program, file)
        (self.run_dir / SETTINGS_FILE).write_text(settings.to_json(), encoding="utf-8")
        self._processes[CAPTURE] = Process(
            CAPTURE,
            MODULES[CAPTURE],
            self.run_dir,
            self._events,
            gets_stdin=any(STDIN in interface.files for interface in settings.interfaces),
        )
        self._file.on_process(CAPTURE, "starting", self._processes[CAPTURE].pid)

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

    def run(self, answers: Answers, passthrough: Passthrough) -> None:
        """Follow the events until everything is answered.

        Raises:
            GscopeError: a process failed for good, or the user left.
            BrokenPipeError: nobody reads the answers any more.
        """
        waiting = {CAPTURE}
        if JOB in self._processes:
            waiting.add(JOB)
        if passthrough.streams:
            waiting.add(PASSTHROUGH)
        while waiting:
            event = self._events.get()
            match event:
                case Event("user", "signal"):
                    self._file.enter("stopping")
                    self._watcher.on_phase("closing windows")
                    self._processes[CAPTURE].signal(signal.SIGTERM)
                case Event("job") if JOB not in self._processes:
                    continue  # dropped: whatever it complains of, nobody needs it
                case Event(source, "error"):
                    raise self._root_cause(event)
                case Event("capture", "listening"):
                    self.reached("capture listening")
                    self._file.on_process(CAPTURE, "running")
                    if not self.outcome.signal:
                        self._file.enter("running")
                    with self._watcher.aside():
                        answers.begin()
                    self._connect()
                    if passthrough.streams:
                        passthrough.start(self._events)
                case Event("capture", "progress"):
                    self._watcher.on_progress(event.fields)
                case Event("capture", "summary"):
                    self.outcome.capture = event.fields
                    self.reached("capture finished")
                    self._watcher.on_phase("answering")
                case Event("job", "ready"):
                    self.reached("Spark ready")
                    self._file.on_process(JOB, "running")
                case Event("job", "commit"):
                    self.reached("first step committed")
                    self.outcome.late_tuples = event.fields["late_tuples"]
                    self.outcome.undecodable = event.fields["undecodable"]
                    with self._watcher.aside():
                        answers.on_commit(event.fields["step"], event.fields["outputs"])
                    self.reached("first rows delivered")
                case Event("job", "finished"):
                    self._file.on_process(JOB, "ended")
                    self.outcome.job_phases = event.fields["phases"]
                    waiting.discard(JOB)
                case Event("passthrough", "rows"):
                    with self._watcher.aside():
                        answers.deliver(event.fields["query"], event.fields["table"])
                    self.reached("first rows delivered")
                    event.fields["done"]()
                case Event("passthrough", "finished"):
                    waiting.discard(PASSTHROUGH)
                case Event(source, "exit"):
                    self._on_exit(source, event.fields, waiting)
        self.reached("answered")

    def stop(self) -> None:
        """End every process, and the progress display."""
        self._watcher.close()
        stop_all(list(self._processes.values()))

    def _job(self) -> Process:
        # Killed while its Java starts, it would leave one that waits for ever: the run's folder, in
        # which Java answers its owner, is removed with the run.
        process = Process(JOB, MODULES[JOB], self.run_dir, self._events, grace_s=JOB_GRACE_S)
        self._file.on_process(JOB, "starting", process.pid)
        return process

    def _connect(self) -> None:
        if JOB in self._processes:
            self._processes[JOB].tell("connect")

    def _on_exit(self, source: str, fields: dict[str, Any], waiting: set[str]) -> None:
        process = self._processes.get(source)
        if process is None or process.pid != fields["pid"]:
            return
        if source == CAPTURE:
            if fields["code"] != 0 or not self.outcome.capture:
                raise self._failure(source, f"the capture daemon ended with {_how(fields['code'])}")
            waiting.discard(CAPTURE)
            self._file.on_process(CAPTURE, "ended")
        elif source == JOB and JOB in waiting:
            self._restart_job(fields["code"])

    def _restart_job(self, code: int) -> None:
        """The job continues from its last commit; the log keeps what it has not acknowledged."""
        if self.outcome.restarts >= MAX_RESTARTS:
            raise self._failure(
                JOB, f"the HFTA job ended with {_how(code)}, the {self.outcome.restarts + 1}th time"
            )
        self.outcome.restarts += 1
        self._file.on_restart(JOB, f"ended with {_how(code)}")
        self._watcher.on_phase(f"the HFTA job ended with {_how(code)}; starting it again")
        self._processes[JOB].stop()
        self._wait(BACKOFF_S * 2 ** (self.outcome.restarts - 1))
        self._processes[JOB] = self._job()
        if "capture listening" in self.outcome.phases:
            self._connect()

    def _wait(self, seconds: float) -> None:
        """Back off; what comes meanwhile is looked at afterwards."""
        until = time.monotonic() + seconds
        postponed: list[Event] = []
        while (rest := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                postponed.append(self._events.get(timeout=rest))
        for event in postponed:
            self._events.put(event)

    def _root_cause(self, error: Event) -> GscopeError:
        """The error to report: readers of a dead capture daemon complain before its own word comes."""
        until = time.monotonic() + CAUSE_WAIT_S
        while error.source != CAPTURE and (rest := until - time.monotonic()) > 0:
            with suppress(queue.Empty):
                match self._events.get(timeout=rest):
                    case Event("capture", "error") as cause:
                        error = cause
                    case Event("capture", "exit", {"code": int(code)}) if code != 0:
                        return self._failure(CAPTURE, f"the capture daemon ended with {_how(code)}")
        failure = self._failure(error.source, error.fields["message"])
        failure.exit_code = error.fields.get("exit_code", failure.exit_code)
        return failure

    def _failure(self, source: str, message: str) -> GscopeError:
        kinds: dict[str, Callable[[str], GscopeError]] = {CAPTURE: CaptureError, JOB: EngineError}
        process = self._processes.get(source)
        words = process.last_words() if process is not None else ""
        detail = f": {words}" if words and "ended with" in message else ""
        return kinds.get(source, EngineError)(message + detail)


def _how(code: int) -> str:
    if code < 0:
        return f"signal {signal.Signals(-code).name}"
    return f"code {code}"
