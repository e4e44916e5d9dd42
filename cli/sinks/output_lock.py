"""The lock by which one run at a time writes a result in a folder."""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from contextlib import suppress
from typing import TYPE_CHECKING, BinaryIO, cast

from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


_LONGEST_TOKEN = 100


def lock_output(folder: Path, query: str, kind: str) -> BinaryIO:
    """Open ``.<query>.<kind>.partial`` to read and append, and lock it to write the result.

    Raises:
        UsageError: another run holds it.
        OSError: it cannot be opened.
    """
    path = folder / f".{query}.{kind}.partial"
    while True:
        file = open_own(path, "a+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            message = f"another run is writing {folder / f'{query}.{kind}'}"
            raise UsageError(message) from error
        if _is_at(path, file):
            return file
        # Its previous holder removed it after we opened and before we locked it.
        file.close()


def open_own(path: Path, mode: str) -> BinaryIO:
    """Open a file to write, but no link, pipe or device that another user may have put there.

    Raises:
        UsageError: it is not a plain file.
        OSError: it cannot be opened.
    """
    message = f"{path} is not a plain file; remove it, or name another folder"

    def opener(name: str, flags: int) -> int:
        safe = flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        try:
            descriptor = os.open(name, safe, 0o666)
        except OSError as error:
            if error.errno in (errno.ELOOP, errno.ENXIO):
                raise UsageError(message) from error
            raise
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise UsageError(message)
        return descriptor

    return cast("BinaryIO", open(path, mode, opener=opener))


def unlock_output(folder: Path, query: str, kind: str, file: BinaryIO) -> None:
    """Remove the file of a lock, which releases the lock."""
    (folder / f".{query}.{kind}.partial").unlink(missing_ok=True)
    with suppress(OSError):
        file.close()


def record_owner(file: BinaryIO, token: str) -> str:
    """Write ``token`` into the file of a lock.

    Returns:
        The token of a run that was killed while it held the lock; "" if none was.
    """
    file.seek(0)
    before = file.read(_LONGEST_TOKEN)
    file.truncate(0)
    file.write(token.encode())
    file.flush()
    return before.decode(errors="replace")


def _is_at(path: Path, file: BinaryIO) -> bool:
    try:
        found = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(found, os.fstat(file.fileno()))
