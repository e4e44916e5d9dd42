"""The log's index: one append-only file of wire records for all streams.

The index is the truth: a message exists when its record is whole there. It is not fsynced, because what it must
survive is the end of its process, and the kernel keeps what was written; it does not promise to survive a loss of
power, after which a replay starts again from its files.
"""

from __future__ import annotations

import fcntl
import os
from typing import TYPE_CHECKING

from gscope.capture.log.failure import plain_errors
from gscope.errors import StreamError
from gscope.queries.streams.wire import decode_records, encode

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.queries.streams.messages import Message

INDEX_NAME = "index"


class Index:
    """The open index of a log folder, exclusively ours.

    Args:
        folder: of the log; must exist.

    Attributes:
        recovered: the messages found when it was opened; a record that a crash cut off is removed.

    Raises:
        StreamError: unusable, damaged, or in use by another process.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / INDEX_NAME
        with plain_errors("open the stream log", self._path):
            self._descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600
            )
        try:
            self._lock()
            self.recovered, self._size = read_index(folder)
            with plain_errors("repair the stream log", self._path):
                os.ftruncate(self._descriptor, self._size)
        except BaseException:
            os.close(self._descriptor)
            raise

    def append(self, messages: Sequence[Message]) -> None:
        """Write the messages with one call: all of them are there, or an error tells that none is.

        Raises:
            StreamError: not writable; the index is as it was before.
        """
        records = b"".join(map(encode, messages))
        with plain_errors("write to the stream log", self._path):
            try:
                written = 0
                while written < len(records):
                    written += os.write(self._descriptor, records[written:])
            except OSError:
                os.ftruncate(self._descriptor, self._size)
                raise
        self._size += len(records)

    def close(self) -> None:
        """Give the folder up; harmless when called twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def _lock(self) -> None:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            message = f"the stream log {self._path.parent} is in use by another process"
            raise StreamError(message) from error


def read_index(folder: Path) -> tuple[list[Message], int]:
    """All messages of the index in ``folder`` and how many of its bytes they take; needs no lock.

    Raises:
        StreamError: unreadable or damaged.
    """
    path = folder / INDEX_NAME
    with plain_errors("read the stream log", path):
        data = path.read_bytes()
    try:
        messages, size = decode_records(data)
    except StreamError as error:
        message = f"the stream log {path} is damaged: {error}"
        raise StreamError(message) from error
    expected: dict[str, int] = {}
    for message_ in messages:
        if message_.sequence != expected.get(message_.stream, 0):
            problem = f"the stream log {path} is damaged: message {message_.sequence} of stream {message_.stream!r} is out of sequence"
            raise StreamError(problem)
        expected[message_.stream] = message_.sequence + 1
    return messages, size
