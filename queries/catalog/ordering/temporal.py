"""Which expressions are temporal: an expression that is monotone for every input.

The rule, for a function whose arguments step by at most ``band`` against their direction and with
the gain g_i that the catalog states for argument i:

    direction = the one direction of all sign(g_i) · direction_i;   band = Σ ⌈|g_i| · band_i⌉

Arguments that are constant, or that have a gain of 0, do not count (but 0.0 times a FLOAT can be
0.0, -0.0 or NaN). Arithmetic that takes today's clocks beyond 64 bits is not ordered
(``can_wrap``).
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.catalog.ordering.progression import whole_step
from gscope.queries.catalog.protocols import PROTOCOLS
from gscope.queries.catalog.scalar.magnitudes import can_wrap, usual_magnitude
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import CONSTANT, VARYING, Direction, GsqlType, Ordering

if TYPE_CHECKING:
    from collections.abc import Callable
    from fractions import Fraction

Leaf = PacketField | Column

_FLIPPED = {
    Direction.INCREASING: Direction.DECREASING,
    Direction.DECREASING: Direction.INCREASING,
}
_CLOCK_TYPES = frozenset({GsqlType.INT, GsqlType.TIMESTAMP})


def column_ordering(expression: Expression, leaf: Callable[[Leaf], Ordering]) -> Ordering:
    """Return the ordering of a column computed by ``expression``.

    Bounds of punctuation are integers, so columns of other types are never temporal.
    """
    found = infer(expression, leaf)
    if not found.is_temporal:
        return found
    if expression.type not in _CLOCK_TYPES:
        return VARYING
    reach = usual_magnitude(expression, lambda column: leaf(column).reach)
    return replace(
        found,
        step=whole_step(expression, steps_by(leaf)),
        reach=math.ceil(reach) if math.isfinite(reach) else 0,
    )


def steps_by(leaf: Callable[[Leaf], Ordering]) -> Callable[[Expression], int]:
    """Return what gives the steps of leaves whose orderings are known."""
    return lambda part: leaf(part).step if isinstance(part, PacketField | Column) else 0


def ordering_of(expression: Expression) -> Ordering:
    """Return the ordering of a column computed from the fields of the packets of one interface."""
    return column_ordering(expression, _packet_leaf)


def infer(expression: Expression, leaf: Callable[[Leaf], Ordering]) -> Ordering:
    """Return the ordering of ``expression``; ``leaf`` returns that of fields and columns.

    An expression that can be NULL is not temporal: a NULL could never close a group.
    """
    if isinstance(expression, Literal):
        return CONSTANT
    if not isinstance(expression, Call):
        found = leaf(expression)
        return VARYING if found.is_temporal and expression.is_nullable else found
    declared = declared_ordering(expression)
    if declared is not None:
        return declared
    entry = FUNCTIONS[expression.function]
    orderings = [infer(argument, leaf) for argument in expression.arguments]
    if all(o.direction is Direction.CONSTANT for o in orderings):
        return CONSTANT if entry.is_pure else VARYING
    if expression.is_nullable or not entry.gains:
        return VARYING
    if can_wrap(expression, lambda column: leaf(column).reach):
        return VARYING
    direction: Direction | None = None
    band = 0
    for position, ordering in enumerate(orderings):
        if ordering.direction is Direction.CONSTANT:
            continue
        # The last gain holds for all further arguments of a variadic function.
        gain = entry.gains[min(position, len(entry.gains) - 1)](expression.arguments)
        if gain == 0 and expression.type is not GsqlType.FLOAT:
            continue
        step = _direction(ordering, gain)
        if not gain or step is None or direction not in (None, step):
            return VARYING
        direction = step
        band += math.ceil(abs(gain) * ordering.band)
    return CONSTANT if direction is None else Ordering(direction, band)


def _packet_leaf(leaf: Leaf) -> Ordering:
    field = PROTOCOLS["PKT"].field(leaf.name)
    return VARYING if field is None else field.ordering


def _direction(ordering: Ordering, gain: Fraction | None) -> Direction | None:
    if gain is None or not ordering.is_temporal:
        return None
    return ordering.direction if gain > 0 else _FLIPPED[ordering.direction]
