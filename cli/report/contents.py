"""What a report is made of.

That is answers with what is known of their columns, their rows, and the facts.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.sinks.table_cells import printable_column
from gscope.engine.sinks.columns import as_text
from gscope.queries.expressions.types import GsqlType
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.sinks.table_times import TimeFormatter

MOST_ROWS = 2_000_000
"""The most rows of an answer that a report reads; later ones are counted."""

NULL = "NULL"
_NUMBERS = (GsqlType.INT, GsqlType.FLOAT, GsqlType.INTERVAL)


@dataclass(frozen=True, slots=True)
class ReportColumn:
    """One column of an answer.

    Attributes:
        name: its name.
        type: the GSQL type of its values.
        times: what formats it as times; None if it holds none.
    """

    name: str
    type: GsqlType
    times: TimeFormatter | None = None

    @property
    def is_number(self) -> bool:
        """Whether values are numbers."""
        return self.type in _NUMBERS and self.times is None

    def text(self, values: pa.Array) -> pa.Array:
        """Return readable values as printable text; NULL becomes ``NULL``."""
        shown = self.times(values) if self.times is not None else as_text(values)
        return pc.fill_null(printable_column(shown, None), NULL)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """The column of an answer that is the horizontal axis of its plots.

    Attributes:
        column: its name.
        unit_ns: the nanoseconds that 1 stands for.
        grain_ns: every value is a multiple of this, and an epoch lasts as long; None if unknown.
    """

    column: str
    unit_ns: int
    grain_ns: int | None


@dataclass(frozen=True, slots=True)
class ReportAnswer:
    """What a report knows of an answer before its first row.

    Attributes:
        query: its name.
        columns: its columns, in order.
        axis: the column with the time of a row; None if the answer is a list.
        keys: the columns that identify a row within an epoch.
        measures: the columns that are plotted.
        additive: those of them whose values may be summed over keys: counts and sums.
        has_all_groups: whether an epoch without a row had no packets, so that its counts are 0.
        is_grouped: whether rows are those of groups; otherwise each is a point of its own.
        has_order: whether the query has ORDER BY.
    """

    query: str
    columns: tuple[ReportColumn, ...]
    axis: TimeAxis | None = None
    keys: tuple[str, ...] = ()
    measures: tuple[str, ...] = ()
    additive: frozenset[str] = frozenset()
    has_all_groups: bool = False
    is_grouped: bool = True
    has_order: bool = False

    def __getitem__(self, name: str) -> ReportColumn:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


@dataclass(slots=True)
class AnsweredRows:
    """The rows of an answer, of which the first ``MOST_ROWS`` are kept.

    Attributes:
        answer: what is known of it.
        total: the number of all rows.
        marks: sentences on epochs that may lack packets.
    """

    answer: ReportAnswer
    total: int = 0
    marks: tuple[str, ...] = ()
    _tables: list[pa.Table] = field(default_factory=list)
    _kept: int = 0

    def add(self, table: pa.Table) -> None:
        """Take readable rows."""
        self.total += table.num_rows
        if room := MOST_ROWS - self._kept:
            part = table.slice(0, room)
            self._kept += part.num_rows
            self._tables.append(part)

    @property
    def kept(self) -> int:
        """The number of rows that are kept."""
        return self._kept

    def column(self, name: str) -> pa.Array:
        """Return the kept values of a column."""
        chunks = [chunk for table in self._tables for chunk in table[name].chunks]
        if not chunks:
            return pa.array([], pa.string())
        return pa.chunked_array(chunks).combine_chunks()


@dataclass(frozen=True, slots=True)
class Facts:
    """What the head of a report says.

    Attributes:
        title: what the report is of.
        entries: names and values.
        losses: sentences on what is missing from answers or is damaged; () if nothing is.
        accounts: a table of packets: the headings, then a row for each interface.
        queries: the texts of the queries, each with its source.
        time_style: how times are shown.
    """

    title: str
    entries: tuple[tuple[str, str], ...]
    losses: tuple[str, ...]
    accounts: tuple[tuple[str, ...], ...]
    queries: tuple[tuple[str, str], ...]
    time_style: TimeStyle


@dataclass(frozen=True, slots=True)
class Report:
    """A report.

    Attributes:
        facts: its head.
        answers: its answers, in order.
    """

    facts: Facts
    answers: tuple[AnsweredRows, ...]
