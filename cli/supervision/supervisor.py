"""Launches the capture daemon and the HFTA job of one run, and follows what they tell.

Of a live run both are started again when they fail, the daemon into its log and the job from its last commit; see
``recovery.py`` for what is done then, ``restart_policy.py`` for how often, and ``liveness.py`` for how it is noticed that one
hangs. Of a replay only the job is: its captures can be read again.
"""

from __future__ import annotations

import queue
import time
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from gscope.cli.events import Event, Events
from gscope.cli.render.accounting import standing_lines
from gscope.cli.render.outcome import Outcome
from gscope.cli.render.summary import counter_line
from gscope.cli.supervision.failures import CAPTURE, JOB
from gscope.cli.supervision.liveness import STILL_S, Patience
from gscope.cli.supervision.process_set import RunProcesses
from gscope.cli.supervision.recovery import Recovery
from gscope.cli.supervision.restart_policy import RestartPolicy
from gscope.engine.settings import JOB_FOLDER, JobSettings
from gscope.errors import GscopeError
from gscope.queries.run_folder.snapshot import CAPTURE_FILE, read_snapshot

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.capture.confinement.plan import Confinement
    from gscope.capture.settings import CaptureSettings
    from gscope.cli.delivery.delivery import Delivery
    from gscope.cli.delivery.stream_reader import Passthrough
    from gscope.cli.render.progress import Watcher
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_log import RunLog
    from gscope.queries.plan.program import Program


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
        confinement: what the processes give up; written down already.
    """

    def __init__(
        self,
        run_file: RunFile,
        watcher: Watcher,
        began: float,
        patience: Patience | None = None,
        policy: RestartPolicy | None = None,
        log: RunLog | None = None,
        confinement: Confinement | None = None,
    ) -> None:
        self.run_dir = run_file.record.path
        self.outcome = Outcome()
        self._file = run_file
        self._watcher = watcher
        self._patience = patience or Patience()
        self._log = log
        self._began = began
        self._progress: dict[str, Any] = {}
        self._told_step: int | None = None
        self._events: Events = queue.SimpleQueue()
        self._processes = RunProcesses(
            run_file, self._events, self._patience, policy or RestartPolicy(), log, confinement
        )
        self._recovery = Recovery(self._processes, self.outcome, watcher, self._events, began)

    @property
    def outputs(self) -> Path:
        """Where the HFTA job publishes its outputs."""
        return self.run_dir / JOB_FOLDER / "outputs"

    def start_job(self, settings: JobSettings) -> None:
        """Start the HFTA job; it starts its Java and waits for the program."""
        self._processes.start_job(settings)
        self.reached("processes started")

    def restart_job(self, needed: Iterable[Path]) -> None:
        """Let the HFTA job, which has not begun to work, reach further folders."""
        self._processes.restart_job(needed)

    def drop_job(self) -> None:
        """The program needs no Spark after all; the job ends while the capture begins."""
        self._processes.drop_job()

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Hand the program over and start the capture daemon, which compiles its kernel first."""
        self._watcher.on_phase("compiling")
        self._processes.start_capture(program, settings)

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

    def run(self, answers: Delivery, passthrough: Passthrough) -> None:
        """Follow the events until everything is answered.

        Raises:
            GscopeError: a process failed for good, or the user left.
            BrokenPipeError: nobody reads the answers any more.
        """
        if passthrough.streams:
            self._processes.await_streams()
        while self._processes.awaited:
            event = self._next()
            if event is not None:
                self._on_event(event, answers, passthrough)
            if time.monotonic() >= self._recovery.next_look_s:
                self._recovery.look()
        self.reached("answered")

    def stop(self) -> None:
        """End every process, and the progress display."""
        self._watcher.close()
        self._processes.stop()

    def _next(self) -> Event | None:
        """The next event; None if it is time to look after the processes."""
        with suppress(queue.Empty):
            return self._events.get(timeout=max(0.0, self._recovery.next_look_s - time.monotonic()))
        return None

    def _on_event(self, event: Event, answers: Delivery, passthrough: Passthrough) -> None:
        process = self._processes.get(event.source)
        # Progress is that of one interface; another one may hang.
        if process is not None and event.name != "progress":
            process.liveness.on_sign(event.fields.get("silent_s", 0.0))
        match event:
            case Event("user", "signal"):
                self._file.enter("stopping")
                self._watcher.on_phase("closing windows")
                self._processes.close_windows()
                self._recovery.on_stopping()
            case Event("user", "counters"):
                self._tell_counters(answers)
            case Event("job") if process is None:
                return  # dropped: whatever it complains of, nobody needs it
            case Event("capture" | "job", "error") if self._recovery.can_try_again(event):
                self._processes[event.source].complaint = event.fields["message"]
            case Event(_, "error"):
                raise self._recovery.root_cause(event)
            case Event("job", "failed"):
                self._processes[JOB].complaint = event.fields["message"]
                self._processes[JOB].lacks_memory = event.fields.get("out_of_memory", False)
            case Event("capture", "listening") if self._processes[CAPTURE].state.is_up:
                self._on_listening(answers, passthrough)
            case Event("capture", "progress"):
                self._progress = event.fields
                self._watcher.on_progress(event.fields)
                answers.on_tick()
            case Event("capture", "failed"):
                name, why = event.fields["interface"], event.fields["message"]
                self._tell(f"interface {name}: {why}; no longer captured")
            case Event("capture", "summary"):
                self.outcome.capture = event.fields
                self.reached("capture finished")
                self._watcher.on_phase("answering")
                # What follows, until the last step is acknowledged, takes as long as it takes.
                self._processes[CAPTURE].liveness.expect(self._stream_s())
            case Event("job", "java"):
                self._processes[JOB].on_child(event.fields["pid"])
            case Event("job", "alive", {"step": int(step), "still_s": float(still_s)}):
                self._on_step(step, still_s)
            case Event("job", "ready") if self._processes[JOB].state.is_up:
                self.reached("Spark ready")
                self._processes[JOB].on_working(
                    self._patience.job_s if self._processes.is_live else None
                )
            case Event("job", "commit"):
                self.reached("first step committed")
                self._recovery.on_commit(event.fields["step"])
                self.outcome.late_tuples = event.fields["late_tuples"]
                self.outcome.shed_tuples = event.fields["shed_tuples"]
                self.outcome.undecodable = event.fields["undecodable"]
                self.outcome.wrapped_sums = event.fields["wrapped_sums"]
                with self._watcher.aside():
                    answers.on_commit(
                        event.fields["step"], event.fields["outputs"], event.fields["bounds"]
                    )
                self.reached("first rows delivered")
            case Event("job", "promised"):
                with self._watcher.aside():
                    answers.on_bounds(event.fields["bounds"])
            case Event("job", "finished"):
                self.outcome.job_phases = event.fields["phases"]
                self._processes[JOB].on_finished()
            case Event("passthrough", "rows"):
                self._on_rows(event.fields, answers)
            case Event("passthrough", "finished"):
                self._processes.on_streams_delivered()
            case Event("capture" | "job", "exit"):
                self._recovery.on_exit(event.source, event.fields["pid"], event.fields["code"])

    def _tell(self, sentence: str) -> None:
        """Tell the user, and keep it with the run."""
        self._watcher.on_notice(sentence)
        if self._log is not None:
            self._log.note("run", sentence)

    def _tell_counters(self, answers: Delivery) -> None:
        seconds = time.monotonic() - self._began
        with self._watcher.aside():
            click.echo(counter_line(self._progress, answers.rows, seconds), err=True)
            for line in standing_lines(read_snapshot(self.run_dir / CAPTURE_FILE) or {}):
                click.echo(line, err=True)

    def _stream_s(self) -> float | None:
        return self._patience.stream_s if self._processes.is_live else None

    def _on_listening(self, answers: Delivery, passthrough: Passthrough) -> None:
        """The daemon lets packets in and consumers may connect: for the first time, or once more."""
        capture = self._processes[CAPTURE]
        is_first = not capture.has_worked
        capture.on_working(self._stream_s())
        self.reached("capture listening")
        if is_first:
            with self._watcher.aside():
                answers.begin()
        if self.outcome.signal:
            self._processes.close_windows()
        else:
            self._file.enter("running")
        self._processes.connect()
        if passthrough.streams:
            passthrough.connect(self._events)

    def _on_step(self, step: int, still_s: float) -> None:
        """A step is evaluated, and no task of it has ended for so long: it may hang, or take long."""
        if not self._processes[JOB].state.is_working:
            return  # reported by a job that was ended since
        if self._patience.step_s is not None and still_s > self._patience.step_s:
            reason = f"ended no task of step {step} for {still_s:.0f} s"
            self._recovery.on_failure(JOB, reason)
        elif still_s >= STILL_S and step != self._told_step:
            self._told_step = step
            self._tell(
                f"no task of step {step} has ended for {still_s:.0f} s; it is waited for, see"
                " --failure-step-timeout"
            )

    def _on_rows(self, fields: dict[str, Any], answers: Delivery) -> None:
        rows, streams = fields["rows"], fields["streams"]
        with self._watcher.aside() if rows else nullcontext():
            answers.on_rows(rows, streams, fields["done"], is_last=fields["is_last"])
        if any(answers.rows.values()):
            self.reached("first rows delivered")
