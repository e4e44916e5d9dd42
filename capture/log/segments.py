"""Segments: the Parquet files that hold the tuples of sealed batches."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.capture.log.divided_rows import UNDIVIDED_ROWS, RowGroupTable, row_group_tables
from gscope.capture.log.growing_segment import GrowingSegment
from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gscope.capture.log.divided_rows import Ranges
    from gscope.queries.plan.program_partitioning import StreamPartitioning
    from gscope.queries.streams.messages import RowGroup

SEGMENTS_NAME = "segments"

_CONSTANT_COLUMN = "interface"

_BESIDE = ".thinned"
"""Ends the name of a segment that will replace the one of the same name without this."""


class WrittenSegment(NamedTuple):
    """A segment that is complete.

    Attributes:
        path: its path relative to the log.
        size_bytes: size of the file.
        row_groups: its row groups, if its rows are divided by partition.
    """

    path: str
    size_bytes: int
    row_groups: tuple[RowGroup, ...]


class SegmentFolder:
    """The folder of segments of one log.

    Many rows of fixed-width columns are written as they come (``begin``), all others at once
    (``write``). Tuples are read once, soon, from the page cache: so there is no compression, no
    statistics (extents are in the messages), no dictionaries but the one of the constant column,
    and no Arrow schema in the file.

    Args:
        folder: of the log; made, private, when it is not there.

    Raises:
        StreamError: cannot be made.
    """

    def __init__(self, folder: Path) -> None:
        self._log = folder
        self._folder = folder / SEGMENTS_NAME
        with plain_errors("make the folder", self._folder):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def write(
        self,
        label: str,
        batches: Sequence[pa.RecordBatch],
        partitioning: StreamPartitioning | None = None,
    ) -> WrittenSegment:
        """Write a segment.

        Args:
            label: begins the name, for a person who looks; the rest of the name is random.
            batches: its tuples, at least one batch, all of one schema.
            partitioning: what divides them, if there are many; None to keep their order.

        Raises:
            StreamError: not writable or no space; nothing of the segment is left behind.
        """
        path = self._new_path(label)
        tables = list(row_group_tables(batches, partitioning))
        self._write(path, tables[0].rows.schema, (table.rows for table in tables))
        groups: tuple[RowGroup, ...] = ()
        with plain_errors("read", path):
            if any(table.bounds is not None for table in tables):
                metadata = pq.read_metadata(path)
                sizes = [metadata.row_group(n).total_byte_size for n in range(len(tables))]
                groups = tuple(map(RowGroupTable.described, tables, sizes))
            return WrittenSegment(f"{SEGMENTS_NAME}/{path.name}", path.stat().st_size, groups)

    def write_beside(self, name: str, schema: pa.Schema, groups: Iterable[pa.Table]) -> int:
        """Write a segment that is to replace another; return its bytes.

        Args:
            name: path of the other in the log; it stays.
            schema: the schema of its rows.
            groups: its row groups.

        Raises:
            StreamError: not writable or no space; nothing of the segment is left behind.
        """
        path = self._beside(name)
        self._write(path, schema, groups)
        with plain_errors("read", path):
            return path.stat().st_size

    def replace(self, name: str) -> None:
        """Rename what ``write_beside`` has written; readers that have the other open keep it.

        Raises:
            StreamError: it cannot be renamed.
        """
        path = self._beside(name)
        with plain_errors("rename the segment", path):
            path.rename(self._log / name)

    def abandon_beside(self, name: str) -> None:
        """Remove what ``write_beside`` has written, if that is possible."""
        with contextlib.suppress(OSError):
            self._beside(name).unlink()

    def path(self, name: str) -> Path:
        """Return the absolute path of a segment."""
        return self._log / name

    def _beside(self, name: str) -> Path:
        return self._log / f"{name}{_BESIDE}"

    def _write(self, path: Path, schema: pa.Schema, groups: Iterable[pa.Table]) -> None:
        with (
            self._whole_or_none(path),
            pa.OSFile(str(path), "wb") as file,
            pq.ParquetWriter(
                file,
                schema,
                use_dictionary=[_CONSTANT_COLUMN] if _CONSTANT_COLUMN in schema.names else False,
                compression="none",
                write_statistics=False,
                store_schema=False,
            ) as writer,
        ):
            for group in groups:
                writer.write_table(group, row_group_size=max(1, group.num_rows))

    def merge(
        self, names: Sequence[str], rows: int, partitioning: StreamPartitioning | None = None
    ) -> WrittenSegment:
        """Write the rows of segments to a new one.

        Args:
            names: of the others, which stay; of one stream.
            rows: of all of them.
            partitioning: what divides them, if there are many; None to keep their order.

        Raises:
            StreamError: one of them is not readable, or it is not writable; nothing of it is left
                behind.
        """
        last = self._log / names[-1]
        try:
            tables = [_read(self._log / name) for name in names]
            # Streams store integers as narrow as one run of an LFTA has them.
            table = pa.concat_tables(tables, promote_options="permissive")
        except pa.ArrowException as error:
            message = f"cannot merge segments up to {last}: {error}"
            raise StreamError(message) from error
        if table.num_rows != rows:
            message = f"the segments up to {last} have {table.num_rows} rows instead of {rows}"
            raise StreamError(message)
        label, _, _ = last.name.rpartition("-")
        return self.write(label, table.combine_chunks().to_batches(), partitioning)

    def _new_path(self, label: str) -> Path:
        return self._folder / f"{label}-{secrets.token_hex(12)}.parquet"

    @contextmanager
    def _whole_or_none(self, path: Path) -> Iterator[None]:
        try:
            with plain_errors("write the segment", path):
                yield
        except BaseException:
            path.unlink(missing_ok=True)
            raise

    def begin(
        self,
        label: str,
        schema: pa.Schema,
        ranges: Ranges | None,
        undivided_rows: int = UNDIVIDED_ROWS,
    ) -> GrowingSegment:
        """Begin a segment to which rows are added as they arrive; it is invisible until ``finish``.

        Args:
            label: as of ``write``.
            schema: the schema of its rows.
            ranges: the ranges of partitions that divide them; None to keep their order.
            undivided_rows: the number of rows before the first that is divided.

        Raises:
            StreamError: cannot be made.
        """
        path = self._new_path(label)
        with self._whole_or_none(path):
            return GrowingSegment(path, schema, ranges, undivided_rows)

    def add(self, segment: GrowingSegment, batch: pa.RecordBatch) -> None:
        """Add rows to a segment of ``begin``.

        Raises:
            StreamError: not writable or no space; nothing of the segment is left behind.
        """
        with self._whole_or_none(segment.path):
            segment.add(batch)

    def finish(self, segment: GrowingSegment) -> WrittenSegment:
        """Complete a segment of ``begin``.

        Raises:
            StreamError: not writable or no space; nothing of the segment is left behind.
        """
        with self._whole_or_none(segment.path):
            segment.finish()
        path = f"{SEGMENTS_NAME}/{segment.path.name}"
        return WrittenSegment(path, segment.size_bytes, segment.row_groups)

    def abandon(self, segment: GrowingSegment) -> None:
        """Remove a segment of ``begin`` that will not be finished, if that is possible."""
        with contextlib.suppress(OSError):
            segment.path.unlink()

    def free_bytes(self) -> int:
        """Return the free bytes of the disk that we may use; the largest number if unknown."""
        try:
            disk = os.statvfs(self._folder)
        except OSError:
            return sys.maxsize
        return disk.f_bavail * disk.f_frsize

    def size_bytes(self, name: str) -> int | None:
        """Bytes of the segment, None when it is not there."""
        return _size(self._log / name)

    def size_beside(self, name: str) -> int | None:
        """Bytes of what ``write_beside`` has written, None when there is none."""
        return _size(self._beside(name))

    def remove(self, names: Iterable[str]) -> None:
        """Remove segments; one that is already gone is not an error.

        Raises:
            StreamError: cannot be removed.
        """
        for name in names:
            path = self._log / name
            with plain_errors("remove the segment", path):
                path.unlink(missing_ok=True)

    def remove_others(self, names: Iterable[str]) -> int:
        """Remove files that a crash left, all but the segments ``names``; return their number.

        Raises:
            StreamError: cannot be removed.
        """
        wanted = {Path(name).name for name in names}
        with plain_errors("read the folder", self._folder):
            orphans = [path.name for path in self._folder.iterdir() if path.name not in wanted]
        self.remove(f"{SEGMENTS_NAME}/{orphan}" for orphan in orphans)
        return len(orphans)


def _read(path: Path) -> pa.Table:
    with plain_errors("read the segment", path), pq.ParquetFile(path) as file:
        return file.read(use_threads=False)


def _size(path: Path) -> int | None:
    try:
        return path.stat().st_size
    except OSError:
        return None
