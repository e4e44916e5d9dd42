"""Why a join is refused: nothing bounds what it would have to remember, or nothing could match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TemporalError
from gscope.queries.analysis.names.watchlists import WatchlistSource
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.show_expressions import show_of_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.joins.conditions import Conditions, Equality
    from gscope.queries.analysis.joins.sides import Side
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.gsql import nodes


def unbounded(
    conditions: Conditions, before: Sequence[Side], side: Side, position: nodes.Node
) -> TemporalError:
    """No condition relates the times; the remedy names one if the inputs have the columns for it."""
    before = [each for each in before if not isinstance(each.source, WatchlistSource)]
    if conditions.half_bounded:
        return _half_bounded(conditions, before, side, position)
    labels = " and ".join(each.label for each in before)
    message = (
        f"no equality relates the time of {side.label} to that of {labels}, "
        "so the join would have to remember every tuple"
    )
    for each in (*before, side):
        if not _increasing(each):
            remedy = (
                f"{each.label} has no increasing column: let the query it comes from select one"
            )
            return TemporalError(message, position=position.position, remedy=remedy)
    pairs = [
        (left, each, right)
        for each in before
        for left in _increasing(each)
        for right in _increasing(side)
        if left.type is right.type
    ]
    if not pairs:
        remedy = "bring both to one type, such as time, which counts whole seconds"
        return TemporalError(message, position=position.position, remedy=remedy)
    left, each, right = max(pairs, key=lambda pair: pair[0].name == pair[2].name)
    earlier, later = f"{each.label}.{left.name}", f"{side.label}.{right.name}"
    remedy = (
        f"add {earlier} = {later}, or {later} BETWEEN {earlier} AND {earlier} + {_some(left.type)}"
    )
    return TemporalError(message, position=position.position, remedy=remedy)


def empty_interval(
    epochs: Equality, before: Sequence[Side], side: Side, position: nodes.Node
) -> TemporalError:
    """The ends of an interval are the wrong way round."""
    left, right = (_shown(each, before, side) for each in epochs)
    message = f"no {right} can be within both ends of its interval around {left}: it is empty"
    remedy = "swap the bounds: BETWEEN the earlier AND the later"
    return TemporalError(message, position=position.position, remedy=remedy)


def _half_bounded(
    conditions: Conditions, before: Sequence[Side], side: Side, position: nodes.Node
) -> TemporalError:
    """An interval has one end."""
    (left, right), ends = conditions.half_bounded[0]
    earlier, later = (_shown(each, before, side) for each in (left, right))
    extent = _some(left.type)
    if ends.least is None:
        missing, remedy = "not how far behind", f"add {later} >= {earlier} - {extent}"
    else:
        missing, remedy = "not how far ahead", f"add {later} <= {earlier} + {extent}"
    if ends.least == 0:
        remedy += f", or write {later} BETWEEN {earlier} AND {earlier} + {extent}"
    message = (
        f"the interval of {later} around {earlier} has one end, {missing} it may be, "
        "so the join would have to remember every tuple"
    )
    return TemporalError(message, position=position.position, remedy=remedy)


def _some(kind: GsqlType) -> str:
    """A length for a remedy, along a temporal column of this type."""
    return "INTERVAL '5 sec'" if kind is GsqlType.TIMESTAMP else "5"


def _shown(expression: Expression, before: Sequence[Side], side: Side) -> str:
    """An expression of either side of the join by what the query calls its inputs."""
    earlier = before[0].label if len(before) == 1 else ""
    text = show_of_sides(expression, (earlier, side.label))
    return text if earlier else text.replace(".", "", 1)


def _increasing(side: Side) -> list[ColumnSchema]:
    schema = side.source.node.schema
    return [c for c in schema.temporal if c.ordering.direction is Direction.INCREASING]
