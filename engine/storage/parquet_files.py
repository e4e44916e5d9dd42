"""Parquet files of a step: what their writer reports, checked against the folder.

A task names its files after its attempt and returns a ``WrittenFile`` with its result. Files of
other attempts (retries, speculation) are in the same folder and are deleted. If a reported file is
missing, or differs from the report, an executor wrote it where the driver cannot see it. This
process sees what its own tasks write, so of their files only the sizes are compared.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.engine.storage.transfer.access import FilePlace
from gscope.errors import EngineError
from gscope.queries.os_errors import os_reason
from gscope.queries.streams.messages import Batch, Extent
from gscope.queries.streams.portions import row_groups
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A complete file as its writer reports it.

    Attributes:
        name: the name of the file within the folder that the driver chose.
        rows: the number of rows.
        size_bytes: the size of the file.
        extents: the extents of the temporal columns that hold a value.
    """

    name: str
    rows: int
    size_bytes: int
    extents: tuple[Extent, ...] = ()


@dataclass(frozen=True, slots=True)
class State(Batch):
    """Rows that an operator keeps for itself from step to step.

    The files of ``path``, a folder, are written by each step and read by the next. An operator may
    keep further files, in which rows stay where an earlier step has put them. They are below the
    folder of all states and carries, in folders of any steps; each is deleted after the first
    commit that does not name it. A commit names all of them, so an operator merges small ones.

    Attributes:
        rows: the rows of all files together, as are ``size_bytes`` and ``extents``.
        files: the names of the files of ``path``; a reader opens no others.
        kept: the further files, named relative to the folder of all states and carries.
    """

    files: tuple[str, ...] = ()
    kept: tuple[WrittenFile, ...] = ()

    @property
    def live_rows(self) -> int:
        """The rows of ``files`` alone."""
        return self.rows - sum(file.rows for file in self.kept)

    @property
    def paths(self) -> set[str]:
        """The folder and the files that are still needed."""
        return {self.path, *(file.name for file in self.kept)}


class FileWriter:
    """A Parquet file that is written portion by portion.

    The file is read once, soon: compression and dictionaries would only cost time. Temporal columns
    have statistics, by which a reader orders the files.

    Args:
        folder: an existing folder.
        name: the name of the file, which the first portion creates.
        temporal: the names of the temporal columns.
    """

    def __init__(self, folder: Path, name: str, temporal: Sequence[str] = ()) -> None:
        self._path = folder / name
        self._place: FilePlace | None = None
        self._temporal = tuple(temporal)
        self._writer: pq.ParquetWriter | None = None
        self._rows = 0
        self._extents: dict[str, Extent] = {}

    def write(self, table: pa.Table) -> None:
        """Append rows."""
        if self._writer is None:
            self._place = FilePlace(self._path)
            self._writer = pq.ParquetWriter(
                self._place.local,
                table.schema,
                compression="none",
                use_dictionary=False,
                write_statistics=list(self._temporal) or False,
            )
        for group in row_groups(table):
            self._writer.write_table(group)
        self._rows += table.num_rows
        for extent in extents_of(table, self._temporal):
            known = self._extents.get(extent.column, extent)
            least, greatest = min(known.least, extent.least), max(known.greatest, extent.greatest)
            self._extents[extent.column] = Extent(extent.column, least, greatest)

    def close(self) -> WrittenFile | None:
        """Complete the file and return its report.

        None if nothing was written, not even a table without rows.
        """
        if self._writer is None or self._place is None:
            return None
        self._writer.close()
        size = self._place.local.stat().st_size
        self._place.finish()
        return WrittenFile(self._path.name, self._rows, size, tuple(self._extents.values()))


def extents_of(table: pa.Table, columns: Iterable[str]) -> tuple[Extent, ...]:
    """Return the extents of those of ``columns`` that hold a value."""
    bounds = ((name, pc.min_max(table[name]).as_py()) for name in columns)
    # A column of NaN only has no least value.
    return tuple(
        Extent(name, both["min"], both["max"])
        for name, both in bounds
        if both["min"] is not None and both["min"] <= both["max"]
    )


def accept(folder: Path, files: Iterable[WrittenFile], *, is_own: bool = False) -> None:
    """Check that ``folder`` holds ``files`` as reported, and delete all others.

    Args:
        folder: a folder that holds only files.
        files: the reports.
        is_own: whether this process has written ``files``; then they are not read.

    Raises:
        EngineError: a file is missing or differs from its report; one sentence.
    """
    reports = {file.name: file for file in files}
    for file in reports.values():
        if is_own:
            _compare_size(folder, file)
        else:
            compare(folder, file)
    for name in os.listdir(folder):  # noqa: PTH208  # names are enough
        if name not in reports:
            (folder / name).unlink()


def files_in(folder: Path, pattern: str, temporal: Sequence[str]) -> list[WrittenFile]:
    """Return reports of the files that match ``pattern``, by name, made from their metadata."""
    return [
        _described(path, str(path.relative_to(folder)), temporal)
        for path in sorted(folder.glob(pattern))
    ]


def part_name(number: int, attempt: str) -> str:
    """Return the name of the file of an attempt; names sort by ``number``."""
    return f"part-{number:05d}-{attempt}.parquet"


def compare(folder: Path, file: WrittenFile) -> None:
    """Check that ``folder`` holds a file as reported.

    Raises:
        EngineError: it is missing or differs from its report; one sentence.
    """
    path = folder / file.name
    columns = [extent.column for extent in file.extents]
    try:
        found = _described(path, file.name, columns)
    except (OSError, pa.ArrowException) as error:
        message = (
            f"cannot read the file {path}, which a task reported with {file.rows} rows;"
            " executors must share the folder of the job"
        )
        raise EngineError(message) from error
    known = {extent.column for extent in found.extents}
    extents = tuple(extent for extent in file.extents if extent.column in known)
    if found != replace(file, extents=extents):
        message = (
            f"the file {path} differs from the report of its task: expected {_shown(file)},"
            f" got {_shown(found)}"
        )
        raise EngineError(message)


def _compare_size(folder: Path, file: WrittenFile) -> None:
    """Check that ``folder`` holds a file that this process has written, as far as its size shows.

    Raises:
        EngineError: it is missing or of another size; one sentence.
    """
    path = folder / file.name
    try:
        size_bytes = path.stat().st_size
    except OSError as error:
        message = f"cannot read the file {path}, just written: {os_reason(error)}"
        raise EngineError(message) from error
    if size_bytes != file.size_bytes:
        message = f"the file {path} has {size_bytes} bytes, of which {file.size_bytes} were written"
        raise EngineError(message)


def _described(path: Path, name: str, temporal: Sequence[str]) -> WrittenFile:
    # An open file: for a path, pyarrow looks for its filesystem each time.
    with pa.OSFile(str(path)) as source:
        metadata = pq.read_metadata(source)
    extents = tuple(extent for column in temporal if (extent := _extent(metadata, column)))
    return WrittenFile(name, metadata.num_rows, path.stat().st_size, extents)


def _extent(metadata: Any, column: str) -> Extent | None:
    """Return the extent of a column by the statistics of all row groups; None without values."""
    place = metadata.schema.names.index(column)
    groups = (metadata.row_group(n) for n in range(metadata.num_row_groups))
    found = [group.column(place).statistics for group in groups if group.num_rows]
    bounds = [(each.min, each.max) for each in found if each is not None and each.has_min_max]
    if not bounds:
        return None
    return Extent(column, min(least for least, _ in bounds), max(most for _, most in bounds))


def _shown(file: WrittenFile) -> str:
    extents = ", ".join(f"{e.column} {e.least} to {e.greatest}" for e in file.extents)
    return f"{file.rows} rows in {file.size_bytes} bytes ({extents or 'no extents'})"
