"""The table of an answer: its first rows as HTML, and how many there are."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.columns import as_text
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.cli.report.contents import AnsweredRows, ReportColumn

MOST_SHOWN = 1000
"""The most rows of a table."""

_LONGEST = 300
"""The most characters of a cell."""

_LONGEST_LINE = 40
"""The most characters of the texts of a column that are not folded: a little more than an
address."""

_DIGITS = 6


@dataclass(frozen=True, slots=True)
class _Cell:
    """A cell: its text, and its exact value if that is another text."""

    text: str
    exact: str | None = None

    def html(self, layout: str) -> str:
        attribute = "" if self.exact is None else f' data-v="{escape(self.exact)}"'
        return f"<td{layout}{attribute}>{escape(self.text)}</td>"


def caption(rows: AnsweredRows) -> str:
    """Return how many rows there are, which of them the table shows, and in which order."""
    if not rows.total:
        return "No rows."
    total = f"{rows.total:,} {'row' if rows.total == 1 else 'rows'}"
    order = _order_text(rows)
    if rows.total <= MOST_SHOWN:
        return f"{total}{order}."
    left = rows.total - MOST_SHOWN
    sentence = f"The first {MOST_SHOWN:,} of {total}{order}; {left:,} are not in this file."
    if rows.kept < rows.total:
        sentence += f" Only the first {rows.kept:,} rows as they were delivered are considered."
    return sentence


def table_html(rows: AnsweredRows, table_id: str) -> Iterator[str]:
    """Yield the lines of the table of an answer; none without rows."""
    if not rows.total:
        return
    answer = rows.answer
    order = _order(rows)
    columns = [_cells(rows, column, order) for column in answer.columns]
    kinds = [kind_of(column) for column in answer.columns]
    layouts = [_layout(kind, cells) for kind, cells in zip(kinds, columns, strict=True)]
    label = escape(f"rows of {answer.query}")
    yield f'<div class="scroll" tabindex="0" role="region" aria-label="{label}">'
    yield f'<table id="{table_id}" class="rows">'
    yield f"<caption>{escape(caption(rows))}</caption>"
    heads = "".join(
        f'<th scope="col" data-kind="{kind}"{layout}>{escape(column.name)}</th>'
        for column, kind, layout in zip(answer.columns, kinds, layouts, strict=True)
    )
    yield f"<thead><tr>{heads}</tr></thead>"
    yield "<tbody>"
    for cells in zip(*columns, strict=True):
        shown = "".join(cell.html(layout) for cell, layout in zip(cells, layouts, strict=True))
        yield f"<tr>{shown}</tr>"
    yield "</tbody></table></div>"


def kind_of(column: ReportColumn) -> str:
    """Return how values of a column compare: as ``number``, ``time``, ``address`` or ``text``."""
    if column.is_number:
        return "number"
    if column.times is not None:
        return "number" if column.times.is_number else "time"
    return "address" if column.type is GsqlType.IP else "text"


def _layout(kind: str, cells: Sequence[_Cell]) -> str:
    """Return the class of a column: numbers, texts that are folded, or texts of one line."""
    if kind == "number":
        return ' class="n"'
    return ' class="f"' if any(len(cell.text) > _LONGEST_LINE for cell in cells) else ""


def _order_text(rows: AnsweredRows) -> str:
    measure = _sorted_by(rows)
    if measure is None:
        return ", as delivered"
    return f", in descending order of {measure}"


def _sorted_by(rows: AnsweredRows) -> str | None:
    """Return the measure that sorts rows: of groups of the whole input without ORDER BY."""
    answer = rows.answer
    is_delivered = answer.has_order or answer.axis is not None or not answer.is_grouped
    return None if is_delivered or not answer.measures else answer.measures[0]


def _order(rows: AnsweredRows) -> pa.Array | None:
    """Return the places of the rows to show; None for the first as they were delivered."""
    measure = _sorted_by(rows)
    if measure is None:
        return None
    places = pa.array(range(rows.kept), pa.int64())
    table = pa.table({"value": rows.column(measure), "place": places})
    keys = [("value", "descending"), ("place", "ascending")]
    return pc.select_k_unstable(table, min(MOST_SHOWN, rows.kept), keys)


def _cells(rows: AnsweredRows, column: ReportColumn, order: pa.Array | None) -> Sequence[_Cell]:
    values = rows.column(column.name)
    values = values.slice(0, MOST_SHOWN) if order is None else values.take(order)
    texts: list[str] = column.text(values).to_pylist()
    if column.type is GsqlType.FLOAT:
        exact: list[str | None] = as_text(values).to_pylist()
        numbers: list[float | None] = values.to_pylist()
        return [_float(*each) for each in zip(numbers, exact, texts, strict=True)]
    if column.is_number and column.name in rows.answer.measures:
        return [_integer(text) for text in texts]
    return [_text(text) for text in texts]


def _integer(text: str) -> _Cell:
    return _Cell(f"{int(text):,}", text) if text.lstrip("-").isdigit() else _Cell(text)


def _float(number: float | None, exact: str | None, text: str) -> _Cell:
    if number is None or exact is None:
        return _Cell(text)
    return _Cell(f"{number:,.{_DIGITS}g}", exact)


def _text(text: str) -> _Cell:
    if len(text) <= _LONGEST:
        return _Cell(text)
    return _Cell(f"{text[:_LONGEST]}… ({len(text):,} characters)")
