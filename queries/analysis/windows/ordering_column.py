"""What a window slides along: the clock of packets, or an increasing column of a query's result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.errors import TemporalError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.scalar.clock_units import SECOND_NS, clock_unit
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import Call, Column, Literal, PacketField
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.logical import Scan
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_TIME, WRITTEN
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.gsql import nodes

_PACKET_TIMES = {"time": SECOND_NS, "timestamp": SECOND_NS, "time_ns": 1}
"""The fields with the clock of packets, and the nanoseconds that a number without a unit counts."""


@dataclass(frozen=True, slots=True)
class OrderingColumn:
    """What a window slides along.

    For ``FROM q [RANGE 5]`` over ``SELECT time/60 AS tb …``:

    Attributes:
        name: tb.
        expression: the column as an INT.
        unit_ns: the nanoseconds of a minute: of the unit of ``expression`` if that counts time,
            else None.
        bare_ns: likewise: the nanoseconds that a number without a unit counts.
        reach: its greatest value in these decades, 0 if it is unknown; see ``Ordering``.
        is_clock: whether its values follow from the clock of packets, not from their contents.
    """

    name: str
    expression: Expression
    unit_ns: int | None
    bare_ns: int | None
    reach: int
    is_clock: bool


def ordering_column(source: Source, written: nodes.Window) -> OrderingColumn:
    """Return what a window over ``source`` slides along.

    Raises:
        GsqlError: the column behind ON never orders the input, or there is none or more than one
            column that could.
    """
    if isinstance(source.node, Scan):
        return _of_packets(source, written)
    if written.on is not None:
        return _named(source, written.on)
    schema = source.node.schema
    if WINDOW_TIME in schema:
        return _of_result(source, schema[WINDOW_TIME])
    found = [c for c in schema.columns if _is_usable(c)]
    ends = [c for c in found if _origin(source, c) == WINDOW_END]
    if len(ends) == 1 and all(_origin(source, c) in WRITTEN.values() for c in found):
        return _just_before(_of_result(source, ends[0]))
    if len(found) == 1:
        return _of_result(source, found[0])
    if found:
        names = " and ".join(c.name for c in found)
        message = f"the window could slide along each of {names} of {source.what}"
        remedy = f"name one of them: [… ON {found[0].name}]"
    else:
        message = f"{source.what} has no column that never decreases, so no window slides over it"
        remedy = f"select time in {source.what}"
    raise TemporalError(message, position=written.position, remedy=remedy)


def _origin(source: Source, schema: ColumnSchema) -> str:
    """Return the column of a window that a column passes on, "" if it is another."""
    found = source.origin(Column(schema.name, schema.type, schema.is_nullable))
    return found.name if isinstance(found, Column) and found.name in WRITTEN.values() else ""


def _just_before(column: OrderingColumn) -> OrderingColumn:
    """Return the last time before ``column``, the end of a window: no row is at the end itself."""
    return replace(column, expression=apply("sub_int", column.expression, Literal(1, GsqlType.INT)))


def _of_packets(source: Source, written: nodes.Window) -> OrderingColumn:
    """Return the clock in nanoseconds."""
    on = PacketField("time_ns", GsqlType.INT, is_nullable=False)
    reach = source.ordering(on).reach
    if written.on is None:
        return OrderingColumn("time", on, 1, SECOND_NS, reach, is_clock=True)
    found = source.resolve(written.on)
    name = ".".join(written.on.parts)
    bare_ns = _PACKET_TIMES.get(found.name) if isinstance(found, PacketField) else None
    if bare_ns is None:
        message = f"a window over packets slides along their time, not along {name}"
        remedy = (
            f"leave ON {name} out, or declare the order in a query, such as "
            f"SELECT increasing({name}) AS n, …, and write the window over its result"
        )
        raise TemporalError(message, position=written.on.position, remedy=remedy)
    return OrderingColumn(name, on, 1, bare_ns, reach, is_clock=True)


def _named(source: Source, name: nodes.Name) -> OrderingColumn:
    """Return the column behind ON."""
    found = source.resolve(name)
    schema = source.node.schema
    column = schema[found.name] if isinstance(found, Column) else None
    if column is not None and _is_usable(column):
        return _of_result(source, column)
    text = ".".join(name.parts)
    message = f"no window slides along {text}, {_reason(column)}"
    others = [c.name for c in schema.columns if _is_usable(c) and c.name in source.fields]
    remedy = f"write ON {' or '.join(others)}" if others else f"select time in {source.what}"
    raise TemporalError(message, position=name.position, remedy=remedy)


def _reason(column: ColumnSchema | None) -> str:
    """Return why no window slides along a column."""
    if column is not None and column.ordering.band:
        return f"which may decrease by up to {column.ordering.band}"
    return "which may decrease"


def _is_usable(column: ColumnSchema) -> bool:
    """Return whether a window can slide along a column: it never decreases.

    Such a column is an INT or TIMESTAMP and never NULL, as all that are temporal.
    """
    return column.ordering.direction is Direction.INCREASING and not column.ordering.band


def _of_result(source: Source, schema: ColumnSchema) -> OrderingColumn:
    """Return a column of a query's result."""
    column = Column(schema.name, schema.type, schema.is_nullable)
    reach = schema.ordering.reach
    origin = source.origin(column)
    unit = clock_unit(origin, lambda _: None)
    is_clock = unit is not None and not _is_declared(origin)
    if column.type is GsqlType.TIMESTAMP:
        on = apply("ts_to_int", column)
        return OrderingColumn(schema.name, on, 1, SECOND_NS, reach, is_clock)
    unit_ns = None if unit is None else unit.unit_ns
    return OrderingColumn(schema.name, column, unit_ns, unit_ns, reach, is_clock)


def _is_declared(expression: Expression) -> bool:
    """Return whether a query declares the ordering of a part of ``expression``."""
    if not isinstance(expression, Call):
        return False
    is_own = declared_ordering(expression) is not None
    return is_own or any(map(_is_declared, expression.arguments))
