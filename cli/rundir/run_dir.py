"""A run's private folder: settings, program, stream log, commits. Deleted when the run ends."""

from __future__ import annotations

import fcntl
import itertools
import os
import shutil
import stat
import tempfile
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from gscope.cli.rundir import lock as run_lock
from gscope.cli.rundir.record_file import RunFile
from gscope.cli.rundir.records import FOLDER_PREFIX, RunRecord, read_run
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason
from gscope.queries.ownership import fault_of_folder
from gscope.queries.run_folder.layout import LOCK_FILE, LOG_FOLDER, RUN_FILE, SUMMARY_FILE

_UNNAMED = "new-"


def default_work_dir() -> Path:
    """Return the default work dir: ``gscope-<uid>`` in the folder of temporary files."""
    return Path(tempfile.gettempdir()) / f"gscope-{os.getuid()}"


class RunDir:
    """A folder ``run-<NAME>`` (mode 0700) below ``root``, which this process locks until it ends.

    Opening one deletes the folders of runs that were killed, except those of live runs, which hold
    unanswered packets. A folder counts as a run's only if it holds a valid record of that run and
    belongs to this user: everything else in the work dir stays untouched, whatever its name.

    Args:
        root: the work dir, created (mode 0700) if it is missing; only this user may write there.
        name: the name of the run.
        is_exact: whether the user chose the name. A stale live run of that name is then resumed,
            and an active one, or a folder that is not a run's, is an error. Otherwise a name in use
            gets a number.

    Attributes:
        path: the folder.
        file: its ``run.json``.
        resumed: the record of the run that is resumed; None for a new one.
        is_kept: whether the folder stays when it is closed.

    Raises:
        UsageError: the work dir is unusable or open to other users, or the name is in use.
    """

    def __init__(self, root: Path, name: str = "run", *, is_exact: bool = False) -> None:
        self.is_kept = False
        self.resumed: RunRecord | None = None
        self._lock = -1
        try:
            root = private_folder(root)
            _sweep(root)
            self.path = (self._taken_over(root, name) if is_exact else None) or self._new(
                root, name, is_exact=is_exact
            )
        except OSError as error:
            message = (
                f"cannot create a folder in {root}: {os_reason(error)}; name another work dir with "
                "--work-dir"
            )
            raise UsageError(message) from error
        self._guard = _guarded(self.path)
        self.file = RunFile(self._record(self.path))
        self.write_summary("")

    @property
    def name(self) -> str:
        """The name of the run."""
        return self.path.name.removeprefix(FOLDER_PREFIX)

    def write_summary(self, text: str) -> None:
        """Write the summary in place, for readers that have opened it before the folder goes."""
        with suppress(OSError):
            (self.path / SUMMARY_FILE).write_text(text, encoding="utf-8")

    def hand_back_if_resumed(self) -> None:
        """Restore a resumed run to what it was, and keep its folder."""
        if self.resumed is not None:
            self.is_kept = True
            self.file = RunFile(self.resumed)

    def close(self) -> None:
        """Delete the folder unless it is kept; harmless when called twice."""
        if not self.is_kept:
            remove_run(self.path)
        if self._lock >= 0:
            os.close(self._guard)
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _taken_over(self, root: Path, name: str) -> Path | None:
        """Return the folder of the stale run of that name; None if the name is free.

        Raises:
            UsageError: the run is active, or the folder is not a run's.
        """
        path = root / (FOLDER_PREFIX + name)
        if not os.path.lexists(path):
            return None
        record = _own_run(path)
        if record is None:
            message = (
                f"{path} is not a run folder of this user; move it away, or choose another name "
                "with --run or another folder with --work-dir"
            )
            raise UsageError(message)
        lock = run_lock.take(path, record.pid)
        if lock is None:
            message = (
                f"run {name} is active (pid {record.pid}); `gscope stop --run {name}` stops it"
            )
            raise UsageError(message)
        self._lock, self.resumed = lock, record
        return path

    def _new(self, root: Path, name: str, *, is_exact: bool) -> Path:
        """Create a folder, which gets its name once it is locked and holds its record.

        So it never looks like the folder of a killed run.
        """
        made = Path(tempfile.mkdtemp(prefix=_UNNAMED, dir=root))
        lock = run_lock.take(made)
        assert lock is not None
        self._lock = lock
        for number in itertools.count(1):
            path = root / (FOLDER_PREFIX + (name if number == 1 else f"{name}-{number}"))
            try:
                # A rename would replace an empty folder.
                if not os.path.lexists(path):
                    (made / RUN_FILE).write_text(self._record(path).to_json(), encoding="utf-8")
                    return made.rename(path)
            except OSError:
                if not os.path.lexists(path):
                    shutil.rmtree(made, ignore_errors=True)
                    raise
            if is_exact:
                shutil.rmtree(made, ignore_errors=True)
                message = f"another run {name} has just been started"
                raise UsageError(message)
        raise AssertionError

    def _record(self, path: Path) -> RunRecord:
        """Return the first record of this process for the run in ``path``."""
        now = time.time_ns()
        before = self.resumed
        if before is None:
            name = path.name.removeprefix(FOLDER_PREFIX)
            return RunRecord(path, True, name, os.getpid(), "starting", now)
        return replace(before, is_alive=True, pid=os.getpid(), state="starting", failure=None)


def _guarded(folder: Path) -> int:
    """Keep systemd-tmpfiles out of a folder in use; see tmpfiles.d(5), AGE."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def remove_run(folder: Path) -> None:
    """Delete the folder of a run, its record last: until then it is recognised as a run's."""
    with suppress(OSError):
        for entry in folder.iterdir():
            if entry.name == RUN_FILE:
                continue
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != LOCK_FILE:
                entry.unlink()
    shutil.rmtree(folder, ignore_errors=True)


def private_folder(root: Path) -> Path:
    """Return the path of the work dir with links resolved, after creating it if it is missing.

    Raises:
        UsageError: it cannot be created, or another user can write there, or can replace it.
    """
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        message = (
            f"cannot create a folder in {root}: {os_reason(error)}; name another work dir with "
            "--work-dir"
        )
        raise UsageError(message) from error
    if fault := fault_of_folder(root):
        message = (
            f"cannot use the work dir {root}: {fault}; expected a folder that only you can write"
            " to: name another with --work-dir, or run `chmod go-w` on yours"
        )
        raise UsageError(message)
    return root.resolve()


def _sweep(root: Path) -> None:
    """Delete the folders of this user's killed runs that hold no unanswered packets."""
    for folder in root.glob(f"{FOLDER_PREFIX}*"):
        if _own_run(folder) is None:
            continue
        try:
            lock = run_lock.take(folder)
        except OSError:
            continue
        if lock is None:
            continue
        try:
            # Read again: a run that was resumed and ended meanwhile left another record, or none.
            run = _own_run(folder)
            if run is not None and not _holds_answers(run):
                remove_run(folder)
        finally:
            os.close(lock)


def _own_run(folder: Path) -> RunRecord | None:
    """Return the record of this user's run in ``folder``; None if it is none, or a link."""
    try:
        status = folder.lstat()
        is_record = stat.S_ISREG((folder / RUN_FILE).lstat().st_mode)
    except OSError:
        return None
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return read_run(folder) if is_own and is_record else None


def _holds_answers(run: RunRecord) -> bool:
    """Return whether a killed run is live and began to log; captures can be read again."""
    return run.is_live and run.state != "ended" and (run.path / LOG_FOLDER).is_dir()
