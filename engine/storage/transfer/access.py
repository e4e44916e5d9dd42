"""How a task reaches the files of a run: in place where it can, else over Arrow Flight.

A task gets paths of the host on which the job runs. A path that exists on the host of the executor
may be that of another run, so the folder itself is recognized: a file in it holds its identity, a
random text that the task knows.
"""

from __future__ import annotations

import os
import shutil
import socket
import tempfile
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.errors import StreamError
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.engine.storage.transfer.client import FileClient

IDENTITY_FILE = "identity"


@dataclass(frozen=True, slots=True)
class FileAccess:
    """What a task needs to read and write the files of a run; it is sent with the task.

    Attributes:
        root: the folder of all files, as a path on the host of the job.
        marker: the path of a file in a folder of it to which tasks write.
        identity: the content of that file.
        location: where the job serves the files; "" if it does not.
        token: what a request presents.
        certificate: the certificate of the server, in PEM; "" without TLS.
    """

    root: str
    marker: str
    identity: str
    location: str = ""
    token: str = field(default="", repr=False)
    certificate: str = field(default="", repr=False)

    @property
    def is_here(self) -> bool:
        """Whether this process can read and write the folder itself."""
        return _is_here(self.marker, self.identity)


_current: ContextVar[FileAccess | None] = ContextVar("gscope_files", default=None)


@contextmanager
def using(access: FileAccess | None) -> Iterator[None]:
    """Read and write files in the context as ``access`` says; None for the job's own process."""
    before = _current.set(access)
    try:
        yield
    finally:
        _current.reset(before)


def read_parquet(
    path: str,
    columns: Sequence[str] | None = None,
    filters: Sequence[tuple[str, str, int]] | None = None,
) -> pa.Table:
    """Return rows of a Parquet file of the run.

    Args:
        path: the path on the host of the job.
        columns: the columns, in this order; None for all.
        filters: the conditions ``(column, "=", value)`` that rows satisfy; None for all rows.

    Raises:
        StreamError: the file is not here, and the job does not send it.
        OSError: it cannot be read.
    """
    names = None if columns is None else list(columns)
    client = _client()
    if client is None and filters is None:
        return _read_here(path, names)
    if client is None:
        return pq.read_table(
            path, columns=names, filters=list(filters or ()), use_threads=False, partitioning=None
        )
    table = client.read(path, names)
    for name, _, value in filters or ():
        table = table.filter(pc.equal(table[name], value))
    return table


def _read_here(path: str, names: list[str] | None) -> pa.Table:
    """Return columns of a file in place, without the scan of a data set, which costs 3 times it."""
    with pa.OSFile(path) as source, pq.ParquetFile(source) as file:
        table = file.read(columns=names, use_threads=False)
    if names is None or table.schema.names == names:
        return table
    if missing := set(names).difference(table.schema.names):
        message = f"{path} has no column {', '.join(sorted(missing))}"
        raise pa.ArrowInvalid(message)
    return table.select(names)


def parquet_rows(path: str) -> int:
    """Return the number of rows of a Parquet file of the run.

    Raises:
        StreamError: the file is not here, and the job does not answer.
        OSError: it cannot be read.
    """
    client = _client()
    if client is None:
        with pa.OSFile(path) as source:
            return int(pq.read_metadata(source).num_rows)
    return sum(client.row_counts(path))


class OpenParquet:
    """An open Parquet file of the run, read by row groups.

    Args:
        path: the path on the host of the job.

    Attributes:
        row_counts: the number of rows of each row group.

    Raises:
        StreamError: the file is not here, and the job does not answer.
        OSError: it cannot be read.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._client = _client()
        self._file: pq.ParquetFile | None = None
        if self._client is not None:
            self.row_counts = self._client.row_counts(path)
            return
        self._file = pq.ParquetFile(path)
        groups = range(self._file.num_row_groups)
        self.row_counts = [self._file.metadata.row_group(group).num_rows for group in groups]

    def read(self, groups: list[int], columns: list[str]) -> pa.Table:
        """Return columns of some row groups, in the order in which both are given.

        Raises:
            StreamError: the job does not send them.
        """
        if self._client is not None:
            return self._client.read(self._path, columns, groups)
        assert self._file is not None
        return self._file.read_row_groups(groups, columns=columns, use_threads=False)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()


class FilePlace:
    """Where a task writes a file of the run: in place, or to a local file that is then sent.

    Args:
        path: the path on the host of the job.

    Attributes:
        local: where to write.
    """

    def __init__(self, path: Path) -> None:
        self._target = path
        self._client = _client()
        self._folder: str | None = None
        self.local = path
        if self._client is not None:
            self._folder = tempfile.mkdtemp(prefix="gscope-")
            self.local = Path(self._folder) / path.name

    def finish(self) -> None:
        """Send the complete file, if it is not in place.

        Raises:
            StreamError: the job does not take it.
        """
        if self._client is None or self._folder is None:
            return
        try:
            self._client.write(self.local, str(self._target))
        finally:
            shutil.rmtree(self._folder, ignore_errors=True)


def _client() -> FileClient | None:
    """Return the client of the job's files; None where they are in place."""
    access = _current.get()
    if access is None or access.is_here:
        return None
    if not access.location:
        message = (
            f"the executor on {socket.gethostname()} does not see the run's folder {access.root},"
            " as others do: its filesystem must be on all hosts, or on that of the job alone"
        )
        raise StreamError(message)
    return _client_of(access)


@lru_cache(maxsize=4)
def _client_of(access: FileAccess) -> FileClient:
    # Imported here: a worker that is forked after gRPC was loaded could not use it.
    from gscope.engine.storage.transfer.client import FileClient

    return FileClient(access)


@lru_cache(maxsize=4)
def _is_here(marker: str, identity: str) -> bool:
    try:
        found = Path(marker).read_text(encoding="utf-8")
    except (OSError, ValueError):
        return False
    return found == identity and os.access(Path(marker).parent, os.R_OK | os.W_OK | os.X_OK)
