"""A run's private folder: settings, program, stream log, commits. Gone when the run is over."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import Self

from gscope.errors import UsageError

_LOCK = "lock"
_PREFIX = "run-"
_UNLOCKED = "new-"


def default_work_dir() -> Path:
    """Where runs keep their folders unless told otherwise: ``gscope-<uid>`` among temporary files."""
    return Path(tempfile.gettempdir()) / f"gscope-{os.getuid()}"


class RunDir:
    """A new folder (mode 0700) below ``root``, held by a lock for as long as this process lives.

    Folders of runs that were killed have a lock that nobody holds, or none; opening a new one sweeps
    them away.

    Args:
        root: where; it is made if it is missing.

    Raises:
        UsageError: nothing can be made there.
    """

    def __init__(self, root: Path) -> None:
        try:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            _ensure_private(root)
            _sweep(root)
            # It gets a name that sweeping looks for only when its lock is held.
            made = Path(tempfile.mkdtemp(prefix=_UNLOCKED, dir=root))
            self._lock = os.open(made / _LOCK, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._lock, fcntl.LOCK_EX)
            self.path = made.rename(root / (_PREFIX + made.name.removeprefix(_UNLOCKED)))
        except OSError as error:
            message = f"cannot make a working folder in {root}: {error.strerror}; name another with --work-dir"
            raise UsageError(message) from error

    def close(self) -> None:
        """Remove the folder; harmless when called twice."""
        shutil.rmtree(self.path, ignore_errors=True)
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _ensure_private(root: Path) -> None:
    """Refuse a folder in a shared place that somebody else could have prepared."""
    if root.stat().st_uid not in (os.getuid(), 0):
        message = (
            f"the working folder {root} belongs to somebody else; name another with --work-dir"
        )
        raise UsageError(message)


def _sweep(root: Path) -> None:
    """Remove folders of runs that are over but could not clean up.

    One without a lock was half removed, or a Java that outlived its run made it again.
    """
    for folder in root.glob(f"{_PREFIX}*"):
        try:
            lock = os.open(folder / _LOCK, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            shutil.rmtree(folder, ignore_errors=True)
            continue
        except OSError:
            continue
        try:
            with suppress(OSError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        finally:
            os.close(lock)
