"""Rows that a relay holds until their epochs are complete: in memory, or in files when many.

The relay's state does not include the files: an input keeps its batches until their rows are
released and acknowledged. So they are deleted when a relay starts.
"""

from __future__ import annotations

import secrets
import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.feather as feather

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.streams.messages import Extent

MEMORY_BYTES = 128 << 20
"""Bytes of rows in memory from which on further rows are written to files."""

BATCH_BYTES = 8 << 10
"""What a batch takes beside its rows, in memory or on disk: small ones add up, too."""


class HeldRows:
    """The rows of one batch.

    Args:
        shelf: where they are counted.
        table: the rows.
        extents: the extents of their temporal columns.

    Attributes:
        extents: the extents of their temporal columns.
        num_rows: their number.

    Raises:
        StreamError: the file cannot be written.
    """

    def __init__(self, shelf: Shelf, table: pa.Table, extents: tuple[Extent, ...]) -> None:
        self.extents = extents
        self.num_rows: int = table.num_rows
        self._shelf = shelf
        self._size_bytes: int = table.nbytes + BATCH_BYTES
        self._table: pa.Table | None = table
        self._path: Path | None = None
        if shelf.add(self._size_bytes):
            self._table = None
            self._path = shelf.new_path()
            try:
                with plain_errors("write", self._path):
                    feather.write_feather(table, str(self._path), compression="uncompressed")
            except StreamError:
                self.discard()
                raise

    def read(self) -> pa.Table:
        """Return the rows.

        Raises:
            StreamError: the file cannot be read.
        """
        if self._table is not None:
            return self._table
        assert self._path is not None
        try:
            with plain_errors("read", self._path):
                return feather.read_table(str(self._path), memory_map=False).combine_chunks()
        except pa.ArrowException as error:
            message = f"cannot read {self._path}: {error}"
            raise StreamError(message) from error

    def discard(self) -> None:
        """Delete the rows; a second call does nothing."""
        if self._size_bytes:
            self._shelf.remove(self._size_bytes, is_in_memory=self._path is None)
            self._size_bytes = 0
        self._table = None
        if self._path is not None:
            self._path.unlink(missing_ok=True)


class Shelf:
    """The rows that a relay holds, of all inputs; for several threads.

    Args:
        folder: for files; what is in it is deleted.
        limit_bytes: size of all rows at which only the inputs that hold others back are read.
        memory_bytes: size of rows in memory beyond which files are written.

    Attributes:
        held_bytes: size of all rows.
        limit_bytes: see above.

    Raises:
        StreamError: the folder cannot be made.
    """

    def __init__(self, folder: Path, limit_bytes: int, memory_bytes: int = MEMORY_BYTES) -> None:
        self.held_bytes = 0
        self._folder = folder
        self.limit_bytes = limit_bytes
        self._memory_bytes = memory_bytes
        self._in_memory_bytes = 0
        self._lock = threading.Lock()
        with plain_errors("make the folder", folder):
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for left in folder.iterdir():
                left.unlink()

    @property
    def is_full(self) -> bool:
        """Whether only the inputs that hold others back should be read."""
        return self.held_bytes >= self.limit_bytes

    def add(self, size_bytes: int) -> bool:
        """Count rows; return whether they are to be written to a file."""
        with self._lock:
            self.held_bytes += size_bytes
            if self._in_memory_bytes + size_bytes > self._memory_bytes:
                return True
            self._in_memory_bytes += size_bytes
            return False

    def remove(self, size_bytes: int, *, is_in_memory: bool) -> None:
        """Count rows that were deleted."""
        with self._lock:
            self.held_bytes -= size_bytes
            if is_in_memory:
                self._in_memory_bytes -= size_bytes

    def new_path(self) -> Path:
        """Return the path of a new file."""
        return self._folder / f"{secrets.token_hex(12)}.arrow"
