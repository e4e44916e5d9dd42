"""An input with a window: what the window slides along, and the names of its ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.analysis.typing.schemas import group_schema
from gscope.queries.analysis.windows.extents import check_tiling, read_window
from gscope.queries.analysis.windows.ordering_column import ordering_column
from gscope.queries.catalog.scalar.clock_units import SECOND_NS
from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
)
from gscope.queries.expressions.schema import ColumnSchema
from gscope.queries.expressions.types import Direction, GsqlType, Ordering
from gscope.queries.gsql import nodes
from gscope.queries.gsql.node import walk
from gscope.queries.plan.logical import Filter, GroupBy, Project, WindowGroupBy
from gscope.queries.plan.windows.clamp import clamped
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START, WINDOW_TIME, WRITTEN
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.names.scope import Source
    from gscope.queries.analysis.typing.parameters import Substitutes
    from gscope.queries.plan.logical import AggregateCall, Node
    from gscope.queries.plan.windows.window import Window


@dataclass(frozen=True, slots=True)
class WindowInput:
    """The window over the only input of a SELECT.

    For ``FROM TCP [RANGE '18 sec' SLIDE '15 sec']``:

    Attributes:
        window: ranges of 18 that end every 15.
        on: time: what the window slides along, over the columns of the input.
        unit_ns: the nanoseconds of a second: see ``WindowGroupBy``.
        reach: the greatest value of ``on`` in these decades, 0 if it is unknown; see ``Ordering``.
        qualifiers: TCP: the names that may precede a column.
    """

    window: Window
    on: Expression
    unit_ns: int | None
    reach: int
    qualifiers: tuple[str, ...]

    @property
    def columns(self) -> tuple[ColumnSchema, ColumnSchema]:
        """The schemas of the columns with the start and end of a window."""
        scale = self.unit_ns or 1
        step = 0
        if isinstance(self.window, SlidingWindow):
            step = self.window.slide
        elif len(set(self.window.lengths)) == 1:
            step = self.window.lengths[0]
        reach = (self.reach + self.window.longest) * scale if self.reach else 0
        ordering = Ordering(Direction.INCREASING, step=step * scale, reach=reach)
        return (
            ColumnSchema(WINDOW_START, self._type, is_nullable=False, ordering=ordering),
            ColumnSchema(WINDOW_END, self._type, is_nullable=False, ordering=ordering),
        )

    def column(self, name: nodes.Name) -> Column | None:
        """Return the column that ``window_start`` or ``window_end`` stands for; else None."""
        *qualifiers, text = name.parts
        is_own = not qualifiers or (len(qualifiers) == 1 and qualifiers[0] in self.qualifiers)
        found = WRITTEN.get(text.lower()) if is_own else None
        return None if found is None else Column(found, self._type, is_nullable=False)

    def resolve(self, name: nodes.Name) -> Column:
        """Return the column that a name stands for, which is one of the window."""
        found = self.column(name)
        assert found is not None
        return found

    def computes(self, term: nodes.Expression, source: Source) -> bool:
        """Return whether a group-by term is known from the window alone.

        A column of the input precedes one of the window.

        Raises:
            TypeMismatchError: it reads a column of the window and others.
        """
        names = [part for part in walk(term) if isinstance(part, nodes.Name)]
        own = [
            name
            for name in names
            if self.column(name) is not None and source.find(name.parts[-1]) is None
        ]
        if own and len(own) < len(names):
            text = own[0].parts[-1]
            message = f"{text} is known after grouping, so no group-by term is computed with it"
            remedy = f"leave it out of GROUP BY: each window has its own groups; select {text}"
            raise TypeMismatchError(message, position=own[0].position, remedy=remedy)
        return bool(own)

    def time(self) -> NamedExpression:
        """Return the time of a row for windows over the result: just before its window ends."""
        end: Expression = Column(WINDOW_END, self._type, is_nullable=False)
        if self.unit_ns is None:
            return NamedExpression(WINDOW_TIME, apply("sub_int", end, Literal(1, GsqlType.INT)))
        return NamedExpression(WINDOW_TIME, apply("ts_sub", end, Literal(1, GsqlType.INTERVAL)))

    def group(
        self,
        source: Node,
        keys: tuple[NamedExpression, ...],
        schemas: Sequence[ColumnSchema],
        calls: Sequence[AggregateCall],
    ) -> WindowGroupBy:
        """Return the grouping by the window and ``keys``.

        Args:
            source: its input.
            keys: the terms.
            schemas: the schemas of the keys.
            calls: the aggregates.
        """
        aggregates = [ColumnSchema(c.name, c.type, c.is_nullable) for c in calls]
        start, end = self.columns
        schema = group_schema(
            (start, end, *schemas), frozenset({WINDOW_START, WINDOW_END}), aggregates
        )
        return WindowGroupBy(source, self.window, self.on, self.unit_ns, keys, tuple(calls), schema)

    @property
    def _type(self) -> GsqlType:
        return GsqlType.INT if self.unit_ns is None else GsqlType.TIMESTAMP


def window_below(root: Node) -> WindowGroupBy | None:
    """Return the grouping by window of which a query is the result, None if there is none."""
    while isinstance(root, Project | Filter | GroupBy):
        root = root.input
    return root if isinstance(root, WindowGroupBy) else None


def open_window(written: nodes.Window, source: Source, substitutes: Substitutes) -> WindowInput:
    """Return the window over ``source``.

    Packets are counted by their second if that is fine enough, else by their nanosecond.

    Raises:
        GsqlError: a length is invalid, or nothing orders the input.
    """
    column = ordering_column(source, written)
    window = read_window(written, column, substitutes)
    if column.name == WINDOW_TIME and source.window is not None:
        check_tiling(source.window, window, source.what, written.position)
    on = column.expression
    seconds = _in_seconds(window) if isinstance(on, PacketField) else None
    if seconds is None:
        if not column.is_clock:
            on = clamped(on, window)
        return WindowInput(window, on, column.unit_ns, column.reach, source.qualifiers)
    on = PacketField("time", GsqlType.INT, is_nullable=False)
    return WindowInput(seconds, on, SECOND_NS, source.ordering(on).reach, source.qualifiers)


def _in_seconds(window: Window) -> Window | None:
    """Return a window in nanoseconds as one in seconds; None if these are not whole."""
    match window:
        case SlidingWindow(range_, slide):
            if range_ % SECOND_NS == 0 == slide % SECOND_NS:
                return SlidingWindow(range_ // SECOND_NS, slide // SECOND_NS)
        case RepeatedSlices(lengths):
            if all(length % SECOND_NS == 0 for length in lengths):
                return RepeatedSlices(tuple(length // SECOND_NS for length in lengths))
    return None
