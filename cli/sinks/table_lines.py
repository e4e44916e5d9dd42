"""Rows of a table as lines of text, in columns or vertically."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.sinks.table_cells import (
    HANGING,
    cell_len,
    cell_lengths,
    folded,
    padded,
    padded_column,
)
from gscope.cli.sinks.table_layout import name_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.sinks.table_layout import Grid, TableColumn

_SEPARATOR = "  "
"""Between the name and the value in the vertical layout."""

_RULE = 40
"""Cells of the line before each row of the vertical layout, if the terminal has as many."""

_LEAST_BESIDE = 16
"""Cells that a folded value has at least beside its name; otherwise it begins below the name."""


def heading(columns: Sequence[TableColumn], grid: Grid) -> list[str]:
    """Return the lines with the names of the columns; the last line of each name is in the last."""
    names = [_heading_lines(c.name, width) for c, width in zip(columns, grid.widths, strict=True)]
    height = max(map(len, names))
    lines = []
    for number in range(height):
        cells = [
            padded(name[number - height], width, is_right=column.is_right)
            if height - number <= len(name)
            else " " * width
            for name, column, width in zip(names, columns, grid.widths, strict=True)
        ]
        lines.append((" " * grid.gap).join(cells).rstrip())
    return lines


def _heading_lines(name: str, width: int) -> list[str]:
    """Return a name in lines of at most ``width`` cells."""
    lines = [""]
    for part in name_parts(name):
        if lines[-1] and cell_len(lines[-1] + part) > width:
            lines.append("")
        lines[-1] += part
    return lines


def grid_rows(columns: Sequence[TableColumn], texts: Sequence[pa.Array], grid: Grid) -> list[str]:
    """Return each row as a line, or as several with line ends between them if a text is folded.

    Args:
        columns: the columns.
        texts: their values as text, without NULL.
        grid: their cells; only a column that may fold may have wider values.
    """
    cells, further = [], dict[int, dict[int, list[str]]]()
    for place, (column, text, width) in enumerate(zip(columns, texts, grid.widths, strict=True)):
        begun = text
        if column.may_fold:
            too_wide = cell_lengths(text) > width
            for row in np.flatnonzero(too_wide).tolist():
                lines = folded(text[row].as_py(), width)
                further.setdefault(row, {})[place] = lines
            begun = _replaced(text, too_wide, [further[r][place][0] for r in _rows(too_wide)])
        cells.append(padded_column(begun, width, is_right=column.is_right))
    joined = pc.binary_join_element_wise(*cells, " " * grid.gap)
    rows: list[str] = pc.utf8_rtrim(joined, " ").to_pylist()
    for row, lines_at in further.items():
        rows[row] = "\n".join([rows[row], *_continued(lines_at, grid)])
    return rows


def _continued(lines_at: dict[int, list[str]], grid: Grid) -> list[str]:
    """Return the second and further lines of a row, by the lines of its folded columns."""
    continued = []
    for number in range(1, max(map(len, lines_at.values()))):
        cells = [
            padded(lines_at[place][number], width)
            if number < len(lines_at.get(place, ()))
            else " " * width
            for place, width in enumerate(grid.widths)
        ]
        continued.append((" " * grid.gap).join(cells).rstrip(" "))
    return continued


def vertical_rows(
    columns: Sequence[TableColumn], texts: Sequence[pa.Array], limit: int | None, first: int
) -> list[str]:
    """Return each row as lines: one with its number, and one for each column with name and value.

    A value that is too long beside its name is folded there, or begins on the line below.

    Args:
        columns: the columns.
        texts: their values as text, without NULL.
        limit: the cells of a line; None for no limit.
        first: the number of the first row.
    """
    count = len(texts[0]) if texts else 0
    rule = _RULE if limit is None else min(_RULE, limit)
    titles = [f"-[ row {number:,} ]".ljust(rule, "-") for number in range(first, first + count)]
    names = max((cell_len(column.name) for column in columns), default=0)
    parts = [pa.array(titles, pa.string())]
    for column, text in zip(columns, texts, strict=True):
        begin = padded(column.name, names) + _SEPARATOR
        lines = pc.binary_join_element_wise(begin, text, "")
        if limit is not None:
            too_wide = cell_lengths(text) > limit - cell_len(begin)
            values = text.filter(pa.array(too_wide)).to_pylist()
            long = [_below(column, value, begin, limit) for value in values]
            lines = _replaced(lines, too_wide, long)
        parts.append(pc.utf8_rtrim(lines, " "))
    rows: list[str] = pc.binary_join_element_wise(*parts, "\n").to_pylist()
    return rows


def _below(column: TableColumn, value: str, begin: str, limit: int) -> str:
    """Return a value that is too long for one line, with its name, over several lines."""
    room = limit - cell_len(begin)
    if column.may_fold and room >= _LEAST_BESIDE:
        lines = folded(value, room)
        indent = " " * cell_len(begin)
        return "\n".join([begin + lines[0], *(indent + line for line in lines[1:])])
    indent = " " * HANGING
    lines = folded(value, max(limit - HANGING, 2 * HANGING))
    return "\n".join([*folded(column.name, limit), *(indent + line for line in lines)])


def _replaced(texts: pa.Array, where: np.typing.NDArray[np.bool_], by: list[str]) -> pa.Array:
    if not by:
        return texts
    return pc.replace_with_mask(texts, pa.array(where), pa.array(by, pa.string()))


def _rows(where: np.typing.NDArray[np.bool_]) -> list[int]:
    rows: list[int] = np.flatnonzero(where).tolist()
    return rows
