"""Answers as a table on a terminal or in a pipe; no value is ever shortened.

The first rows determine the layout (``table_layout.py``). It changes, below a new heading, when a
later row does not fit, or when the terminal has another width.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.sinks.table_cells import cell_lengths, printable, printable_column
from gscope.cli.sinks.table_layout import Grid, Layout, TableColumn, first_layout, next_layout
from gscope.cli.sinks.table_lines import grid_rows, heading, vertical_rows
from gscope.engine.sinks.columns import as_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.cli.sinks.table_times import TimeFormatter

_ROWS_AT_ONCE = 8_192
_NULL = "NULL"
_UNCLEAR = f"^$|^{_NULL}$|^'.*'$"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"
_NARROWEST = 8


class TextOutput(Protocol):
    """Where a table goes: a text file or a pager."""

    @property
    def encoding(self) -> str | None:
        """What encodes the text; None if nothing does."""

    def write(self, text: str, /) -> int:
        """Write text."""

    def flush(self) -> None:
        """Show what was written."""


@dataclass(frozen=True, slots=True)
class TableStyle:
    """How tables are shown.

    Attributes:
        screen: returns the columns and lines of the terminal; None for a pipe or a file, which
            takes lines of any length and gets each heading once.
        is_vertical: whether each value has a line of its own, whatever the width.
        is_styled: whether headings are bold.
    """

    screen: Callable[[], os.terminal_size] | None = None
    is_vertical: bool = False
    is_styled: bool = False


def terminal_style(*, is_vertical: bool) -> TableStyle:
    """Return the style for standard output that is a terminal."""
    is_styled = os.environ.get("TERM", "dumb") != "dumb"
    return TableStyle(shutil.get_terminal_size, is_vertical, is_styled)


class TableSink:
    """Tables on one text file, flushed with every delivery.

    Args:
        file: where lines go; characters that its encoding lacks are escaped.
        queries: the results; with several, each change from one to another gets a title.
        style: how they are shown.
        times: for each result, what formats those of its columns that are times.
    """

    def __init__(
        self,
        file: TextOutput,
        queries: Sequence[str],
        style: TableStyle,
        times: Mapping[str, Mapping[str, TimeFormatter]] | None = None,
    ) -> None:
        self._file = file
        self._encoding = file.encoding
        self._style = style
        self._has_titles = len(queries) > 1
        self._times = times or {}
        self._columns: dict[str, list[TableColumn]] = {}
        self._layouts: dict[str, Layout] = {}
        self._rows = dict.fromkeys(queries, 0)
        self._current: str | None = None
        self._lines_on_screen = self._lines_of_heading = 0

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Note that ``query`` may have rows."""
        times = self._times.get(query, {})
        self._columns[query] = [
            TableColumn(
                printable(field.name, self._encoding),
                times[field.name].is_number if field.name in times else _is_number(field.type),
                _is_text(field),
            )
            for field in schema
        ]

    def write(self, query: str, table: pa.Table) -> None:
        """Print rows."""
        if table.num_rows == 0:
            return
        for batch in table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE):
            self._write(query, batch)
            self._rows[query] += batch.num_rows
        self._file.flush()

    def settle(self, *, is_last: bool) -> dict[str, Any]:  # noqa: ARG002  # nothing is held back
        """Return an empty state: rows are out when they are written."""
        return {}

    def publish(self) -> None:
        """Do nothing: rows are visible as they are written."""

    def close(self, *, is_complete: bool) -> None:
        """Print the number of rows, unless the answer is incomplete."""
        if not is_complete:
            return
        for query, columns in self._columns.items():
            if query not in self._layouts and not self._has_titles:
                empty = [pa.array([], pa.string())] * len(columns)
                layout = self._layout(None, columns, empty)
                if layout.grid is not None:
                    self._file.write(self._heading(columns, layout.grid))
        counts = [
            f"{query}: {_count(rows)}" if self._has_titles else _count(rows)
            for query, rows in self._rows.items()
        ]
        self._file.write(f"({', '.join(counts)})\n")
        self._file.flush()

    def _write(self, query: str, batch: pa.RecordBatch) -> None:
        columns = self._columns[query]
        times = self._times.get(query, {})
        texts = [
            pc.fill_null(times[name](column) if name in times else self._shown(column), _NULL)
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        before = self._layouts.get(query)
        layout = self._layouts[query] = self._layout(before, columns, texts)
        is_other, grid = self._current != query, layout.grid
        self._title(query)
        if grid is None:
            rows = vertical_rows(columns, texts, self._width, self._rows[query] + 1)
            self._file.write("\n".join(rows) + "\n")
            return
        has_changed = before is not None and before.grid != grid
        if is_other or (has_changed and self._style.screen is not None):
            self._file.write(self._heading(columns, grid))
        self._write_pages(grid_rows(columns, texts, grid), columns, grid)

    def _write_pages(self, rows: list[str], columns: Sequence[TableColumn], grid: Grid) -> None:
        """Write rows, and the heading again where a screen is full."""
        if self._style.screen is None:
            self._file.write("\n".join(rows) + "\n")
            return
        most = max(2, self._style.screen().lines - 1)
        page: list[str] = []
        for row in rows:
            lines = 1 + row.count("\n")
            is_below_heading = self._lines_on_screen == self._lines_of_heading
            if self._lines_on_screen + lines > most and not is_below_heading:
                page.append(self._heading(columns, grid))
            page.append(f"{row}\n")
            self._lines_on_screen += lines
        self._file.write("".join(page))

    def _title(self, query: str) -> None:
        """Print the name of the result if another one was printed before."""
        if self._has_titles and self._current != query:
            title = printable(query, self._encoding)
            self._file.write(("\n" if self._current is not None else "") + f"{title}\n")
        self._current = query

    def _heading(self, columns: Sequence[TableColumn], grid: Grid) -> str:
        """Return the lines with the names of the columns, from which a screen is counted."""
        lines = heading(columns, grid)
        self._lines_on_screen = self._lines_of_heading = len(lines)
        if self._style.is_styled:
            lines = [f"{_BOLD}{line}{_PLAIN}" for line in lines]
        return "".join(f"{line}\n" for line in lines)

    def _layout(
        self, before: Layout | None, columns: Sequence[TableColumn], texts: Sequence[pa.Array]
    ) -> Layout:
        if self._style.is_vertical:
            return before or Layout((), None, None)
        lengths = [cell_lengths(text) for text in texts]
        if before is None:
            return first_layout(columns, lengths, self._width)
        return next_layout(before, columns, lengths, self._width)

    @property
    def _width(self) -> int | None:
        if self._style.screen is None:
            return None
        return max(_NARROWEST, self._style.screen().columns)

    def _shown(self, column: pa.Array) -> pa.Array:
        """Return a column as text; quote texts that could be mistaken for NULL or for no value."""
        text = printable_column(as_text(column), self._encoding)
        if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
            return text
        is_unclear = pc.match_substring_regex(text, _UNCLEAR)
        if not pc.any(is_unclear).as_py():
            return text
        return pc.if_else(is_unclear, pc.binary_join_element_wise("'", text, "'", ""), text)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _is_text(field: pa.Field) -> bool:
    """Return whether a column holds free text: neither addresses nor times nor numbers."""
    kind = (field.metadata or {}).get(b"gscope.type", b"STRING")
    is_string = pa.types.is_string(field.type) or pa.types.is_binary(field.type)
    return bool(is_string) and kind == b"STRING"


def _count(rows: int) -> str:
    return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"
