"""Sinks of a replay: standard output as text, files that appear when they are complete."""

from __future__ import annotations

from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.cli.sinks.output_lock import lock_output
from gscope.engine.sinks.even_groups import EvenGroups
from gscope.engine.sinks.parallel import ROWS_AT_ONCE
from gscope.engine.sinks.text import csv_header, with_name, write_csv, write_in_turn, write_ndjson
from gscope.errors import GscopeError, UsageError
from gscope.queries.os_errors import os_reason

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.cli.sinks.partitioned_files import PartitionedAnswer
    from gscope.cli.sinks.time_partitions import TimePartitions

TEXT_WRITERS: dict[str, Callable[[pa.Table, BinaryIO], None]] = {
    "csv": write_csv,
    "ndjson": write_ndjson,
}

FILE_KINDS = (*TEXT_WRITERS, "parquet", "arrow")
"""The formats of files."""

_TURN_BYTES = 16 << 20
"""Rows of several results that are converted to text together."""


class StreamSink:
    """CSV or NDJSON on one open file, flushed with every delivery.

    Args:
        queries: the results; with several, NDJSON lines name their result, and CSV is refused.

    Raises:
        UsageError: several results as CSV, or a format that requires files.
    """

    def __init__(self, file: BinaryIO, kind: str, queries: Sequence[str]) -> None:
        if kind not in TEXT_WRITERS:
            message = f"{kind} cannot be written to standard output; name a folder with -w DIR"
            raise UsageError(message)
        if kind == "csv" and len(queries) > 1:
            message = (
                f"csv on standard output holds one result, but there are {len(queries)} "
                f"({', '.join(queries)}); choose one with --deliver NAME or write files with -w DIR"
            )
            raise UsageError(message)
        self._file = file
        self._kind = kind
        self._says_query = len(queries) > 1
        self._turns: list[tuple[str, pa.Table]] = []
        self._turn_rows = 0
        self._turn_bytes = 0
        self._is_first = True

    def begin(self, _query: str, schema: pa.Schema) -> None:
        """Write the header line, also of an empty answer."""
        if self._kind == "csv":
            with in_sentences("the answer"):
                self._file.write(csv_header(schema.names))
                self._file.flush()

    def write(self, query: str, table: pa.Table) -> None:
        """Write rows; with several results, once many have come or at the end of the delivery.

        A person who waits sees the first rows before the others are converted.
        """
        is_first, self._is_first = self._is_first, False
        if self._says_query and not is_first and table.num_rows < ROWS_AT_ONCE:
            self._turns.append((query, table))
            self._turn_rows += table.num_rows
            self._turn_bytes += table.nbytes
            if self._turn_rows >= ROWS_AT_ONCE or self._turn_bytes >= _TURN_BYTES:
                self._write_turns()
            return
        self._write_turns()
        if self._says_query:
            table = with_name(table, query)
        with in_sentences("the answer"):
            TEXT_WRITERS[self._kind](table, self._file)
            self._file.flush()

    def settle(self, *, is_last: bool) -> dict[str, Any]:  # noqa: ARG002  # nothing is held back
        """Write the collected rows; rows written before a kill are written again."""
        self._write_turns()
        return {}

    def publish(self) -> None:
        """Do nothing: rows are visible as they are written."""

    def close(self, *, is_complete: bool) -> None:
        """Do nothing: no rows are held."""

    def _write_turns(self) -> None:
        turns, self._turns = self._turns, []
        self._turn_rows = self._turn_bytes = 0
        if not turns:
            return
        tables: dict[str, list[pa.Table]] = {}
        for query, table in turns:
            tables.setdefault(query, []).append(table)
        whole = {query: pa.concat_tables(each) for query, each in tables.items()}
        with in_sentences("the answer"):
            write_in_turn(whole, ((query, table.num_rows) for query, table in turns), self._file)
            self._file.flush()


class FolderSink:
    """One file for each result in a folder; each appears when the run is complete.

    Until then rows go to ``.<name>.partial``, which the next run into this folder overwrites.

    Args:
        folder: the folder, created if it is missing.
        kind: one of ``FILE_KINDS``.
        partitions: the partitions of each result; None for none.

    Raises:
        UsageError: the folder is not writable, another run writes there, or there are partitions
            already.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        queries: Sequence[str],
        partitions: Mapping[str, TimePartitions] | None = None,
    ) -> None:
        if kind not in FILE_KINDS:
            message = "tables cannot be written to files; choose csv, ndjson, parquet or arrow"
            raise UsageError(message)
        self._writers: dict[str, _FileWriter | PartitionedAnswer] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
            for query in queries:
                if partitions is None:
                    self._writers[query] = _FileWriter(folder, query, kind)
                else:
                    from gscope.cli.sinks.partitioned_files import PartitionedAnswer

                    self._writers[query] = PartitionedAnswer(folder, query, partitions[query])
        except OSError as error:
            message = f"cannot write to {folder}: {os_reason(error)}"
            raise UsageError(message) from error

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Write the header line, also of an empty answer."""
        self._writers[query].begin(schema)

    def write(self, query: str, table: pa.Table) -> None:
        """Write rows."""
        self._writers[query].write(table)

    def settle(self, *, is_last: bool) -> None:
        """Return None: no rows are safe before all are."""

    def publish(self) -> None:
        """Do nothing: no rows are visible before all are."""

    def close(self, *, is_complete: bool) -> None:
        """Rename complete files to their names; remove incomplete ones."""
        for writer in self._writers.values():
            writer.close(is_complete=is_complete)


class _FileWriter:
    """One file that gets its name when it is complete."""

    def __init__(self, folder: Path, query: str, kind: str) -> None:
        self._path = folder / f"{query}.{kind}"
        self._partial = folder / f".{query}.{kind}.partial"
        self._kind = kind
        self._file = lock_output(folder, query, kind)
        self._file.truncate(0)
        self._columns: EvenGroups | None = None

    def begin(self, schema: pa.Schema) -> None:
        with in_sentences(str(self._path)):
            if self._kind == "csv":
                self._file.write(csv_header(schema.names))
            elif self._kind not in TEXT_WRITERS:
                self._columns = self._columnar(schema)

    def write(self, table: pa.Table) -> None:
        with in_sentences(str(self._path)):
            if self._columns is None:
                TEXT_WRITERS[self._kind](table, self._file)
            else:
                self._columns.write(table)

    def close(self, *, is_complete: bool) -> None:
        """Rename a complete file; remove an incomplete one, even if closing it fails."""
        if not is_complete:
            self._partial.unlink(missing_ok=True)
            with suppress(OSError, pa.ArrowException):
                self._finish()
            return
        with in_sentences(str(self._path)):
            self._finish()
            self._partial.rename(self._path)

    def _finish(self) -> None:
        try:
            if self._columns is not None:
                self._columns.close()
        finally:
            self._file.close()

    def _columnar(self, schema: pa.Schema) -> EvenGroups:
        if self._kind == "parquet":
            return EvenGroups(pq.ParquetWriter(self._file, schema, compression="zstd"))
        return EvenGroups(pa.ipc.new_file(self._file, schema))


@contextmanager
def in_sentences(what: str) -> Iterator[None]:
    """Raise an ``OSError`` of the body as ``GscopeError("cannot write <what>: <reason>")``.

    It is not an error if the reader has closed the pipe.

    Raises:
        GscopeError: ``what`` cannot be written.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        message = f"cannot write {what}: {os_reason(error)}"
        raise GscopeError(message) from error
