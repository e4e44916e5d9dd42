"""Locks of runs' folders: held by the supervisor for as long as it lives, whatever ends it."""

from __future__ import annotations

import fcntl
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

LOCK_FILE = "lock"
_TRIES = 5
_BETWEEN_S = 0.01


def take(folder: Path) -> int | None:
    """The descriptor that holds the lock of ``folder`` until it is closed; None: somebody lives there.

    The lock is made if it is missing. Children do not inherit it.

    Raises:
        OSError: there is no such folder, or it is somebody else's.
    """
    descriptor = os.open(folder / LOCK_FILE, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
    for _ in range(_TRIES):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            # It may only be somebody who looks whether it is held, which takes microseconds.
            time.sleep(_BETWEEN_S)
        else:
            return descriptor
    os.close(descriptor)
    return None


def is_held(folder: Path) -> bool:
    """Whether a process holds the lock of ``folder``; False also where there is none."""
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
