"""The rows of a segment as record batches, for readers that cannot open its file."""

from __future__ import annotations

import itertools
from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

ROWS = 1 << 14
"""Rows of a record batch: a few megabytes, as a row group has at most 8 MiB of text."""


class SegmentRows:
    """The rows of an open segment, a record batch at a time; closes the file at the end.

    Args:
        file: the segment.
        path: its path, for messages.
        row_groups: the numbers of the row groups to read, in order; None for all of them.

    Attributes:
        schema: the schema of the record batches.

    Raises:
        StreamError: the segment cannot be read, or has no such row group.
    """

    def __init__(self, file: BinaryIO, path: Path, row_groups: Sequence[int] | None = None) -> None:
        self._file = file
        self._path = path
        self._row_groups = None if row_groups is None else list(row_groups)
        try:
            with _plain_errors(path):
                self._parquet = pq.ParquetFile(file)
                self.schema: pa.Schema = self._parquet.schema_arrow
            self._ensure_row_groups(self._parquet.num_row_groups)
        except BaseException:
            file.close()
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows in their order.

        Raises:
            StreamError: the segment cannot be read.
        """
        try:
            with _plain_errors(self._path):
                yield from self._parquet.iter_batches(ROWS, self._row_groups, use_threads=False)
        finally:
            self.close()

    def _ensure_row_groups(self, count: int) -> None:
        unknown = [each for each in self._row_groups or () if not 0 <= each < count]
        if unknown:
            message = f"invalid row group {unknown[0]}: expected one of {count} from 0"
            raise StreamError(message)
        groups = self._row_groups or ()
        if any(after <= before for before, after in itertools.pairwise(groups)):
            message = "invalid row groups: expected their numbers in rising order, each once"
            raise StreamError(message)

    def close(self) -> None:
        """Close the file; harmless when called twice."""
        self._file.close()


@contextmanager
def _plain_errors(path: Path) -> Iterator[None]:
    try:
        with plain_errors("read the segment", path):
            yield
    except pa.ArrowException as error:
        message = f"cannot read the segment {path}: {error}"
        raise StreamError(message) from error
