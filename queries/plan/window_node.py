"""The HFTA node of a window, and the slices from which it is assembled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.numbered import NumberedWindows
from gscope.queries.plan.windows.slicing import EVERY_TIME
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import Aggregate, AggregationNode, Input, Partial
    from gscope.queries.plan.row_order import Order
    from gscope.queries.plan.windows.slicing import Slicing
    from gscope.queries.plan.windows.window import Window


@dataclass(frozen=True, slots=True)
class Slices:
    """The slices of a window, one row a slice and group, from which it is assembled.

    Attributes:
        slicing: where slices begin, in the unit of ``WindowNode.window``.
        number: the number of the slice, over input columns.
        keys: the low-level group-by terms over input columns: those of the window, and arguments of
            aggregates that joined them.
        partials: the partial aggregates. Their arguments are over input columns: of plain rows, any
            expression; of an LFTA that has folded them already, the ``Column`` of the same name,
            whose values are merged.
        is_merged: whether the input holds partial tuples.
    """

    slicing: Slicing
    number: Expression
    keys: tuple[NamedExpression, ...]
    partials: tuple[Partial, ...]
    is_merged: bool


@dataclass(frozen=True, slots=True)
class WindowNode:
    """GROUP BY over the windows of one input: a row for each window and group.

    Windows are assembled from slices. A slice comes in once and leaves once, however many windows
    hold it. Where aggregates have no partials, rows are kept instead, and each is read again for
    every window that holds it (``slices`` is None).

    The window's keys and aggregates are those of an aggregation over ``window_rows``, whose epoch
    is ``WINDOW_END``: the columns ``WINDOW_START`` and ``WINDOW_END``, then, with ``slices``, its
    keys and partials; without, the columns of the input.

    Attributes:
        predicate: the condition over input columns, before grouping; None for all rows.
        window: the windows, in the unit of ``on``.
        on: the ordering column over input columns; None from an LFTA that has replaced it by the
            slice's number.
        unit_ns: the nanoseconds of a unit of ``window`` if the columns of the window are TIMESTAMP;
            None if they are INT.
        slices: see ``Slices``; None to keep rows.
        keys: the group-by terms over ``window_rows``, without the window.
        aggregates: as of an ``AggregationNode`` over ``window_rows``.
        having: the condition over ``WINDOW_START``, ``WINDOW_END``, keys and aggregates.
        columns: the output, over the same columns.
        top: the order whose first rows of each window are kept; None to keep all.
    """

    query: str
    input: Input
    predicate: Expression | None
    window: Window
    on: Expression | None
    unit_ns: int | None
    slices: Slices | None
    keys: tuple[NamedExpression, ...]
    aggregates: tuple[Aggregate, ...]
    having: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema
    top: Order | None = None

    @property
    def epoch_expression(self) -> Expression:
        """The number of a row's slice, over input columns.

        Where rows are kept, each time is a slice of its own.
        """
        if self.slices is not None:
            return self.slices.number
        assert self.on is not None
        return self.on

    def edge(self, name: str, window: int) -> int:
        """Return an edge of a window in the unit of its column, at most the ends of 64 bits.

        Packets are that far from 1970 only in the year 2262; see ``windows/clamp.py`` for others.

        Args:
            name: ``WINDOW_START`` or ``WINDOW_END``.
            window: the number of the window.
        """
        edge = self.window.start if name == WINDOW_START else self.window.end
        return min(max(edge(window) * (self.unit_ns or 1), MIN_INT), MAX_INT)

    @property
    def windows(self) -> NumberedWindows:
        """The windows, by the numbers that ``epoch_expression`` gives."""
        slicing = EVERY_TIME if self.slices is None else self.slices.slicing
        return NumberedWindows(self.window, slicing)

    @property
    def aggregation(self) -> AggregationNode:
        """The aggregation over ``window_rows`` that gives the answers."""
        from gscope.queries.plan.program import AggregationNode  # a program has windows as well

        kind = GsqlType.INT if self.unit_ns is None else GsqlType.TIMESTAMP
        edges = (
            NamedExpression(name, Column(name, kind, is_nullable=False))
            for name in (WINDOW_START, WINDOW_END)
        )
        return AggregationNode(
            query=self.query,
            input=self.input,
            predicate=None,
            keys=(*edges, *self.keys),
            epoch=WINDOW_END,
            aggregates=self.aggregates,
            having=self.having,
            columns=self.columns,
            schema=self.schema,
            top=self.top,
        )
