"""Locks of the folders of runs, which a supervisor holds until it ends, in whatever way."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from gscope.queries.run_folder.layout import LOCK_FILE

_PROBE_S = 0.05
"""Seconds that another process may hold a lock to test it, which takes microseconds."""

_EXIT_S = 5.0
"""Seconds that the kernel may take to close the files of a killed process."""

_BETWEEN_S = 0.01


def take(folder: Path, holder: int | None = None) -> int | None:
    """Return a descriptor that holds the lock of ``folder`` until it is closed.

    The lock file is created if it is missing. Children do not inherit the descriptor.

    A killed supervisor holds its lock for some milliseconds after its daemon has ended: the kernel
    closes the files of a dying process from the highest descriptor down, hence the pipes to its
    children before the lock.

    Args:
        folder: the folder of a run.
        holder: process id of the supervisor; if it is exiting, wait until it releases the lock.

    Returns:
        The descriptor; None if another process holds the lock.

    Raises:
        OSError: the folder is missing, or belongs to another user.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    began_s = time.monotonic()
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            is_exiting = holder is not None and _is_exiting(holder)
            if time.monotonic() - began_s >= (_EXIT_S if is_exiting else _PROBE_S):
                os.close(descriptor)
                return None
            time.sleep(_BETWEEN_S)
        else:
            return descriptor


def _is_exiting(pid: int) -> bool:
    """Return whether a process has ended, or was killed and its memory is freed."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return True


def is_held(folder: Path) -> bool:
    """Return whether a process holds the lock of ``folder``; False if the folder has no lock."""
    try:
        descriptor = os.open(folder / LOCK_FILE, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
