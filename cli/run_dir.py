"""A run's private folder: settings, program, stream log, commits. Gone when the run is over."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from gscope.cli import run_lock
from gscope.cli.run_file import RunFile
from gscope.cli.runs import FOLDER_PREFIX, RunRecord, read_run
from gscope.engine.settings import LOG_FOLDER
from gscope.errors import UsageError

SUMMARY_FILE = "summary.txt"
"""What became of every packet, for whoever ended the run; empty until it ends."""

_UNNAMED = "new-"


def default_work_dir() -> Path:
    """Where runs keep their folders unless told otherwise: ``gscope-<uid>`` among temporary files."""
    return Path(tempfile.gettempdir()) / f"gscope-{os.getuid()}"


class RunDir:
    """A folder ``run-<NAME>`` (mode 0700) below ``root``, held by a lock for as long as this process lives.

    Folders of runs that were killed have a lock that nobody holds, or none. Opening a new one sweeps
    them away, except those of live runs: they hold packets that nobody has answered yet.

    Args:
        root: where; it is made if it is missing.
        name: of the run.
        is_exact: whether the name was asked for: then a stale live run of that name is taken over, and a
            living one is an error. Otherwise a number is added to a name that is taken.

    Attributes:
        path: the folder.
        file: its ``run.json``.
        resumed: the record of the run that is taken over, None for a new one.
        is_kept: whether closing leaves the folder where it is.

    Raises:
        UsageError: nothing can be made there, or the run lives.
    """

    def __init__(self, root: Path, name: str = "run", *, is_exact: bool = False) -> None:
        self.is_kept = False
        self.resumed: RunRecord | None = None
        self._lock = -1
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _ensure_private(root)
            _sweep(root)
            self.path = (self._taken_over(root, name) if is_exact else None) or self._new(
                root, name, is_exact=is_exact
            )
        except OSError as error:
            message = f"cannot make a working folder in {root}: {error.strerror}; name another with --work-dir"
            raise UsageError(message) from error
        self._guard = _guarded(self.path)
        self.file = RunFile(self._record())
        self.write_summary("")

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.path.name.removeprefix(FOLDER_PREFIX)

    def write_summary(self, text: str) -> None:
        """Leave the summary for whoever has opened its file, in place: the folder is removed soon."""
        with suppress(OSError):
            (self.path / SUMMARY_FILE).write_text(text, encoding="utf-8")

    def hand_back_if_resumed(self) -> None:
        """Leave a run that was taken over as it was."""
        if self.resumed is not None:
            self.is_kept = True
            self.file = RunFile(self.resumed)

    def close(self) -> None:
        """Remove the folder unless it is kept; harmless when called twice."""
        if not self.is_kept:
            shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._guard)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _taken_over(self, root: Path, name: str) -> Path | None:
        """The folder of a stale run of that name, with what it says of itself; None if there is none."""
        path = root / (FOLDER_PREFIX + name)
        if not path.exists():
            return None
        lock = run_lock.take(path)
        record = read_run(path)
        if lock is None:
            pid = f" (pid {record.pid})" if record is not None else ""
            message = f"the run {name} is active{pid}; `gscope stop --run {name}` ends it"
            raise UsageError(message)
        self._lock, self.resumed = lock, record
        return path

    def _new(self, root: Path, name: str, *, is_exact: bool) -> Path:
        """A new folder, under its name only when the lock is held, as nobody may sweep it away."""
        made = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=root))
        lock = run_lock.take(made)
        assert lock is not None
        self._lock = lock
        for number in itertools.count(1):
            path = root / (FOLDER_PREFIX + (name if number == 1 else f"{name}-{number}"))
            try:
                return made.rename(path)
            except OSError:
                # A folder that has something in it stays: the name is taken.
                if not path.exists() or is_exact:
                    shutil.rmtree(made, ignore_errors=True)
                    raise
        raise AssertionError

    def _record(self) -> RunRecord:
        """The first record of this process."""
        now = time.time_ns()
        before = self.resumed
        if before is None:
            return RunRecord(self.path, True, self.name, os.getpid(), "starting", now)
        return replace(before, is_alive=True, pid=os.getpid(), state="starting", failure=None)


def _guarded(folder: Path) -> int:
    """Keep systemd-tmpfiles, which removes old temporary files, out of a folder in use (see tmpfiles.d(5), AGE)."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def _ensure_private(root: Path) -> None:
    """Refuse a folder in a shared place that somebody else could have prepared."""
    if root.stat().st_uid not in (os.getuid(), 0):
        message = (
            f"the working folder {root} belongs to somebody else; name another with --work-dir"
        )
        raise UsageError(message)


def _sweep(root: Path) -> None:
    """Remove folders of runs that are over but could not clean up."""
    for folder in root.glob(f"{FOLDER_PREFIX}*"):
        try:
            lock = run_lock.take(folder)
        except OSError:
            continue
        if lock is None:
            continue
        try:
            if not _holds_answers(folder):
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)


def _holds_answers(folder: Path) -> bool:
    """Whether a live run was killed there after it began to log; captures can be read again."""
    run = read_run(folder)
    return (
        run is not None and run.is_live and run.state != "ended" and (folder / LOG_FOLDER).is_dir()
    )
