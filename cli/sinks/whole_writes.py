"""Standard output that takes each write as a whole.

With ``PYTHONUNBUFFERED``, as in many containers, it is a raw file: of a long write to a pipe that a
signal interrupts it takes a part, returns how many bytes that was, and the rest would be lost.
"""

from __future__ import annotations

import io
from typing import BinaryIO, cast


class _WholeWrites:
    """A raw file of which each write is continued until all is written."""

    def __init__(self, file: io.RawIOBase) -> None:
        self._file = file

    def write(self, data: bytes | memoryview) -> int:
        """Write all bytes."""
        rest = memoryview(data)
        while rest:
            rest = rest[self._file.write(rest) or 0 :]
        return len(data)

    def flush(self) -> None:
        """Do nothing: a raw file holds nothing back."""


def with_whole_writes(file: BinaryIO) -> BinaryIO:
    """Return ``file``, or what writes to it as a whole if it is raw."""
    return cast("BinaryIO", _WholeWrites(file)) if isinstance(file, io.RawIOBase) else file
