"""The processes of one run: start them in order, connect them, and end them."""

from __future__ import annotations

import os
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gscope.capture.process.confinement.plan import Confinement
from gscope.capture.process.confinement.prepare import give_folder, let_pass, let_read
from gscope.cli.config.capture_files import STDIN
from gscope.cli.events import CAPTURE, JOB, PASSTHROUGH
from gscope.cli.rundir.plain_path import forget, plain_path
from gscope.cli.supervision.child_process import ChildProcess
from gscope.cli.supervision.managed_process import ManagedProcess
from gscope.cli.supervision.process_state import ProcessState
from gscope.queries.run_folder.early_start import BEGIN, EARLY
from gscope.queries.run_folder.layout import CONFINEMENT_FILE, JOB_SETTINGS_FILE, LOG_FOLDER

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.events import Events
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_log import RunLog
    from gscope.cli.supervision.liveness import SilenceLimits
    from gscope.cli.supervision.restart_policy import RestartPolicy
    from gscope.engine.settings import JobSecrets, JobSettings
    from gscope.queries.plan.program import Program

JOB_GRACE_S = 3.0

MODULES = {CAPTURE: "gscope.capture.daemon", JOB: "gscope.engine.job"}


class RunProcesses:
    """The capture daemon and the HFTA job, as far as they exist.

    Args:
        file: the run's record of itself, updated at each change.
        events: the queue for the events of the processes.
        limits: how long the processes may be silent.
        policy: how often they are restarted.
        log: receives what they write to standard error; None: no log is kept.
        confinement: what the processes give up; it is in the run's folder already.

    Attributes:
        settings: the settings of the first daemon; None before it is started.
        is_resumed: whether an earlier run of this name left a log.
        limits: how long the processes may be silent.
    """

    def __init__(
        self,
        file: RunFile,
        events: Events,
        limits: SilenceLimits,
        policy: RestartPolicy,
        log: RunLog | None,
        confinement: Confinement | None = None,
    ) -> None:
        self.settings: CaptureSettings | None = None
        self._run_dir = file.record.path
        self._plain_dir = plain_path(self._run_dir)
        self._file = file
        self._events = events
        self.limits = limits
        self._policy = policy
        self._log = log
        self._confinement = confinement or Confinement()
        if self._plain_dir != self._run_dir:
            let_pass(self._plain_dir.parent, self._confinement.identity)
        self._managed: dict[str, ManagedProcess] = {}
        self._early: ChildProcess | None = None
        self._is_reading_streams = False
        self._dropping: threading.Thread | None = None
        self.is_resumed = (self._run_dir / LOG_FOLDER).is_dir()

    def __contains__(self, name: str) -> bool:
        return name in self._managed

    def __getitem__(self, name: str) -> ManagedProcess:
        return self._managed[name]

    def __iter__(self) -> Iterator[ManagedProcess]:
        return iter(tuple(self._managed.values()))

    def get(self, name: str) -> ManagedProcess | None:
        """Return the process of that name; None if the run has none."""
        return self._managed.get(name)

    @property
    def is_live(self) -> bool:
        """Whether devices are captured: a process that hangs is detected, the daemon restarted."""
        return self.settings is not None and self.settings.is_live

    @property
    def is_sensor(self) -> bool:
        """Whether the daemon serves readers on other hosts, for whom it may wait for days."""
        return self.settings is not None and self.settings.listener is not None

    @property
    def awaited(self) -> frozenset[str]:
        """The processes, and the reader of streams, that the run waits for."""
        names = {each.name for each in self if not each.state.is_over}
        return frozenset(names | {PASSTHROUGH} if self._is_reading_streams else names)

    def await_streams(self) -> None:
        """Wait for the reader of the streams that are answers, too."""
        self._is_reading_streams = True

    def on_streams_delivered(self) -> None:
        """Note that the reader of streams has delivered all of them."""
        self._is_reading_streams = False

    def start_job(self, settings: JobSettings, secrets: JobSecrets | None = None) -> None:
        """Start the HFTA job, which waits for the program."""
        if secrets is not None:
            identity = self._confinement.identity
            uid, gid = (
                (os.geteuid(), os.getegid()) if identity is None else (identity.uid, identity.gid)
            )
            secrets.write(self._run_dir, uid, gid)
        settings.write(self._run_dir)
        let_read(self._run_dir / JOB_SETTINGS_FILE, self._confinement)
        # A job that is killed while its Java starts leaves a Java that waits for ever: the run's
        # folder, in which Java answers its owner, is removed with the run.
        self._supervise(JOB, grace_s=JOB_GRACE_S)

    def let_job_read(self, folders: Iterable[Path]) -> None:
        """Let a job that is started from now on read further folders; before the capture starts."""
        self._confinement = replace(self._confinement, needed=tuple(map(str, folders)))
        self._confinement.write(self._run_dir)
        let_read(self._run_dir / CONFINEMENT_FILE, self._confinement)

    def restart_job(self) -> None:
        """Restart the HFTA job before it works."""
        self._managed.pop(JOB).stop()
        self._supervise(JOB, grace_s=JOB_GRACE_S)

    def drop_job(self) -> None:
        """End the job, which the program does not need; it ends while the capture begins."""
        job = self._managed.pop(JOB, None)
        if job is not None:
            self._file.drop(JOB)
            self._dropping = threading.Thread(target=job.stop, name="drop the job")
            self._dropping.start()

    def prepare_capture(self) -> None:
        """Start a capture daemon that loads libraries and waits; ``start_capture`` adopts it."""
        self._early = ChildProcess(
            CAPTURE,
            MODULES[CAPTURE],
            self._plain_dir,
            self._events,
            on_words=self._words(CAPTURE),
            is_privileged=True,
            further=(EARLY,),
        )

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Write the program and start the capture daemon, which compiles its kernel first."""
        from gscope.queries.plan.program_file import write_program
        from gscope.queries.run_folder.layout import PROGRAM_FILE

        write_program(self._run_dir / PROGRAM_FILE, program)
        let_read(self._run_dir / PROGRAM_FILE, self._confinement)
        give_folder(self._run_dir / LOG_FOLDER, self._confinement.identity)
        self.settings = settings
        self._write_settings(settings)
        if (job := self.get(JOB)) is not None and job.state.is_up:
            job.process.write_line("program")
        gets_stdin = any(STDIN in interface.files for interface in settings.interfaces)
        if gets_stdin or settings.inherited:
            self._drop_early()
        self._supervise(
            CAPTURE, is_privileged=True, gets_stdin=gets_stdin, inherited=settings.inherited
        )

    def restart(self, name: str, settings: CaptureSettings | None = None) -> None:
        """Restart a process that has failed.

        Args:
            name: of the process.
            settings: new ones of the daemon; None: those of before.
        """
        if settings is not None:
            self._write_settings(settings)
        self._managed[name].restart()

    def connect(self) -> None:
        """Notify the job that the daemon listens, or has: then the job may find all answered."""
        capture, job = self.get(CAPTURE), self.get(JOB)
        if capture is None or job is None or not job.state.is_up:
            return
        if capture.state.is_working or capture.state is ProcessState.EXITED:
            job.process.write_line("connect")

    def close_windows(self) -> None:
        """Ask the daemon to end its input, once.

        A live daemon is asked when it listens; a signal before that would only kill it.
        """
        capture = self._managed[CAPTURE]
        is_starting = capture.state is ProcessState.STARTING
        if capture.state is ProcessState.RUNNING or (is_starting and not self.is_live):
            capture.end_input(self.limits.start_s if self.is_live else None)

    def last_words(self, name: str) -> str:
        """Return the last line that a process wrote to standard error, "" for none."""
        managed = self.get(name)
        return managed.process.last_words() if managed is not None else ""

    def stop(self) -> None:
        """End all processes."""
        for each in self:
            each.stop()
        self._drop_early()
        if self._dropping is not None:
            self._dropping.join()
        forget(self._plain_dir)

    def _supervise(self, name: str, **how: Any) -> None:
        on_words = self._words(name)

        def spawn() -> ChildProcess:
            if name == CAPTURE and self._early is not None:
                early, self._early = self._early, None
                if not early.has_ended:
                    early.write_line(BEGIN)
                    return early
                early.stop()
            return ChildProcess(
                name, MODULES[name], self._plain_dir, self._events, on_words=on_words, **how
            )

        self._managed[name] = ManagedProcess(
            name, spawn, self.limits.start_s, self._file, self._policy
        )

    def _words(self, name: str) -> Callable[[str], None] | None:
        """Return what notes the lines of a process on standard error; None without a log."""
        return partial(self._log.note, name) if self._log is not None else None

    def _drop_early(self) -> None:
        """End a daemon that was started early and not adopted."""
        if self._early is not None:
            self._early.stop()
            self._early = None

    def _write_settings(self, settings: CaptureSettings) -> None:
        from gscope.queries.run_folder.layout import CAPTURE_SETTINGS_FILE

        path = self._run_dir / CAPTURE_SETTINGS_FILE
        path.write_text(settings.to_json(), encoding="utf-8")
        let_read(path, self._confinement)
