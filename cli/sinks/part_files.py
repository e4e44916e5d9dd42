"""A result in parts: Parquet and Arrow files cannot be read before they are finished."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.cli.sinks.output_lock import open_own
from gscope.cli.sinks.replay_files import in_sentences

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

PART_ROWS = 1_000_000
PART_S = 60.0
"""A part is finished when it has PART_ROWS rows or is PART_S seconds old."""


class Parts:
    """Files ``<query>-<time>-<number>.<kind>``, numbered from the last one in the folder.

    A part is written under a hidden name, recorded when it is complete, and only then renamed: a
    resumed run publishes recorded parts and writes the others again.

    Args:
        schema: the columns of the rows.
        before: what ``settle`` last returned before the run was killed; None for a new run.
        monotonic: a clock in seconds, for the age of a part.
    """

    def __init__(
        self,
        folder: Path,
        query: str,
        kind: str,
        schema: pa.Schema,
        before: Mapping[str, Any] | None,
        monotonic: Callable[[], float],
    ) -> None:
        self._folder = folder
        self._query = query
        self._kind = kind
        self._schema = schema
        self._monotonic = monotonic
        self._writer: Any = None
        self._file: Any = None
        self._name = ""
        self._rows = 0
        self._began_s = 0.0
        self._finished: str | None = before["finished"] if before is not None else None
        self.publish()
        for leftover in folder.glob(f".{query}-*.{kind}.partial"):
            leftover.unlink()
        numbered = re.compile(rf"{re.escape(query)}-\w+-(\d+)\.{kind}")
        found = (numbered.fullmatch(path.name) for path in folder.glob(f"{query}-*.{kind}"))
        self._number = max((int(match[1]) for match in found if match is not None), default=0)

    @property
    def is_due(self) -> bool:
        """Return whether the open part is large or old."""
        age_s = self._monotonic() - self._began_s
        return self._writer is not None and (self._rows >= PART_ROWS or age_s >= PART_S)

    @property
    def is_open(self) -> bool:
        """Return whether a part is open."""
        return self._writer is not None

    def begin(self) -> None:
        """Do nothing: a part begins with its first row."""

    def write(self, table: pa.Table) -> None:
        """Add rows to the open part."""
        with in_sentences(f"{self._query} to {self._folder}"):
            if self._writer is None:
                self._open()
            self._writer.write_table(table)
        self._rows += table.num_rows

    def settle(self) -> dict[str, Any]:
        """Finish the open part, and return the state: the last finished part."""
        if self._writer is not None:
            with in_sentences(f"{self._query} to {self._folder}"):
                self._writer.close()
                self._file.close()
            self._writer, self._finished = None, self._name
        return {"finished": self._finished}

    def publish(self) -> None:
        """Rename the last finished part to its visible name; harmless when repeated."""
        if self._finished is not None:
            with suppress(FileNotFoundError):
                self._staged(self._finished).rename(self._folder / self._finished)

    def close(self) -> None:
        """Remove an unfinished part: its rows are still held by their origin."""
        if self._writer is not None:
            with suppress(OSError, pa.ArrowException):
                self._writer.close()
                self._file.close()
            self._staged(self._name).unlink(missing_ok=True)
            self._writer = None

    def _open(self) -> None:
        self._number += 1
        moment = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
        self._name = f"{self._query}-{moment}-{self._number:06d}.{self._kind}"
        file = open_own(self._staged(self._name), "xb")
        self._rows, self._began_s = 0, self._monotonic()
        # Arrow does not close a file that it did not open.
        if self._kind == "parquet":
            self._writer = pq.ParquetWriter(file, self._schema, compression="zstd")
        else:
            self._writer = pa.ipc.new_file(file, self._schema)
        self._file = file

    def _staged(self, name: str) -> Path:
        return self._folder / f".{name}.partial"
