"""The columns of an answer as the view uses them: which is the epoch, which identify a row."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.sinks.table_cells import printable_column
from gscope.cli.sinks.table_times import time_formatter
from gscope.engine.sinks.columns import as_text
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.group_columns import group_columns
from gscope.queries.plan.row_order import visible
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.config.time_style import TimeStyle
    from gscope.cli.sinks.table_times import TimeFormatter
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Program

NULL = "NULL"
_SECOND_NS = 1_000_000_000
_NUMBERS = (GsqlType.INT, GsqlType.FLOAT)


class Role(Enum):
    """What a column is in the rows of an epoch."""

    EPOCH = "the time that all rows of an epoch have"
    KEY = "a part of what identifies a row from epoch to epoch"
    MEASURE = "a number that is compared and summed"
    OTHER = "neither"


@dataclass(frozen=True, slots=True)
class ViewColumn:
    """One column of an answer.

    Attributes:
        name: its name.
        type: the GSQL type of its values.
        role: what it is in an epoch.
        times: what formats it as times; None if it holds none.
    """

    name: str
    type: GsqlType
    role: Role
    times: TimeFormatter | None = None

    @property
    def is_number(self) -> bool:
        """Whether values are aligned as numbers."""
        return self.type in _NUMBERS and self.times is None

    def text(self, values: pa.Array) -> pa.Array:
        """Return readable values as text that is safe on a terminal; NULL becomes ``NULL``."""
        shown = self.times(values) if self.times is not None else as_text(values)
        return pc.fill_null(printable_column(shown, None), NULL)


@dataclass(frozen=True, slots=True)
class EpochClock:
    """How the column of the epoch separates epochs.

    Attributes:
        column: its name.
        width: values whose quotient by this is the same are one epoch.
        is_exact: whether all rows of an epoch have the same value.
    """

    column: str
    width: int
    is_exact: bool


@dataclass(frozen=True, slots=True)
class Answer:
    """What the view knows of a result before its first row.

    Attributes:
        query: its name.
        columns: its columns, in order.
        clock: how its rows divide into epochs; None if all are one epoch.
        ordered_by: the first column of ORDER BY, which may be hidden; None without ORDER BY.
    """

    query: str
    columns: tuple[ViewColumn, ...]
    clock: EpochClock | None
    ordered_by: str | None = None

    @property
    def shown(self) -> tuple[ViewColumn, ...]:
        """The columns of a row: all but that of the epoch if it is the same in all rows."""
        return tuple(c for c in self.columns if c.role is not Role.EPOCH) or self.columns

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns that identify a row from epoch to epoch."""
        return tuple(c.name for c in self.columns if c.role is Role.KEY)

    @property
    def measures(self) -> tuple[str, ...]:
        """The columns that are compared and summed."""
        return tuple(c.name for c in self.columns if c.role is Role.MEASURE)

    def __getitem__(self, name: str) -> ViewColumn:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)


def answer_of(program: Program, query: str, style: TimeStyle) -> Answer:
    """Return what is known of the result ``query``.

    Args:
        program: the program with the result.
        query: its name.
        style: how to show times.
    """
    schema = visible(program.schema(query))
    clock = _clock(schema.temporal)
    grouped = group_columns(program, dict(program.results)[query])
    order = program.order(query)
    columns = tuple(
        ViewColumn(c.name, c.type, _role(c, clock, grouped), time_formatter(c, style))
        for c in schema.columns
    )
    ordered_by = order.keys[0].name if order is not None and order.keys else None
    return Answer(query, columns, clock, ordered_by)


def _clock(temporal: Sequence[ColumnSchema]) -> EpochClock | None:
    """Return how the first temporal column divides rows into epochs of a second at least."""
    if not temporal:
        return None
    column = temporal[0]
    if column.clock is None:
        width = _SECOND_NS if column.type is GsqlType.TIMESTAMP else 1
        return EpochClock(column.name, width, is_exact=width == 1)
    grain = column.clock.grain_ns
    is_exact = grain >= _SECOND_NS
    width_ns = grain if is_exact else _SECOND_NS
    unit_ns = 1 if column.type is GsqlType.TIMESTAMP else column.clock.unit_ns
    return EpochClock(column.name, max(1, width_ns // unit_ns), is_exact)


def _role(column: ColumnSchema, clock: EpochClock | None, grouped: frozenset[str] | None) -> Role:
    if clock is not None and clock.is_exact and column.name == clock.column:
        return Role.EPOCH
    if grouped is not None and column.name in grouped:
        return Role.KEY
    if column.type in _NUMBERS and column.clock is None:
        return Role.MEASURE
    return Role.OTHER
