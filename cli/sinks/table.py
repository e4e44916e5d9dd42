"""Answers as a table on a terminal.

Columns are as wide as the rows so far need; wider rows repeat the heading in new widths.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.columns import as_text

if TYPE_CHECKING:
    from collections.abc import Sequence

_SIZED_BY_ROWS = 1_000
_ROWS_AT_ONCE = 8_192
_GAP = "  "
_NARROWEST = 8
_NULL = "NULL"
_UNCLEAR = f"^$|^{_NULL}$|^'.*'$"
_BOLD, _PLAIN = "\x1b[1m", "\x1b[0m"


def terminal_width() -> int:
    """The width of the terminal in columns."""
    return shutil.get_terminal_size().columns


class TableSink:
    """Tables on one text file, flushed with every delivery.

    Args:
        queries: the results; with several, each change from one to another gets a title.
        width: the width of the terminal in columns; None for no limit.
        is_styled: whether headings are bold.
    """

    def __init__(
        self, file: TextIO, queries: Sequence[str], width: int | None, *, is_styled: bool
    ) -> None:
        self._file = file
        self._width = width
        self._is_styled = is_styled
        self._has_titles = len(queries) > 1
        self._schemas: dict[str, pa.Schema] = {}
        self._layouts: dict[str, _Layout] = {}
        self._rows = dict.fromkeys(queries, 0)
        self._current: str | None = None

    def begin(self, query: str, schema: pa.Schema) -> None:
        """Note that ``query`` may have rows."""
        self._schemas[query] = schema

    def write(self, query: str, table: pa.Table) -> None:
        """Print rows."""
        if table.num_rows == 0:
            return
        self._rows[query] += table.num_rows
        for batch in table.combine_chunks().to_batches(max_chunksize=_ROWS_AT_ONCE):
            columns = [pc.fill_null(_shown(column), _NULL) for column in batch.columns]
            before = self._layouts.get(query)
            layout = self._layouts[query] = _layout(batch.schema, columns, self._width, before)
            is_changed = before is None or layout.widths != before.widths
            self._head(query, layout, is_changed=is_changed)
            self._file.write(layout.lines(columns))
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
        for query, schema in self._schemas.items():
            if query not in self._layouts and not self._has_titles:
                empty = [pa.array([], pa.string()) for _ in schema]
                self._head(query, _layout(schema, empty, self._width, None), is_changed=True)
        counts = [
            f"{query}: {_count(rows)}" if self._has_titles else _count(rows)
            for query, rows in self._rows.items()
        ]
        self._file.write(f"({', '.join(counts)})\n")
        self._file.flush()

    def _head(self, query: str, layout: _Layout, *, is_changed: bool) -> None:
        """Print the title if another result was printed before, and the heading in new widths."""
        if self._current == query and not is_changed:
            return
        if self._has_titles and self._current != query:
            self._file.write(("\n" if self._current is not None else "") + f"{query}\n")
        self._current = query
        heading = layout.heading()
        self._file.write(f"{_BOLD}{heading}{_PLAIN}\n" if self._is_styled else f"{heading}\n")


@dataclass(frozen=True, slots=True)
class _Layout:
    """Names, widths and alignment of columns; ``needed`` is the width at which none is cut."""

    names: tuple[str, ...]
    needed: tuple[int, ...]
    widths: tuple[int, ...]
    is_number: tuple[bool, ...]

    def heading(self) -> str:
        cells = [
            _cut(name, width).rjust(width) if number else _cut(name, width).ljust(width)
            for name, width, number in zip(self.names, self.widths, self.is_number, strict=True)
        ]
        return _GAP.join(cells).rstrip()

    def lines(self, columns: Sequence[pa.Array]) -> str:
        cells = [
            pc.utf8_lpad(column, width) if number else _padded(column, width)
            for column, width, number in zip(columns, self.widths, self.is_number, strict=True)
        ]
        lines = pc.utf8_rtrim_whitespace(pc.binary_join_element_wise(*cells, _GAP))
        return "\n".join(lines.to_pylist()) + "\n"


def _shown(column: pa.Array) -> pa.Array:
    """Return a column as text; quote texts that could be mistaken for NULL or for no value."""
    text = as_text(column)
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        return text
    is_unclear = pc.match_substring_regex(text, _UNCLEAR)
    if not pc.any(is_unclear).as_py():
        return text
    return pc.if_else(is_unclear, pc.binary_join_element_wise("'", text, "'", ""), text)


def _layout(
    schema: pa.Schema, columns: Sequence[pa.Array], limit: int | None, before: _Layout | None
) -> _Layout:
    """Return a layout for these rows and all earlier ones."""
    least = before.needed if before is not None else map(_cells, schema.names)
    needed = tuple(
        max(width, _widest(column.slice(0, _SIZED_BY_ROWS)))
        for width, column in zip(least, columns, strict=True)
    )
    if before is not None and needed == before.needed:
        return before
    numbers = tuple(_is_number(field.type) for field in schema)
    widths = list(needed)
    if limit is not None:
        _narrow(widths, [i for i, is_number in enumerate(numbers) if not is_number], limit)
    return _Layout(tuple(schema.names), needed, tuple(widths), numbers)


def _narrow(widths: list[int], texts: list[int], limit: int) -> None:
    """Narrow the widest text columns until all fit; numbers are never cut."""
    excess = sum(widths) + len(_GAP) * (len(widths) - 1) - limit
    while excess > 0 and texts:
        widest = max(texts, key=lambda i: widths[i])
        second = max((widths[i] for i in texts if widths[i] < widths[widest]), default=0)
        take = min(excess, widths[widest] - max(second, _NARROWEST, 1))
        if widths[widest] <= _NARROWEST:
            return
        take = max(1, take)
        widths[widest] -= take
        excess -= take


def _padded(column: pa.Array, width: int) -> pa.Array:
    """Return text padded or cut to ``width`` terminal cells."""
    if pc.all(pc.string_is_ascii(column)).as_py() is not False:
        longest = pc.max(pc.utf8_length(column)).as_py() or 0
        if longest > width:
            cut = pc.binary_join_element_wise(
                pc.utf8_slice_codeunits(column, 0, width - 1), "…", ""
            )
            column = pc.if_else(pc.greater(pc.utf8_length(column), width), cut, column)
        return pc.utf8_rpad(column, width)
    return pa.array([_fitted(value, width) for value in column.to_pylist()], pa.string())


def _fitted(value: str, width: int) -> str:
    value = _cut(value, width)
    return value + " " * (width - _cells(value))


def _cut(value: str, width: int) -> str:
    if _cells(value) <= width:
        return value
    from rich.cells import set_cell_size

    return set_cell_size(value, width - 1).rstrip() + "…"


def _cells(value: str) -> int:
    """Return the number of terminal cells of a text; East Asian characters take two."""
    if value.isascii():
        return len(value)
    from rich.cells import cell_len

    return cell_len(value)


def _widest(column: pa.Array) -> int:
    return max(map(_cells, column.unique().to_pylist()), default=0)


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def _count(rows: int) -> str:
    return f"{rows:,} row" if rows == 1 else f"{rows:,} rows"
