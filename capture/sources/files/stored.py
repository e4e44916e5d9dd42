"""Bytes as they are stored: a file, a pipe or standard input, read into buffers of the caller."""

from __future__ import annotations

import io
import os
import select
import stat
import threading
from typing import Protocol

from gscope.capture.sources.files.held import borrow
from gscope.errors import CaptureError
from gscope.queries.os_errors import os_reason

STANDARD_INPUT = "-"


class ReadingInterrupted(Exception):
    """``interrupt`` was called before or while a read waited for input."""


class ByteStream(Protocol):
    """Bytes in order, once."""

    @property
    def position(self) -> int:
        """Bytes of the stored input consumed so far (before any unpacking)."""

    @property
    def damage(self) -> list[str]:
        """Sentences on why the bytes ended too early, empty when they did not."""

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of ``buffer``; how many bytes, 0 only at the end or for no room.

        May give less than there is room for. Never raises for bad input: it ends, and ``damage`` says why.

        Raises:
            ReadingInterrupted: ``interrupt`` was called.
        """

    def interrupt(self) -> None:
        """Wake a ``readinto`` that waits for input in another thread."""

    def close(self) -> None:
        """Release everything; harmless when called twice."""


class StoredBytes:
    """The bytes of ``path``, of standard input for ``-``. Pipes are read as they come.

    Files are read, not mapped: a mapped file that shrinks kills the process, and was not faster.

    Attributes:
        size_bytes: of a regular file when it was opened, otherwise None.

    Raises:
        CaptureError: it cannot be opened; one sentence.
    """

    def __init__(self, path: str) -> None:
        self.position = 0
        self.damage: list[str] = []
        self.size_bytes: int | None = None
        self._file = _open(path)
        status = os.fstat(self._file.fileno())
        self._is_regular = stat.S_ISREG(status.st_mode)
        self._is_interrupted = False
        # Its descriptor may be another file's once it is closed: ``interrupt`` must not write then.
        self._wake_lock = threading.Lock()
        self._wake: tuple[int, int] | None = None
        if self._is_regular:
            self.size_bytes = status.st_size
            _announce_sequential(self._file.fileno())
        else:
            self._wake = os.pipe()

    def readinto(self, buffer: memoryview) -> int:
        """See ``ByteStream``."""
        try:
            while True:
                if self._wake is not None:
                    self._wait(self._wake[0])
                if self._is_interrupted:
                    raise ReadingInterrupted
                got = self._file.readinto(buffer)
                # None: the pipe does not block, and another reader of it was faster.
                if got is not None:
                    self.position += got
                    return got
        except OSError as error:
            self.damage.append(
                f"reading failed at byte {self.position}: {os_reason(error)}; the rest is ignored"
            )
            return 0

    @property
    def descriptor(self) -> int | None:
        """Of a regular file, whose bytes others may read too and add to ``position``; None after ``interrupt``."""
        return self._file.fileno() if self._is_regular and not self._is_interrupted else None

    def interrupt(self) -> None:
        """See ``ByteStream``."""
        self._is_interrupted = True
        with self._wake_lock:
            if self._wake is not None:
                os.write(self._wake[1], b"\0")

    def close(self) -> None:
        """See ``ByteStream``."""
        self._file.close()
        with self._wake_lock:
            if self._wake is not None:
                for descriptor in self._wake:
                    os.close(descriptor)
                self._wake = None

    def _wait(self, wake: int) -> None:
        """Return when a read would not block, or after ``interrupt``."""
        poll = select.poll()
        poll.register(self._file.fileno(), select.POLLIN)
        poll.register(wake, select.POLLIN)
        poll.poll()


def _open(path: str) -> io.FileIO:
    shown = "standard input" if path == STANDARD_INPUT else path
    try:
        if path == STANDARD_INPUT:
            file = io.FileIO(0, closefd=False)
            if file.isatty():
                message = "standard input is a terminal; pipe a capture into it"
                raise CaptureError(message)
            return file
        return borrow(path) or io.FileIO(path, opener=open_at_once)
    except (OSError, ValueError) as error:
        reason = os_reason(error)
        message = f"cannot open {shown}: {reason}"
        raise CaptureError(message) from error


def open_at_once(path: str, flags: int) -> int:
    """Open a file; a named pipe without a writer does not hold it up, which could not be interrupted."""
    return os.open(path, flags | os.O_NONBLOCK)


def _announce_sequential(descriptor: int) -> None:
    """Let the kernel read further ahead."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
