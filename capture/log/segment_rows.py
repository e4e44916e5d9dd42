"""The rows of a segment as record batches, for readers that cannot open its file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.capture.log.os_errors import plain_errors
from gscope.errors import StreamError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 1 << 14
"""Rows of a record batch: a few megabytes, as a row group has at most 8 MiB of text."""


class SegmentRows:
    """The rows of an open segment, a record batch at a time; closes the file at the end.

    Args:
        file: the segment.
        path: its path, for messages.

    Attributes:
        schema: the schema of the record batches.

    Raises:
        StreamError: the segment cannot be read.
    """

    def __init__(self, file: BinaryIO, path: Path) -> None:
        self._file = file
        self._path = path
        try:
            with _plain_errors(path):
                self._parquet = pq.ParquetFile(file)
                self.schema: pa.Schema = self._parquet.schema_arrow
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
                yield from self._parquet.iter_batches(ROWS, use_threads=False)
        finally:
            self.close()

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
