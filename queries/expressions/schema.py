"""Columns and schemas: the shape of a stream, and free names for columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.types import VARYING, GsqlType, Ordering
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Container


@dataclass(frozen=True, slots=True)
class ClockUnit:
    """How a column counts time: its value times ``unit_ns`` is a time since 1970, UTC.

    The column ``time/60*60 AS tb`` has the unit of a second and the grain of a minute.

    Attributes:
        unit_ns: the nanoseconds that 1 stands for.
        grain_ns: every value is a time that is a multiple of this.
    """

    unit_ns: int
    grain_ns: int


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column of a stream.

    Attributes:
        name: unique in the schema.
        type: the type of its values.
        is_nullable: whether a value may be NULL.
        ordering: how values move from tuple to tuple.
        is_binary: whether a STRING of a result holds bytes of packets rather than text; see
            ``queries/plan/payload_columns.py``.
        clock: how an INT or TIMESTAMP of a result counts time; None if it is not known to be a
            time; see ``queries/plan/clock_columns.py``.
    """

    name: str
    type: GsqlType
    is_nullable: bool = False
    ordering: Ordering = VARYING
    is_binary: bool = False
    clock: ClockUnit | None = None


@dataclass(frozen=True, slots=True)
class Schema:
    """The columns of a stream, in order; names are unique."""

    columns: tuple[ColumnSchema, ...]

    def __post_init__(self) -> None:
        if len(set(self.names)) != len(self.columns):
            message = f"duplicate column in {self.names}"
            raise ValueError(message)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns' names, in order."""
        return tuple(column.name for column in self.columns)

    @property
    def temporal(self) -> tuple[ColumnSchema, ...]:
        """The columns that can close groups, in order."""
        return tuple(column for column in self.columns if column.ordering.is_temporal)

    @property
    def has_text(self) -> bool:
        """Whether some column is a STRING, which the log, tasks and Spark store differently."""
        return any(column.type is GsqlType.STRING for column in self.columns)

    def __getitem__(self, name: str) -> ColumnSchema:
        for column in self.columns:
            if column.name == name:
                return column
        raise KeyError(name)

    def __contains__(self, name: str) -> bool:
        return name in self.names


def free_name(wanted: str, taken: Container[str]) -> str:
    """Return ``wanted``, with a number appended if it is in use."""
    name, number = wanted, 1
    while name in taken:
        number += 1
        name = f"{wanted}_{number}"
    return name
