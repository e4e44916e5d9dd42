"""Files that grow during a live run, and lose or repeat no row when it is killed and resumed.

CSV and NDJSON results are one file each, appended to at every delivery. Parquet and Arrow results
come in parts, each visible when it is complete (see ``part_files.py``), Parquet also in folders by
time (see ``partitioned_files.py``).
"""

from __future__ import annotations

import os
import secrets
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO

from gscope.cli.sinks.output_lock import lock_output, record_owner, unlock_output
from gscope.cli.sinks.part_files import Parts
from gscope.cli.sinks.partitioned_files import PartitionedParts
from gscope.cli.sinks.replay_files import FILE_KINDS, TEXT_WRITERS, in_sentences
from gscope.engine.sinks.text import csv_header
from gscope.errors import UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    import pyarrow as pa

    from gscope.cli.sinks.time_partitions import TimePartitions

_LOOKED_AT_BYTES = 1 << 16


class LiveFolder:
    """The results of a live run as files in a folder. A new run appends to existing files.

    Args:
        folder: the folder, created if it is missing.
        kind: one of ``FILE_KINDS``.
        schemas: the columns of each result.
        before: what ``settle`` last returned before the run was killed; {} for a new run.
        monotonic: a clock in seconds, for the age of parts.
        partitions: the partitions of each result; None for none.

    Raises:
        UsageError: the folder is not writable, another run writes there, or an existing file has
            other columns or partitions.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        schemas: Mapping[str, pa.Schema],
        before: Mapping[str, Any],
        monotonic: Callable[[], float] = time.monotonic,
        partitions: Mapping[str, TimePartitions] | None = None,
    ) -> None:
        if kind not in FILE_KINDS:
            message = "tables cannot be written to files; choose csv, ndjson, parquet or arrow"
            raise UsageError(message)
        self._folder = folder
        self._kind = kind
        unit = next((str(each.unit) for each in (partitions or {}).values()), None)
        self._identity = {"folder": str(folder.resolve()), "kind": kind, "partitions": unit}
        is_same = {name: before.get(name) for name in self._identity} == self._identity
        known: Mapping[str, Any] = before["files"] if is_same else {}
        self._token = secrets.token_hex(16)
        self._locks: dict[str, BinaryIO] = {}
        self._files: dict[str, _TextFile | Parts | PartitionedParts] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for query, schema in schemas.items():
                self._locks[query] = lock_output(folder, query, kind)
                killed = record_owner(self._locks[query], self._token)
                if kind in TEXT_WRITERS:
                    is_ours = bool(killed) and killed == before.get("token")
                    end = known.get(query) if is_ours else None
                    self._files[query] = _TextFile(
                        folder, query, kind, schema, end, may_be_torn=bool(killed)
                    )
                elif partitions is not None:
                    self._files[query] = PartitionedParts(
                        folder, query, schema, partitions[query], known.get(query), monotonic
                    )
                else:
                    self._files[query] = Parts(
                        folder, query, kind, schema, known.get(query), monotonic
                    )
        except (OSError, UsageError) as error:
            self.close(is_complete=False)
            if isinstance(error, UsageError):
                raise
            message = f"cannot write to {folder}: {os_reason(error)}"
            raise UsageError(message) from error

    def begin(self, query: str, _schema: pa.Schema) -> None:
        """Write the header line of a new file."""
        self._files[query].begin()

    def write(self, query: str, table: pa.Table) -> None:
        """Write rows."""
        self._files[query].write(table)

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        """Return the length of each file; None while parts are open and none is large or old."""
        files = self._files.values()
        if not is_last and any(f.is_open for f in files) and not any(f.is_due for f in files):
            return None
        settled = {query: file.settle() for query, file in self._files.items()}
        return {**self._identity, "token": self._token, "files": settled}

    def publish(self) -> None:
        """Make finished parts visible."""
        for file in self._files.values():
            file.publish()

    def close(self, *, is_complete: bool) -> None:  # noqa: ARG002  # what was delivered stays in any case
        """Close the files and unlock them."""
        for file in self._files.values():
            file.close()
        for query, lock in self._locks.items():
            unlock_output(self._folder, query, self._kind, lock)


class _TextFile:
    """A file that is appended to, and truncated to its recorded length when its run is resumed.

    A file that was moved away or removed meanwhile, as by log rotation, is left alone, and a new
    one is created.

    Args:
        before: the recorded length in bytes; None if it is unknown, or if another run has appended.
        may_be_torn: whether its last writer was killed, perhaps within a line.
    """

    is_due = False
    is_open = False

    def __init__(
        self,
        folder: Path,
        query: str,
        kind: str,
        schema: pa.Schema,
        before: Mapping[str, int] | None,
        *,
        may_be_torn: bool,
    ) -> None:
        self._path = folder / f"{query}.{kind}"
        self._heading = csv_header(schema.names) if kind == "csv" else b""
        self._write = TEXT_WRITERS[kind]
        self._file = self._path.open("ab")
        status = os.fstat(self._file.fileno())
        is_ours = before is not None and status.st_ino == before["inode"]
        if before is not None and is_ours and status.st_size > before["size"]:
            self._file.truncate(before["size"])
        elif may_be_torn:
            self._file.truncate(_end_of_lines(self._path))
        try:
            self._ensure_columns()
        except UsageError:
            self.close()
            raise

    def begin(self) -> None:
        """Write the header line if the file is empty."""
        with in_sentences(str(self._path)):
            if self._size == 0:
                self._file.write(self._heading)
                self._file.flush()

    def write(self, table: pa.Table) -> None:
        with in_sentences(str(self._path)):
            if not self._is_in_place():
                self._file.close()
                self._file = self._path.open("ab")
                self.begin()
            self._write(table, self._file)
            self._file.flush()

    def settle(self) -> dict[str, Any]:
        status = os.fstat(self._file.fileno())
        return {"size": status.st_size, "inode": status.st_ino}

    def publish(self) -> None:
        """Do nothing: rows are visible as they are written."""

    def close(self) -> None:
        """Close the file; remove it if not even the header line was written."""
        if self._heading and not self._file.closed and self._size == 0:
            self._path.unlink(missing_ok=True)
        with suppress(OSError):
            self._file.close()

    @property
    def _size(self) -> int:
        return os.fstat(self._file.fileno()).st_size

    def _is_in_place(self) -> bool:
        """Return whether the path still refers to the open file."""
        try:
            found = self._path.stat()
        except FileNotFoundError:
            return False
        return os.path.samestat(found, os.fstat(self._file.fileno()))

    def _ensure_columns(self) -> None:
        """Refuse to append rows to those of another answer.

        Raises:
            UsageError: the header line differs.
        """
        with self._path.open("rb") as file:
            found = file.readline(len(self._heading) + 1)
        if self._heading and found and found != self._heading:
            message = (
                f"{self._path} differs in its columns from this result; move it away, or name "
                "another folder with -w"
            )
            raise UsageError(message)


def _end_of_lines(path: Path) -> int:
    """Return the offset at which the last complete line of a file ends."""
    with path.open("rb") as file:
        at = file.seek(0, os.SEEK_END)
        while at > 0:
            begin = max(0, at - _LOOKED_AT_BYTES)
            file.seek(begin)
            if found := file.read(at - begin).rfind(b"\n") + 1:
                return begin + found
            at = begin
    return 0
