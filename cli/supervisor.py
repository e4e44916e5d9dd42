"""Launches the capture daemon and the HFTA job of one run, and watches both."""

from __future__ import annotations

import pickle
import queue
import signal
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from gscope.cli.processes import Event, Events, Process, stop_all
from gscope.engine.settings import JOB_FOLDER, PROGRAM_FILE, EngineSettings
from gscope.errors import CaptureError, EngineError, GscopeError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.answers import Answers
    from gscope.cli.passthrough import Passthrough
    from gscope.queries.plan.program import Program

MAX_RESTARTS = 3
BACKOFF_S = 0.5

CAPTURE = "capture"
JOB = "job"
PASSTHROUGH = "passthrough"


class Interrupted(GscopeError):
    """The user asked a second time to stop at once."""

    exit_code = 128 + signal.SIGINT


class Watcher(Protocol):
    """Who is told how the run goes, for a progress bar."""

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
        restarts: how often the HFTA job was started again.
    """

    capture: dict[str, Any] = field(default_factory=dict)
    phases: dict[str, float] = field(default_factory=dict)
    restarts: int = 0


class Supervisor:
    """One run: processes, their events, and the answers they give.

    ``start_job`` may come long before the program is known, so that Java starts meanwhile.

    Args:
        began: ``time.monotonic()`` when the command began, where phases are counted from.
    """

    def __init__(self, run_dir: Path, watcher: Watcher, began: float) -> None:
        self._run_dir = run_dir
        self._watcher = watcher
        self._events: Events = queue.SimpleQueue()
        self._processes: dict[str, Process] = {}
        self._began = began
        self._interrupts = 0
        self.outcome = Outcome()

    def start_job(self, settings: EngineSettings) -> None:
        """Start the HFTA job; it starts its Java and waits for the program."""
        settings.write(self._run_dir)
        self._processes[JOB] = Process(JOB, "gscope.engine.job", self._run_dir, self._events)

    def drop_job(self) -> None:
        """The program needs no Spark after all."""
        process = self._processes.pop(JOB, None)
        if process is not None:
            process.stop()

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Hand the program over and start the capture daemon."""
        from gscope.capture.settings import SETTINGS_FILE

        with (self._run_dir / PROGRAM_FILE).open("wb") as file:
            pickle.dump(program, file)
        (self._run_dir / SETTINGS_FILE).write_text(settings.to_json(), encoding="utf-8")
        self._processes[CAPTURE] = Process(
            CAPTURE, "gscope.capture.daemon", self._run_dir, self._events
        )
        self.reached("compiled")

    def reached(self, phase: str) -> None:
        """Note when a phase was reached first."""
        self.outcome.phases.setdefault(phase, time.monotonic() - self._began)

    def on_interrupt(self) -> None:
        """Ctrl-C: the first closes the windows and flushes, the second leaves at once."""
        self._interrupts += 1
        self._events.put(Event("user", "interrupt", {"count": self._interrupts}))

    def run(self, answers: Answers, passthrough: Passthrough | None) -> None:
        """Follow the events until everything is answered.

        Raises:
            GscopeError: a process failed for good, or the user left.
            BrokenPipeError: nobody reads the answers any more.
        """
        waiting = {CAPTURE}
        if JOB in self._processes:
            waiting.add(JOB)
        if passthrough is not None:
            waiting.add(PASSTHROUGH)
        while waiting:
            event = self._events.get()
            match event:
                case Event("user", "interrupt"):
                    self._interrupt()
                case Event(source, "error"):
                    raise self._failure(source, event.fields["message"])
                case Event("capture", "listening"):
                    self.reached("capture listening")
                    answers.begin()
                    self._connect()
                    if passthrough is not None:
                        passthrough.start(self._events)
                case Event("capture", "progress"):
                    self._watcher.on_progress(event.fields)
                case Event("capture", "summary"):
                    self.outcome.capture = event.fields
                    self.reached("capture finished")
                    self._watcher.on_phase("answering")
                case Event("job", "ready"):
                    self.reached("Spark ready")
                case Event("job", "commit"):
                    self.reached("first step committed")
                    answers.on_commit(event.fields["step"], event.fields["outputs"])
                    self.reached("first rows delivered")
                case Event("job", "finished"):
                    waiting.discard(JOB)
                case Event("passthrough", "rows"):
                    answers.deliver(event.fields["query"], event.fields["table"])
                    self.reached("first rows delivered")
                    event.fields["done"]()
                case Event("passthrough", "finished"):
                    waiting.discard(PASSTHROUGH)
                case Event(source, "exit"):
                    self._on_exit(source, event.fields, waiting)
        self.reached("answered")

    def stop(self) -> None:
        """End every process."""
        stop_all(list(self._processes.values()))

    def _connect(self) -> None:
        if JOB in self._processes:
            self._processes[JOB].tell("connect")

    def _interrupt(self) -> None:
        if self._interrupts > 1:
            message = "interrupted"
            raise Interrupted(message)
        self._watcher.on_phase("closing windows")
        self._processes[CAPTURE].signal(signal.SIGTERM)

    def _on_exit(self, source: str, fields: dict[str, Any], waiting: set[str]) -> None:
        process = self._processes.get(source)
        if process is None or process.pid != fields["pid"]:
            return
        if source == CAPTURE:
            if fields["code"] != 0 or not self.outcome.capture:
                raise self._failure(source, f"the capture daemon ended with {_how(fields['code'])}")
            waiting.discard(CAPTURE)
        elif source == JOB and JOB in waiting:
            self._restart_job(fields["code"])

    def _restart_job(self, code: int) -> None:
        """The job continues from its last commit; the log keeps what it has not acknowledged."""
        if self.outcome.restarts >= MAX_RESTARTS:
            raise self._failure(
                JOB, f"the HFTA job ended with {_how(code)}, the {self.outcome.restarts + 1}th time"
            )
        self.outcome.restarts += 1
        self._watcher.on_phase(f"the HFTA job ended with {_how(code)}; starting it again")
        self._wait(BACKOFF_S * 2 ** (self.outcome.restarts - 1))
        self._processes[JOB] = Process(JOB, "gscope.engine.job", self._run_dir, self._events)
        if "capture listening" in self.outcome.phases:
            self._connect()

    def _wait(self, seconds: float) -> None:
        """Back off, but leave at once when the user insists."""
        until = time.monotonic() + seconds
        postponed: list[Event] = []
        while (rest := until - time.monotonic()) > 0:
            try:
                event = self._events.get(timeout=rest)
            except queue.Empty:
                break
            if event.name == "interrupt" and self._interrupts > 1:
                break
            postponed.append(event)
        for event in postponed:
            self._events.put(event)

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


def outputs_folder(run_dir: Path) -> Path:
    """Where the HFTA job publishes its outputs."""
    return run_dir / JOB_FOLDER / "outputs"
