"""Starts the capture daemon and the HFTA job of one run, and handles their events.

In a live run both are restarted when they fail, the daemon with its log and the job from its last
commit; see ``recovery.py`` for what happens then, ``restart_policy.py`` for how often, and
``liveness.py`` for how a process that hangs is detected. In a replay only the job is restarted: its
captures can be read again.
"""

from __future__ import annotations

import queue
import time
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING

import click

from gscope.cli.delivery.stream_events import StreamRows, StreamsFinished
from gscope.cli.events import (
    CAPTURE,
    JOB,
    PASSTHROUGH,
    USER,
    CountersRequest,
    Event,
    Events,
    ProcessExit,
    StopRequest,
)
from gscope.cli.render.accounting import standing_lines
from gscope.cli.render.outcome import Outcome
from gscope.cli.render.progress_text import RunPhase, compiled_text
from gscope.cli.render.summary import counter_line
from gscope.cli.supervision.answered_marks import AnsweredMarks
from gscope.cli.supervision.epochs import epoch_lengths_ns
from gscope.cli.supervision.liveness import STILL_S, SilenceLimits
from gscope.cli.supervision.process_set import RunProcesses
from gscope.cli.supervision.recovery import Recovery
from gscope.cli.supervision.restart_policy import RestartPolicy
from gscope.errors import GscopeError
from gscope.queries.run_folder.layout import CAPTURE_STATISTICS_FILE, JOB_FOLDER, OUTPUTS_FOLDER
from gscope.queries.run_folder.snapshot import read_snapshot
from gscope.queries.streams.process_events import (
    BoundsPromised,
    CaptureFinished,
    CaptureProgress,
    InputReport,
    InterfaceFailed,
    JavaFailed,
    JavaStarted,
    JobAlive,
    JobFinished,
    JobReady,
    KernelCompiling,
    Listening,
    ProcessError,
    SparkReady,
    StepCommitted,
    ThreadsAlive,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gscope.capture.process.confinement.plan import Confinement
    from gscope.capture.settings import CaptureSettings
    from gscope.cli.delivery.answer_feed import AnswerFeed
    from gscope.cli.delivery.delivery import Delivery
    from gscope.cli.delivery.stream_reader import Passthrough
    from gscope.cli.render.progress import RunObserver
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_log import RunLog
    from gscope.cli.supervision.managed_process import ManagedProcess
    from gscope.engine.settings import JobSecrets, JobSettings
    from gscope.queries.plan.program import Program

    Answers = Delivery | AnswerFeed
    Reader = Passthrough | AnswerFeed


class Interrupted(GscopeError):
    """The user asked by a signal to stop immediately.

    Args:
        number: the number of the signal.
    """

    def __init__(self, number: int) -> None:
        super().__init__("interrupted")
        self.exit_code = 128 + number


class Supervisor:
    """The processes of one run, their events and answers.

    ``start_job`` may come long before the program is known, so that the job loads meanwhile.

    Args:
        run_file: the run's record, updated at each change; the run's folder is where it is.
        observer: shows progress and notices.
        began: ``time.monotonic()`` when the command began, from which phases are counted.
        limits: how long processes may be silent.
        policy: how often they are restarted.
        log: receives what they write to standard error; None: no log is kept.
        confinement: what the processes give up; it is in the run's folder already.
    """

    def __init__(
        self,
        run_file: RunFile,
        observer: RunObserver,
        began: float,
        limits: SilenceLimits | None = None,
        policy: RestartPolicy | None = None,
        log: RunLog | None = None,
        confinement: Confinement | None = None,
    ) -> None:
        self.run_dir = run_file.record.path
        self._answered = AnsweredMarks(self.run_dir)
        self.outcome = Outcome()
        self._file = run_file
        self._observer = observer
        self._limits = limits or SilenceLimits()
        self._log = log
        self._began = began
        self._progress: CaptureProgress | None = None
        self._inputs = ""
        self._notified_step: int | None = None
        self._is_stopping = False
        self._events: Events = queue.SimpleQueue()
        self._processes = RunProcesses(
            run_file, self._events, self._limits, policy or RestartPolicy(), log, confinement
        )
        self._recovery = Recovery(self._processes, self.outcome, observer, self._events, began)

    @property
    def outputs(self) -> Path:
        """Where the HFTA job publishes its outputs."""
        return self.run_dir / JOB_FOLDER / OUTPUTS_FOLDER

    def start_job(self, settings: JobSettings, secrets: JobSecrets | None = None) -> None:
        """Start the HFTA job, which waits for the program."""
        self._processes.start_job(settings, secrets)
        self.reached("processes started")

    def prepare_capture(self) -> None:
        """Start the daemon of a capture of files.

        The daemon loads libraries and waits for the program.
        """
        self._processes.prepare_capture()

    def let_job_read(self, folders: Iterable[Path]) -> None:
        """Let a job that is started from now on read further folders; before the capture starts."""
        self._processes.let_job_read(folders)

    def restart_job(self) -> None:
        """Restart the HFTA job before it works."""
        self._processes.restart_job()

    def drop_job(self) -> None:
        """End the job, which the program does not need, while the capture begins."""
        self._processes.drop_job()

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Write the program and start the capture daemon, which compiles its kernel first."""
        self._observer.on_phase(RunPhase.STARTING, "the capture")
        if settings.is_live:
            self._observer.on_epochs(epoch_lengths_ns(program))
        if settings.relay is not None:
            self._inputs = ", ".join(each.name for each in settings.relay.inputs)
        self._processes.start_capture(program, settings)

    def reached(self, phase: str) -> None:
        """Note when a phase was first reached."""
        self.outcome.phases.setdefault(phase, time.monotonic() - self._began)

    def on_signal(self, number: int) -> None:
        """Handle a signal: the first closes all windows, the second ends the run immediately.

        The first ends the run immediately, too, if the capture has not begun.

        Raises:
            Interrupted: the run is to end immediately.
        """
        if self.outcome.signal or CAPTURE not in self._processes:
            raise Interrupted(number)
        self.outcome.signal = number
        self._events.put(Event(USER, StopRequest()))

    def ask_counters(self) -> None:
        """Handle the signal that asks for counters: show them to the user."""
        self._events.put(Event(USER, CountersRequest()))

    def run(self, answers: Answers, passthrough: Reader) -> None:
        """Handle events until everything is answered.

        Raises:
            GscopeError: a process was given up, or the user ended the run.
            BrokenPipeError: the reader of the answers has gone.
        """
        if passthrough.streams:
            self._processes.await_streams()
        while self._processes.awaited:
            event = self._next()
            if event is not None:
                self._on_event(event, answers, passthrough)
            self._end_if_complete(answers)
            if time.monotonic() >= self._recovery.next_look_s:
                self._recovery.look()
        self.reached("answered")

    def _end_if_complete(self, answers: Answers) -> None:
        """End the input if no answer lacks rows, because all of them have reached their LIMIT."""
        if answers.is_complete and not self._is_stopping and self._processes[CAPTURE].has_worked:
            self.outcome.is_complete = True
            self._stop_input()

    def _stop_input(self) -> None:
        """Ask the daemon to end its input, so that all windows close."""
        self._is_stopping = True
        self._file.enter("stopping")
        self._observer.on_phase(RunPhase.CLOSING)
        self._processes.close_windows()
        self._recovery.on_stopping()

    def hide_progress(self) -> None:
        """Remove the progress: what follows is written while no process reports anything."""
        self._observer.close()

    def stop(self) -> None:
        """End every process, and the progress display."""
        self._observer.close()
        self._processes.stop()

    def _next(self) -> Event | None:
        """Return the next event; None if it is time to look after the processes."""
        with suppress(queue.Empty):
            return self._events.get(timeout=max(0.0, self._recovery.next_look_s - time.monotonic()))
        return None

    def _on_event(self, event: Event, answers: Answers, passthrough: Reader) -> None:
        process = self._processes.get(event.source)
        # A process that was restarted may have left events in the queue.
        is_current = process is not None and process.process.pid == event.pid
        if process is not None:
            _note_sign_of_life(process, event.report)
        match event.report:
            case CaptureProgress() as progress:
                self._progress = progress
                self._observer.on_progress(progress)
                answers.on_tick()
            case StreamRows() as rows:
                self._on_rows(rows, answers)
            case StreamsFinished():
                self._processes.on_streams_delivered()
            case StopRequest():
                self._stop_input()
            case CountersRequest():
                self._show_counters(answers)
            case ProcessError() as error if is_current or event.source == PASSTHROUGH:
                self._on_error(event.source, error)
            case KernelCompiling(queries=queries, number=number) if is_current:
                self._observer.on_phase(RunPhase.COMPILING, compiled_text(queries, number))
            case Listening() if is_current and self._processes[CAPTURE].state.is_up:
                self._on_listening(answers, passthrough)
            case InterfaceFailed(interface=name, message=why):
                self.notify(f"interface {name}: {why}; no longer captured")
            case InputReport(input=name, message=what):
                self.notify(f"input {name}: {what}")
            case CaptureFinished() as summary:
                self.outcome.capture = summary
                self.reached("capture finished")
                self._show_job()
                # What follows, until the last step is acknowledged, takes as long as it takes.
                self._processes[CAPTURE].liveness.expect(
                    self._limits.stream_s if self._processes.is_live else None
                )
            case ProcessExit(code=code) if is_current:
                self._recovery.on_exit(event.source, code)
            case StepCommitted() as commit if process is not None:
                self._on_commit(commit, answers)
            case BoundsPromised(bounds=bounds) if process is not None:
                with self._delivering(answers):
                    answers.on_bounds(bounds)
            case _ if is_current and event.source == JOB:
                self._on_job_event(self._processes[JOB], event.report)
                if isinstance(event.report, JobFinished):
                    answers.on_answered(event.report.clocks)

    def _on_job_event(self, job: ManagedProcess, report: object) -> None:
        match report:
            case JavaStarted(pid=pid):
                job.on_child(pid)
            case JobAlive(step=int(step), still_s=float(still_s), awaits_spark=awaits_spark):
                self._on_step(step, still_s)
                self._show_job(step, awaits_spark=awaits_spark)
            case JavaFailed(message=message, out_of_memory=out_of_memory):
                job.complaint, job.lacks_memory = message, out_of_memory
            case SparkReady():
                self.reached("Spark ready")
            case JobReady() if job.state.is_up:
                job.on_working(self._silence_s(self._limits.job_s))
                self._show_job()
            case JobFinished(phases=phases):
                self.outcome.job_phases = phases
                job.on_finished()
                if self._processes.is_sensor:
                    self._show_served()

    def _show_job(self, step: int | None = None, *, awaits_spark: bool = False) -> None:
        """Show what the job does with the rest of the input, once it is all captured."""
        if self.outcome.capture is None:
            return
        job = self._processes.get(JOB)
        if self._processes.is_sensor and job is None:
            self._show_served()
            return
        if awaits_spark or (job is not None and not job.state.is_working):
            self._observer.on_phase(RunPhase.AWAITING_JAVA)
        else:
            self._observer.on_phase(RunPhase.ANSWERING, "" if step is None else f"step {step}")

    def _show_served(self) -> None:
        """Show that all rows that readers on other hosts wait for are in the log."""
        self._observer.on_phase(RunPhase.SERVING)
        self.notify(
            "the input has ended; serving until every reader has acknowledged all rows, a"
            " further Ctrl-C discards them"
        )

    def _on_error(self, source: str, error: ProcessError) -> None:
        """Note why a process says that it ends, if a restart may help.

        Raises:
            GscopeError: it may not.
        """
        process = self._processes.get(source)
        if process is None or not self._recovery.can_retry(source, error):
            raise self._recovery.root_cause(source, error)
        process.complaint = error.message

    def _on_commit(self, commit: StepCommitted, answers: Answers) -> None:
        self.reached("first step committed")
        self._recovery.on_commit(commit.step)
        self.outcome.late_tuples = commit.late_tuples
        self.outcome.shed_tuples = commit.shed_tuples
        self.outcome.trimmed_tuples = commit.trimmed_tuples
        self.outcome.note_incomplete(commit.incomplete, commit.incomplete_epochs)
        self.outcome.undecodable = commit.undecodable
        self.outcome.wrapped_sums = commit.wrapped_sums
        self.outcome.foreign = commit.foreign
        self.outcome.crowded_out = commit.crowded_out
        self.outcome.transferred_bytes = commit.transferred_bytes
        self.outcome.partial = commit.partial
        with self._delivering(answers):
            answers.on_commit(commit.step, commit.outputs, commit.bounds, commit.lost_answers)
        self.reached("first rows delivered")

    def notify(self, sentence: str) -> None:
        """Notify the user, and log it with the run."""
        self._observer.on_notice(sentence)
        if self._log is not None:
            self._log.note("run", sentence)

    def _show_counters(self, answers: Answers) -> None:
        seconds = time.monotonic() - self._began
        with self._observer.aside(is_message=True):
            click.echo(counter_line(self._progress, answers.rows, seconds), err=True)
            for line in standing_lines(read_snapshot(self.run_dir / CAPTURE_STATISTICS_FILE) or {}):
                click.echo(line, err=True)

    @contextmanager
    def _delivering(self, answers: Answers) -> Iterator[None]:
        """Make space for rows, and let the observer know whether there were any."""
        before = sum(answers.rows.values())
        with self._observer.aside():
            yield
            if sum(answers.rows.values()) > before:
                self._observer.on_rows()

    def _silence_s(self, limit_s: float) -> float | None:
        """Return how long a process that works may be silent; None for as long as it takes.

        Args:
            limit_s: the limit of a live run. A replay has one only after a signal, also for what
                begins to work then.
        """
        if self._processes.is_live:
            return limit_s
        return self._limits.job_s if self._is_stopping else None

    def _on_listening(self, answers: Answers, passthrough: Reader) -> None:
        """Begin to answer, or go on: a daemon takes packets, and consumers may connect."""
        capture = self._processes[CAPTURE]
        is_first = not capture.has_worked
        capture.on_working(self._silence_s(self._limits.stream_s))
        self.reached("capture listening")
        if is_first:
            with self._observer.aside():
                answers.begin()
        if self.outcome.signal or self._is_stopping:
            self._processes.close_windows()
        else:
            self._file.enter("running")
            if self._inputs:
                self._observer.on_phase(RunPhase.RELAYING, self._inputs)
        self._processes.connect()
        if passthrough.streams:
            passthrough.connect(self._events)

    def _on_step(self, step: int, still_s: float) -> None:
        """Restart a job whose step may hang, or notify the user.

        Args:
            step: the number of the step that is evaluated.
            still_s: for how long no task of it has ended, in seconds.
        """
        if not self._processes[JOB].state.is_working:
            return  # reported by a job that was ended since
        if self._limits.step_s is not None and still_s > self._limits.step_s:
            reason = f"finished no task of step {step} for {still_s:.0f} s"
            self._recovery.on_failure(JOB, reason)
        elif still_s >= STILL_S and step != self._notified_step:
            self._notified_step = step
            self.notify(
                f"no task of step {step} has finished for {still_s:.0f} s; still waiting,"
                " see --failure-step-timeout"
            )

    def _on_rows(self, found: StreamRows, answers: Answers) -> None:
        self.outcome.note_answered(found.incomplete)
        self._answered.note(found.incomplete)
        with self._delivering(answers) if found.rows else nullcontext():
            answers.on_rows(found.rows, found.streams, found.done, is_last=found.is_last)
        if any(answers.rows.values()):
            self.reached("first rows delivered")


def _note_sign_of_life(process: ManagedProcess, report: object) -> None:
    """Count a report as a sign of life, less the silence of a thread that it reports.

    Progress does not count: it is that of one interface, and another one may hang.
    """
    if not isinstance(report, CaptureProgress):
        silent_s = report.silent_s if isinstance(report, ThreadsAlive) else 0.0
        process.liveness.on_sign(silent_s)
