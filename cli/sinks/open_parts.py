"""The Parquet files of partitions that are being written, out of sight of readers."""

from __future__ import annotations

import secrets
import shutil
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.cli.sinks.output_lock import open_own
from gscope.engine.sinks.even_groups import EvenGroups

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.cli.sinks.time_partitions import TimePartitions

MOST_OPEN = 16
"""Files that are open at once: each holds rows of a row group in memory."""


class OpenParts:
    """Files ``<partition>/part-<time>-<number>-<token>.parquet``, each of which is written once.

    Until ``publish`` they are in a hidden folder, under names that no reader takes for Parquet.

    Args:
        staging: the hidden folder; it appears with the first row.
        schema: the columns of the rows.
        partitions: the partition of each row.

    Attributes:
        rows: the rows written since the last ``finish``.
    """

    def __init__(self, staging: Path, schema: pa.Schema, partitions: TimePartitions) -> None:
        self._staging = staging
        self._schema = schema
        self._partitions = partitions
        # Names are unique without a look at the parts of all partitions, and among runs.
        self._token = secrets.token_hex(4)
        self._number = 0
        self._open: dict[str, tuple[str, EvenGroups, Any]] = {}
        self._complete: list[str] = []
        self.rows = 0

    def write(self, table: pa.Table) -> None:
        """Add rows to the files of their partitions.

        Raises:
            OSError: they cannot be written.
        """
        for partition, rows in self._partitions.split(table):
            self._add(partition, rows)
        self.rows += table.num_rows

    def finish(self) -> list[str]:
        """Complete all files; return the paths of those that no earlier call has returned."""
        for partition in list(self._open):
            self._close(partition)
        complete, self._complete = self._complete, []
        self.rows = 0
        return complete

    def write_nothing(self) -> None:
        """Write a file without rows: readers find the columns of an empty answer."""
        self._add(self._partitions.without_time, self._schema.empty_table())

    def abandon(self) -> None:
        """Remove the files that no ``finish`` has returned."""
        for _, writer, file in self._open.values():
            with suppress(OSError, pa.ArrowException):
                writer.close()
            with suppress(OSError):
                file.close()
        names = [name for name, _, _ in self._open.values()]
        for name in (*names, *self._complete):
            staged(self._staging, name).unlink(missing_ok=True)
        self._open, self._complete = {}, []

    def _add(self, partition: str, rows: pa.Table) -> None:
        found = self._open.pop(partition, None)
        if found is None:
            if len(self._open) >= MOST_OPEN:
                self._close(next(iter(self._open)))
            found = self._begin(partition)
        # The one that was written to last is the last to be closed for another.
        self._open[partition] = found
        found[1].write(rows)

    def _begin(self, partition: str) -> tuple[str, EvenGroups, Any]:
        self._number += 1
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        name = f"{partition}/part-{moment}-{self._number:06d}-{self._token}.parquet"
        path = staged(self._staging, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        # Arrow does not close a file that it did not open.
        file = open_own(path, "xb")
        return name, EvenGroups(pq.ParquetWriter(file, self._schema, compression="zstd")), file

    def _close(self, partition: str) -> None:
        name, writer, file = self._open.pop(partition)
        try:
            writer.close()
        finally:
            file.close()
        self._complete.append(name)


def staged(staging: Path, name: str) -> Path:
    """Return where a file is until it is published."""
    return staging / f"{name}.partial"


def publish(staging: Path, name: str, folder: Path) -> None:
    """Give a complete file its place in ``folder``; harmless when repeated.

    Raises:
        OSError: it cannot be moved.
    """
    source = staged(staging, name)
    if source.exists():
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)


def remove_staging(staging: Path) -> None:
    """Remove a hidden folder, which a killed run may have left.

    Raises:
        OSError: it cannot be removed.
    """
    with suppress(FileNotFoundError):
        shutil.rmtree(staging)
