"""Bytes as stored in a file, a pipe or standard input, read into the caller's buffers."""

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
    """Raised by a read when ``interrupt`` was called."""


class ByteStream(Protocol):
    """Bytes that are read once, in order."""

    @property
    def position(self) -> int:
        """Bytes of the stored input consumed so far, before any decompression."""

    @property
    def damage(self) -> list[str]:
        """Sentences on why the bytes ended too early; empty if they did not."""

    def readinto(self, buffer: memoryview) -> int:
        """Fill the beginning of ``buffer`` and return the number of bytes.

        0 only at the end or for no room.

        May return fewer bytes than fit. Bad input raises nothing: it ends, and ``damage`` says why.

        Raises:
            ReadingInterrupted: ``interrupt`` was called.
        """

    def interrupt(self) -> None:
        """Wake a ``readinto`` that waits for input in another thread."""

    def close(self) -> None:
        """Release everything; harmless when called twice."""


class StoredBytes:
    """The bytes of a file, or of standard input for ``-``. Pipes are read as their bytes arrive.

    Files are read, not mapped: a mapped file that shrinks kills the process, and mapping was not
    faster.

    Attributes:
        size_bytes: size of a regular file when it was opened; None for other inputs.

    Raises:
        CaptureError: the input cannot be opened; one sentence.
    """

    def __init__(self, path: str) -> None:
        self.position = 0
        self.damage: list[str] = []
        self.size_bytes: int | None = None
        self._file = _open(path)
        status = os.fstat(self._file.fileno())
        self._is_regular = stat.S_ISREG(status.st_mode)
        self._is_interrupted = False
        # A closed descriptor may become another file's: ``interrupt`` must not write to it then.
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
                # None: the pipe does not block, and another reader took its bytes.
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
        """Descriptor of a regular file, for code that reads it itself and advances ``position``.

        Else None.

        None after ``interrupt``, too.
        """
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
        """Wait until a read would not block, or for ``interrupt``."""
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
        return borrow(path) or io.FileIO(path, opener=open_nonblocking)
    except (OSError, ValueError) as error:
        reason = os_reason(error)
        message = f"cannot open {shown}: {reason}"
        raise CaptureError(message) from error


def open_nonblocking(path: str, flags: int) -> int:
    """Open a file without the uninterruptible wait for the writer of a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _announce_sequential(descriptor: int) -> None:
    """Make the kernel read further ahead."""
    if hasattr(os, "posix_fadvise"):
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)
