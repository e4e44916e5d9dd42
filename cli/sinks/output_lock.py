"""Who may write a result in a folder: one run at a time."""

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


def claim(folder: Path, query: str, kind: str) -> BinaryIO:
    """The file ``.<query>.<kind>.partial``, open to read and append and locked: who has it writes the result, nobody else.

    Raises:
        UsageError: somebody else does.
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
        # Whoever had it before removed it between our opening and locking it.
        file.close()


def open_own(path: Path, mode: str) -> BinaryIO:
    """Open a file to write that another user may have prepared: neither a link nor a pipe or device is followed.

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


def give_back(folder: Path, query: str, kind: str, file: BinaryIO) -> None:
    """Remove the file of a claim and give the claim up."""
    (folder / f".{query}.{kind}.partial").unlink(missing_ok=True)
    with suppress(OSError):
        file.close()


def sign(file: BinaryIO, token: str) -> str:
    """Write ``token`` into the file of a claim; the token of whoever was killed while he had it, "" for nobody."""
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
