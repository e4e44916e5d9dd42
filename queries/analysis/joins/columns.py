"""The columns of a join's result: their values where a side is missing, and which stay temporal."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from gscope.queries.analysis.groups.epochs import TIME_FIELDS
from gscope.queries.analysis.typing.constants import apply
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.temporal import column_ordering, infer
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    walk,
)
from gscope.queries.expressions.schema import ColumnSchema
from gscope.queries.expressions.types import VARYING, Direction, GsqlType, Ordering
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import first_side
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.analysis.joins.conditions import Equality
    from gscope.queries.catalog.ordering.temporal import Leaf
    from gscope.queries.plan.logical import Interval

_INVERSES = {"add_int": "sub_int", "sub_int": "add_int", "ts_add": "ts_sub", "ts_sub": "ts_add"}
_MISSING: dict[JoinKind, frozenset[int]] = {
    JoinKind.INNER: frozenset(),
    JoinKind.LEFT_OUTER: frozenset({1}),
    JoinKind.RIGHT_OUTER: frozenset({0}),
    JoinKind.OUTER: frozenset({0, 1}),
}


@dataclass(frozen=True, slots=True)
class JoinColumns:
    """How the columns of both sides appear in the result of a join.

    The columns of a missing side are NULL, but a column that must equal an expression over the
    present side takes its value.

    For ``FROM a LEFT_OUTER_JOIN b WHERE a.time/60 = b.tb AND a.srcIP = b.srcIP``:

    Attributes:
        kind: LEFT_OUTER.
        epochs: ``(a.time/60, b.tb)``: the temporal expression of each side.
        equalities: the epochs and ``(a.srcIP, b.srcIP)``: all pairs that must be equal, the
            temporal one first.
        ordering: returns the ordering of a column of a side.
        interval: by how much the epochs of a pair may differ, None if they must be equal.
        time_field: returns the packet field that a column of a side holds if that is a time of the
            packet, else None.
        is_sql: whether an outer join is in SQL's spelling (``LEFT JOIN … ON``).
    """

    kind: JoinKind
    epochs: Equality
    equalities: Sequence[Equality]
    ordering: Callable[[Leaf], Ordering]
    interval: Interval | None = None
    time_field: Callable[[Column], str | None] = lambda _: None
    is_sql: bool = False

    def equal_column(self, column: Column) -> Column | None:
        """Return the column of the other side that always has the same value, None if none does."""
        other = self._substitute(column)
        is_mutual = isinstance(other, Column) and self._substitute(other) == column
        return other if is_mutual and isinstance(other, Column) else None

    def result(self, name: str, column: Column) -> tuple[NamedExpression, ColumnSchema]:
        """Return the result's column ``name``, which holds ``column`` of a side."""
        missing = _MISSING[self.kind]
        other = self._substitute(column) if column.input in missing else None
        expression = _weaken(column, missing)
        ordering = self._ordering(column)
        if other is not None and missing == {column.input} and column.type is not GsqlType.FLOAT:
            # The other side is always present. A FLOAT keeps its own value, because 0.0 = -0.0.
            expression, ordering = other, self._ordering(other)
        elif other is not None:
            # One side at most is missing; if neither is, both are equal.
            is_nullable = column.is_nullable or other.is_nullable
            arguments = (expression, _weaken(other, missing))
            expression = Call("coalesce", arguments, column.type, is_nullable)
            ordering = _common(ordering, self._ordering(other))
        if expression.is_nullable and (ordering.is_temporal or column.input in missing):
            ordering = VARYING
        schema = ColumnSchema(name, column.type, expression.is_nullable, ordering)
        return NamedExpression(name, expression), schema

    def filled_epoch(self, name: str) -> tuple[NamedExpression, ColumnSchema] | None:
        """Return a column with the epoch whichever side is missing; None if no row needs one."""
        missing = _MISSING[self.kind]
        is_of_sql_side = self.is_sql and self.kind is not JoinKind.OUTER
        if not missing or is_of_sql_side or self.interval is not None:
            return None
        if self.kind is JoinKind.OUTER:
            left, right = self.epochs
            arguments = (_weaken(left, missing), _weaken(right, missing))
            expression: Expression = Call("coalesce", arguments, left.type, is_nullable=False)
            ordering = _common(self._ordering(left), self._ordering(right))
        else:
            (present,) = {0, 1} - missing
            expression = self.epochs[present]
            ordering = self._ordering(expression)
        schema = ColumnSchema(name, expression.type, is_nullable=False, ordering=ordering)
        return NamedExpression(name, expression), schema

    def _substitute(self, column: Column) -> Expression | None:
        """Return what the first equality with ``column`` makes it, in terms of the other side.

        In SQL's spelling a missing side is NULL. Only the time of a FULL join always has a value,
        because the result has no order without it.
        """
        equalities = self.equalities
        if self.is_sql:
            has_time = self.kind is JoinKind.OUTER and self.interval is None
            equalities = (self.epochs,) if has_time else ()
        for equality in equalities:
            own, other = equality if column.input == 0 else (equality[1], equality[0])
            solved = _solve(own, column, other)
            if solved is not None:
                return solved
        return None

    def _ordering(self, expression: Expression) -> Ordering:
        """Return the ordering of ``expression`` over one side in the result, which leaves by epoch.

        Only an expression that the epoch determines, or that determines the epoch, has a bound. The
        epochs of an interval join are those of its first side; those of the other side lie around
        them, at most the width of the interval away.
        """
        if expression in self.epochs:
            found = column_ordering(expression, self.ordering)
            is_second = expression != self.epochs[first_side(self.kind)]
            return replace(found, band=found.band + self._width) if is_second else found
        return column_ordering(expression, self._column_ordering)

    def _column_ordering(self, leaf: Leaf) -> Ordering:
        found = self.ordering(leaf)
        if not isinstance(leaf, Column) or not found.is_temporal:
            return found
        epoch = self.epochs[leaf.input]
        gain = _gain(epoch, leaf)
        if gain is None:
            gain = self._gain_along_clock(epoch, leaf)
        if gain is None or infer(epoch, self.ordering).direction is not Direction.INCREASING:
            return VARYING
        # All values of one epoch leave together, in any order.
        spread = math.ceil(1 / abs(gain)) if abs(gain) < 1 else 0
        if leaf.input != first_side(self.kind):
            spread += math.ceil(self._width / abs(gain))
        return replace(found, band=found.band + spread)

    def _gain_along_clock(self, epoch: Expression, leaf: Column) -> Fraction | None:
        """Return by how much ``epoch`` grows with ``leaf`` if both are times of one packet.

        None if they are not.
        """
        columns = [part for part in walk(epoch) if isinstance(part, Column)]
        own = self.time_field(leaf)
        other = self.time_field(columns[0]) if len(columns) == 1 else None
        gain = _gain(epoch, columns[0]) if own is not None and other is not None else None
        if gain is None or own is None or other is None:
            return None
        return gain * TIME_FIELDS[other] / TIME_FIELDS[own]

    @property
    def _width(self) -> int:
        return 0 if self.interval is None else self.interval.width


def _solve(equation: Expression, column: Column, value: Expression) -> Expression | None:
    """Solve ``equation = value`` for ``column``; None if that has no solution in closed form."""
    while equation != column:
        match equation:
            case Call(
                ("add_int" | "sub_int" | "ts_add" | "ts_sub") as function,
                (rest, Literal() as offset),
            ):
                value = apply(_INVERSES[function], value, offset)
            case Call("add_int", (Literal() as offset, rest)):
                value = apply("sub_int", value, offset)
            case _:
                return None
        equation = rest
    return value


def _gain(expression: Expression, column: Column) -> Fraction | None:
    """Return by how much ``expression`` grows with ``column``.

    None unless ``column`` occurs once in it and no other column does.
    """
    if [part for part in walk(expression) if isinstance(part, Column)] != [column]:
        return None
    gain = Fraction(1)
    while expression != column:
        assert isinstance(expression, Call)
        position, inner = next(
            (n, a) for n, a in enumerate(expression.arguments) if column in walk(a)
        )
        gains = FUNCTIONS[expression.function].gains
        if not gains:
            return None
        step = gains[min(position, len(gains) - 1)](expression.arguments)
        if not step:
            return None
        gain *= step
        expression = inner
    return gain


def _weaken(expression: Expression, missing: frozenset[int]) -> Expression:
    """Return ``expression`` with the columns of ``missing`` inputs nullable."""
    if isinstance(expression, Column) and expression.input in missing:
        return replace(expression, is_nullable=True)
    if not isinstance(expression, Call):
        return expression
    arguments = tuple(_weaken(a, missing) for a in expression.arguments)
    is_nullable = FUNCTIONS[expression.function].is_nullable(arguments)
    return replace(expression, arguments=arguments, is_nullable=is_nullable)


def _common(one: Ordering, other: Ordering) -> Ordering:
    """Return the ordering of a column that takes its values from two columns."""
    if one.direction is other.direction and one.is_temporal:
        step = one.step if one.step == other.step == 1 else 0
        reach = max(one.reach, other.reach) if one.reach and other.reach else 0
        return Ordering(one.direction, max(one.band, other.band), step, reach)
    return VARYING
