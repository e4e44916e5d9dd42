"""Parquet and Arrow files whose bytes do not depend on the portions in which rows are written."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import pyarrow as pa

from gscope.queries.streams.portions import text_bytes, text_columns

GROUP_ROWS = 131_072
"""The rows of a row group of Parquet, and of a record batch of Arrow."""

GROUP_BYTES = 64 << 20
"""A group ends with the row at which its texts reach this size, as it is built in memory."""


class _Writer(Protocol):
    def write_table(self, table: pa.Table) -> None: ...

    def close(self) -> None: ...


class EvenGroups:
    """A writer of groups whose ends depend on the rows alone, each written in one piece."""

    def __init__(self, writer: _Writer, rows: int = GROUP_ROWS, size: int = GROUP_BYTES) -> None:
        self._writer = writer
        self._rows_at_once = rows
        self._bytes_at_once = size
        self._waiting: list[pa.Table] = []
        self._rows = 0
        self._bytes = 0

    def write(self, table: pa.Table) -> None:
        """Add rows, and write the groups that are complete."""
        reached = np.cumsum(text_bytes(table, text_columns(table)))
        begin = 0
        while begin < table.num_rows:
            before = int(reached[begin - 1]) if begin else 0
            is_full = np.searchsorted(reached, before + self._bytes_at_once - self._bytes)
            end = min(int(is_full) + 1, begin + self._rows_at_once - self._rows, table.num_rows)
            self._waiting.append(table.slice(begin, end - begin))
            self._rows += end - begin
            self._bytes += int(reached[end - 1]) - before
            if self._rows >= self._rows_at_once or self._bytes >= self._bytes_at_once:
                self._write()
            begin = end

    def close(self) -> None:
        """Write the remaining rows, and complete the file."""
        if self._rows:
            self._write()
        self._writer.close()

    def _write(self) -> None:
        rows = pa.concat_tables(self._waiting).combine_chunks()
        self._waiting, self._rows, self._bytes = [], 0, 0
        # A value under a NULL is not part of an answer and must not be in its bytes; ``take``
        # clears it.
        self._writer.write_table(rows.take(pa.array(np.arange(rows.num_rows))))
