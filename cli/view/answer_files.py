"""The rows that a run in the background appends to the files of its answers.

Files are read as any other program reads them: the run does not know of it. Of files that exist
already, the end is read first, so that earlier epochs are there.
"""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MOST_AT_FIRST = 16 << 20
"""Bytes of the end of a text file that are read at first."""

_MOST_AT_ONCE = 8 << 20
"""Bytes of a text file that become one table."""

_PARTS_AT_FIRST = 5


class AnswerFiles(Protocol):
    """The files of one answer."""

    def rows(self) -> Iterator[pa.Table | None]:
        """Yield the rows that were written since the last call, with readable columns.

        None means that the rows yielded before no longer count: the file was truncated, as at the
        resumption of a run, or replaced.

        Raises:
            OSError: a file cannot be read.
            pyarrow.ArrowInvalid: a file holds something else.
        """


def answer_files(
    folder: Path, kind: str, query: str, schema: pa.Schema, *, is_partitioned: bool = False
) -> AnswerFiles:
    """Return the files of an answer.

    Args:
        folder: the folder that the run writes to.
        kind: their format.
        query: the answer.
        schema: its readable columns.
        is_partitioned: whether they are in folders by time.
    """
    if kind in ("csv", "ndjson"):
        return GrowingText(folder / f"{query}.{kind}", schema, is_csv=kind == "csv")
    if is_partitioned:
        return Parts(folder / query, f"**/part-*.{kind}", schema)
    return Parts(folder, f"{query}-*.{kind}", schema)


class GrowingText:
    """One file of lines, which is appended to, and may be moved away or truncated.

    Args:
        path: the file.
        schema: its readable columns.
        is_csv: whether it is CSV with a header line; otherwise it is NDJSON.
        most: bytes of the end that are read at first.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, *, is_csv: bool, most: int = MOST_AT_FIRST
    ) -> None:
        self._path = path
        self._schema = schema
        self._is_csv = is_csv
        self._most = most
        self._inode: int | None = None
        self._offset = 0

    def rows(self) -> Iterator[pa.Table | None]:
        """Yield the rows of the complete lines that were appended since the last call."""
        try:
            file = self._path.open("rb")
        except FileNotFoundError:
            return
        with file:
            status = os.fstat(file.fileno())
            if status.st_ino != self._inode or status.st_size < self._offset:
                if self._inode is not None:
                    yield None
                self._inode, self._offset = status.st_ino, 0
                if status.st_size > self._most:
                    # Back to the end of a line, so that the next read begins with a whole one.
                    file.seek(status.st_size - self._most)
                    self._offset = file.tell() + len(file.readline())
            file.seek(self._offset)
            while lines := _whole_lines(file, _MOST_AT_ONCE):
                is_headed = self._offset == 0 and self._is_csv
                self._offset += len(lines)
                body = lines[lines.index(b"\n") + 1 :] if is_headed else lines
                if body:
                    yield (_csv_rows if self._is_csv else _ndjson_rows)(body, self._schema)
                file.seek(self._offset)


def _whole_lines(file: io.BufferedReader, most: int) -> bytes:
    """Return lines of about ``most`` bytes, without one that is not complete."""
    data = file.read(most)
    end = data.rfind(b"\n") + 1
    while len(data) == most and end == 0:
        more = file.readline()
        data += more
        end = len(data) if more.endswith(b"\n") else 0
        if not more or end:
            break
    return data[:end]


def _text_type(kind: pa.DataType) -> pa.DataType:
    """Return how a column is read from text: bytes are escaped there, times end in Z."""
    if pa.types.is_timestamp(kind):
        return pa.timestamp("ns", "UTC")
    return pa.string() if pa.types.is_binary(kind) else kind


def _csv_rows(lines: bytes, schema: pa.Schema) -> pa.Table:
    types = {field.name: _text_type(field.type) for field in schema}
    found = pyarrow.csv.read_csv(
        io.BytesIO(lines),
        pyarrow.csv.ReadOptions(column_names=schema.names, use_threads=False),
        # An empty line is a NULL in an answer of one column.
        pyarrow.csv.ParseOptions(newlines_in_values=False, ignore_empty_lines=False),
        pyarrow.csv.ConvertOptions(
            column_types=types,
            null_values=[""],
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
        ),
    )
    return _plain_times(found)


def _ndjson_rows(lines: bytes, schema: pa.Schema) -> pa.Table:
    fields = [
        pa.field(f.name, pa.string() if pa.types.is_timestamp(f.type) else _text_type(f.type))
        for f in schema
    ]
    found = pyarrow.json.read_json(
        io.BytesIO(lines),
        pyarrow.json.ReadOptions(use_threads=False, block_size=len(lines) + 1),
        pyarrow.json.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        ),
    )
    for place, field in enumerate(schema):
        if pa.types.is_timestamp(field.type):
            times = pc.cast(found[field.name], pa.timestamp("ns", "UTC"))
            found = found.set_column(place, field.name, times)
    return _plain_times(found.select(schema.names))


def _plain_times(table: pa.Table) -> pa.Table:
    """Return times in UTC without the zone, as answers have them."""
    for place, field in enumerate(table.schema):
        if pa.types.is_timestamp(field.type):
            times = pc.cast(table.column(place), pa.timestamp("ns"))
            table = table.set_column(place, field.name, times)
    return table


class Parts:
    """Files that appear when they are complete.

    Args:
        folder: the folder.
        pattern: which files of it, with the ending parquet or arrow.
        schema: their readable columns.
    """

    def __init__(self, folder: Path, pattern: str, schema: pa.Schema) -> None:
        self._folder = folder
        self._pattern = pattern
        self._is_parquet = pattern.endswith(".parquet")
        self._schema = schema
        self._seen: set[str] | None = None

    def rows(self) -> Iterator[pa.Table | None]:
        """Yield the rows of the parts that have appeared since the last call."""
        paths = sorted(self._folder.glob(self._pattern))
        if self._seen is None:
            self._seen = {str(path) for path in paths[:-_PARTS_AT_FIRST]}
        for path in paths:
            if str(path) in self._seen:
                continue
            self._seen.add(str(path))
            table = pq.ParquetFile(path).read() if self._is_parquet else _arrow_table(path)
            yield table.select(self._schema.names)


def _arrow_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path)) as file, pa.ipc.open_file(file) as reader:
        return reader.read_all()
