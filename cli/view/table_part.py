"""The table of the view: the rows of an epoch with a bar and a sparkline for each."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.cli.sinks.table_cells import cell_len, cell_lengths, printable
from gscope.cli.view.rows.sparkline import RowSeries, bar, last_epochs, row_keys, sparkline
from gscope.cli.view.terminal.styles import Line, Span, Style, fitted
from gscope.engine.sinks.columns import flat
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from gscope.cli.view.rows.columns import Answer, ViewColumn
    from gscope.cli.view.rows.history import Epoch, History
    from gscope.cli.view.rows.ordering import Sorting

_WIDEST = 45
"""The most cells of a column; the page of a row shows whole values."""

_LEAST_BAR, _MOST_BAR = 4, 24
_LEAST_EPOCHS, _MOST_EPOCHS = 6, 60


@dataclass(frozen=True, slots=True)
class Signs:
    """The characters that a terminal can show.

    Attributes:
        blocks: those of sparklines, from the lowest to the highest.
        bar: that of bars.
        rule: a column that separates.
        cut: the end of a value that is cut.
        down: what marks the column that sorts with the greatest first.
        up: the same with the least first.
    """

    blocks: str
    bar: str
    rule: str
    cut: str
    down: str
    up: str


UNICODE = Signs("▁▂▃▄▅▆▇█", "█", "│", "…", "▼", "▲")
ASCII = Signs("_.:-=+*#", "#", "|", "~", "v", "^")


@dataclass(slots=True)
class TablePart:
    """The lines of a table, and where its columns are.

    Attributes:
        heading: the line with the names.
        rows: a line for each row.
        columns: for each column that is shown, the first cell, the cell behind it, and its name.
    """

    heading: Line = field(default_factory=list)
    rows: list[Line] = field(default_factory=list)
    columns: list[tuple[int, int, str]] = field(default_factory=list)


class TableDrawer:
    """Draws tables; columns keep the width that they once needed.

    Args:
        signs: the characters that the terminal can show.
    """

    def __init__(self, signs: Signs) -> None:
        self._signs = signs
        self._widths: dict[str, dict[str, int]] = {}
        self._series = RowSeries()

    def draw(
        self,
        history: History,
        epoch: Epoch,
        rows: pa.Table,
        greatest: float,
        sorting: Sorting | None,
        chosen: int,
        width: int,
    ) -> TablePart:
        """Return the lines of a table.

        Args:
            history: the answer.
            epoch: the epoch of the rows.
            rows: those that are on the screen.
            greatest: the greatest value of the measure among all rows of the epoch.
            sorting: how they are sorted.
            chosen: the place of the chosen row among them.
            width: the cells of a line.
        """
        answer = history.answer
        texts = {c.name: c.text(flat(rows[c.name])) for c in answer.shown}
        widths = self._grown(answer, texts)
        columns = _fitting(answer, widths, sorting, width)
        part = TablePart()
        at = 0
        for column in columns:
            part.columns.append((at, at + widths[column.name], column.name))
            part.heading.append(self._name(column, widths[column.name], sorting))
            part.heading.append(Span("  ", Style.STRONG))
            at += widths[column.name] + 2
        measure = measure_of(answer, sorting)
        bars, lines = self._graphs(history, epoch, rows, greatest, measure, width - at, part)
        values = {name: text.to_pylist() for name, text in texts.items()}
        for place in range(rows.num_rows):
            cells = [
                fitted(
                    values[c.name][place],
                    widths[c.name],
                    is_right=c.is_number,
                    mark=self._signs.cut,
                )
                for c in columns
            ]
            text = "".join(f"{cell}  " for cell in cells)
            if place == chosen:
                part.rows.append([Span(f"{text}{bars[place]}{lines[place]}", Style.CHOSEN)])
            else:
                bar_part = Span(bars[place], Style.ACCENT)
                part.rows.append([Span(text), bar_part, Span(lines[place], Style.GOOD)])
        return part

    def _name(self, column: ViewColumn, width: int, sorting: Sorting | None) -> Span:
        name = printable(column.name)
        if sorting is None or sorting.column != column.name:
            text = fitted(name, width, is_right=column.is_number, mark=self._signs.cut)
            return Span(text, Style.STRONG)
        sign = self._signs.down if sorting.is_descending else self._signs.up
        named = fitted(name, min(width - 1, cell_len(name)), mark=self._signs.cut)
        return Span(fitted(f"{named}{sign}", width, is_right=column.is_number), Style.CHOSEN)

    def _grown(self, answer: Answer, texts: dict[str, pa.Array]) -> dict[str, int]:
        """Return the width of each column, which grows with the rows that are shown."""
        widths = self._widths.setdefault(
            answer.query, {c.name: cell_len(printable(c.name)) + 1 for c in answer.shown}
        )
        for name, text in texts.items():
            if len(text):
                widths[name] = max(widths[name], min(_WIDEST, int(cell_lengths(text).max())))
        return widths

    def _graphs(
        self,
        history: History,
        epoch: Epoch,
        rows: pa.Table,
        greatest: float,
        measure: str | None,
        left: int,
        part: TablePart,
    ) -> tuple[list[str], list[str]]:
        """Return the bar and the sparkline of each row, as far as they fit into ``left`` cells."""
        nothing = [""] * rows.num_rows
        bar_width = min(_MOST_BAR, left // 2 - 1)
        if measure is None or bar_width < _LEAST_BAR:
            return nothing, nothing
        values = rows[measure].to_pylist()
        bars = [fitted(bar(v, greatest, bar_width, self._signs.bar), bar_width + 2) for v in values]
        part.heading.append(
            Span(fitted(printable(measure), bar_width + 2, mark=self._signs.cut), Style.FAINT)
        )
        count = min(_MOST_EPOCHS, left - bar_width - 2)
        epochs = last_epochs(history, epoch, count)
        has_identity = bool(history.answer.keys) or epoch.rows == 1
        if count < _LEAST_EPOCHS or epoch.key is None or not has_identity:
            return bars, nothing
        title = f"last {len(epochs)} epochs" if len(epochs) > 1 else ""
        part.heading.append(Span(fitted(title, count, mark=""), Style.FAINT))
        series = self._series.values(history, epochs, measure, row_keys(rows, history.answer.keys))
        return bars, [sparkline(each, self._signs.blocks) for each in series]


def measure_of(answer: Answer, sorting: Sorting | None) -> str | None:
    """Return the measure that bars and sparklines show; None if there is none."""
    if sorting is not None and sorting.column in answer.measures:
        return sorting.column
    if answer.ordered_by in answer.measures:
        return answer.ordered_by
    return answer.measures[0] if answer.measures else None


def _fitting(
    answer: Answer, widths: dict[str, int], sorting: Sorting | None, width: int
) -> list[ViewColumn]:
    """Return the columns that fit; the one that sorts is among them, and so are all before it."""
    columns = list(answer.shown)
    wanted = next(
        (place for place, c in enumerate(columns) if sorting and c.name == sorting.column), 0
    )
    first = 0
    while first < wanted and _total(columns[first : wanted + 1], widths) > width:
        first += 1
    last = first + 1
    while last < len(columns) and _total(columns[first : last + 1], widths) <= width:
        last += 1
    return columns[first:last]


def _total(columns: Sequence[ViewColumn], widths: dict[str, int]) -> int:
    return sum(widths[c.name] + 2 for c in columns)


def cell_texts(answer: Answer, row: pa.Table) -> list[tuple[str, str]]:
    """Return the name and the whole text of each value of one row."""
    return [(printable(c.name), str(c.text(flat(row[c.name]))[0])) for c in answer.columns]


def total_text(value: float) -> str:
    """Return a sum with separators; of large ones as many digits as it has."""
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"
