"""The processes of one run: started in their order, told of each other, and ended."""

from __future__ import annotations

import signal
import threading
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from gscope.capture.confinement.plan import CONFINEMENT_FILE, Confinement
from gscope.capture.confinement.prepare import give_folder, let_pass, let_read
from gscope.cli.config.capture_files import STDIN
from gscope.cli.rundir.plain_path import forget, plain_path
from gscope.cli.supervision.child_process import Process
from gscope.cli.supervision.failures import CAPTURE, JOB
from gscope.cli.supervision.managed_process import Supervised
from gscope.engine.settings import LOG_FOLDER, SETTINGS_FILE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from gscope.capture.settings import CaptureSettings
    from gscope.cli.events import Events
    from gscope.cli.rundir.record_file import RunFile
    from gscope.cli.rundir.run_log import RunLog
    from gscope.cli.supervision.liveness import Patience
    from gscope.cli.supervision.restart_policy import RestartPolicy
    from gscope.engine.settings import EngineSettings
    from gscope.queries.plan.program import Program

JOB_GRACE_S = 3.0

MODULES = {CAPTURE: "gscope.capture.daemon", JOB: "gscope.engine.job"}


class RunProcesses:
    """The capture daemon and the HFTA job, as far as they exist.

    Args:
        file: the run's record of itself, kept true.
        events: where theirs go.
        patience: how long they may be silent.
        policy: how often they are started again.
        log: told what they write to standard error.
        confinement: what they give up; written down already.

    Attributes:
        settings: what the daemon was told first; None before it is started.
        is_resumed: whether an earlier daemon left a log.
        patience: how long they may be silent.
    """

    def __init__(
        self,
        file: RunFile,
        events: Events,
        patience: Patience,
        policy: RestartPolicy,
        log: RunLog | None,
        confinement: Confinement | None = None,
    ) -> None:
        self.settings: CaptureSettings | None = None
        self._run_dir = file.record.path
        self._plain_dir = plain_path(self._run_dir)
        self._file = file
        self._events = events
        self.patience = patience
        self._policy = policy
        self._log = log
        self._confinement = confinement or Confinement()
        if self._plain_dir != self._run_dir:
            let_pass(self._plain_dir.parent, self._confinement.identity)
        self._supervised: dict[str, Supervised] = {}
        self._dropping: threading.Thread | None = None
        self.is_resumed = (self._run_dir / LOG_FOLDER).is_dir()

    def __contains__(self, name: str) -> bool:
        return name in self._supervised

    def __getitem__(self, name: str) -> Supervised:
        return self._supervised[name]

    def __iter__(self) -> Iterator[Supervised]:
        return iter(tuple(self._supervised.values()))

    def get(self, name: str) -> Supervised | None:
        """The process of that name; None if the run has none."""
        return self._supervised.get(name)

    @property
    def is_live(self) -> bool:
        """Whether devices are captured: then whoever hangs is found out, and the daemon started again."""
        return self.settings is not None and self.settings.is_live

    def start_job(self, settings: EngineSettings) -> None:
        """Start the HFTA job; it starts its Java and waits for the program."""
        settings.write(self._run_dir)
        let_read(self._run_dir / SETTINGS_FILE, self._confinement)
        # Killed while its Java starts, it would leave one that waits for ever: the run's folder, in
        # which Java answers its owner, is removed with the run.
        self._supervise(JOB, grace_s=JOB_GRACE_S)

    def restart_job(self, needed: Iterable[Path]) -> None:
        """Start the HFTA job once more, before it has begun to work, and let it reach further folders.

        Args:
            needed: the folders.
        """
        self._confinement = replace(self._confinement, needed=tuple(map(str, needed)))
        self._confinement.write(self._run_dir)
        let_read(self._run_dir / CONFINEMENT_FILE, self._confinement)
        self._supervised.pop(JOB).stop()
        self._supervise(JOB, grace_s=JOB_GRACE_S)

    def drop_job(self) -> None:
        """The program needs no Spark after all; the job ends while the capture begins."""
        job = self._supervised.pop(JOB, None)
        if job is not None:
            self._file.drop(JOB)
            self._dropping = threading.Thread(target=job.stop, name="drop the job")
            self._dropping.start()

    def start_capture(self, program: Program, settings: CaptureSettings) -> None:
        """Hand the program over and start the capture daemon, which compiles its kernel first."""
        from gscope.queries.plan.program_file import PROGRAM_FILE, write_program

        write_program(self._run_dir / PROGRAM_FILE, program)
        let_read(self._run_dir / PROGRAM_FILE, self._confinement)
        give_folder(self._run_dir / LOG_FOLDER, self._confinement.identity)
        self.settings = settings
        self._tell_capture(settings)
        self._supervise(
            CAPTURE,
            is_privileged=True,
            gets_stdin=any(STDIN in interface.files for interface in settings.interfaces),
        )

    def start_again(self, name: str, settings: CaptureSettings | None = None) -> None:
        """Start a process that has failed.

        Args:
            name: which.
            settings: what the daemon is told now; None for the same as before.
        """
        if settings is not None:
            self._tell_capture(settings)
        self._supervised[name].start_again()

    def connect(self) -> None:
        """Tell the job that the daemon is there."""
        capture, job = self.get(CAPTURE), self.get(JOB)
        if capture is not None and job is not None and capture.is_working and not job.is_down:
            job.process.tell("connect")

    def close_windows(self) -> None:
        """End the input, once; a live daemon is told when it listens, before that it would only die of it."""
        capture = self._supervised[CAPTURE]
        if not capture.is_stopping and (capture.is_working or not self.is_live):
            capture.is_stopping = True
            capture.process.signal(signal.SIGTERM)
            capture.liveness.expect(self.patience.start_s if self.is_live else None)

    def last_words(self, name: str) -> str:
        """The last line that a process wrote to standard error, "" for none."""
        supervised = self.get(name)
        return supervised.process.last_words() if supervised is not None else ""

    def stop(self) -> None:
        """End them all."""
        for each in self:
            each.stop()
        if self._dropping is not None:
            self._dropping.join()
        forget(self._plain_dir)

    def _supervise(self, name: str, **how: Any) -> None:
        on_words = partial(self._log.note, name) if self._log is not None else None

        def spawn() -> Process:
            return Process(
                name, MODULES[name], self._plain_dir, self._events, on_words=on_words, **how
            )

        self._supervised[name] = Supervised(
            name, spawn, self.patience.start_s, self._file, self._policy
        )

    def _tell_capture(self, settings: CaptureSettings) -> None:
        from gscope.capture.settings import SETTINGS_FILE as CAPTURE_SETTINGS_FILE

        path = self._run_dir / CAPTURE_SETTINGS_FILE
        path.write_text(settings.to_json(), encoding="utf-8")
        let_read(path, self._confinement)
