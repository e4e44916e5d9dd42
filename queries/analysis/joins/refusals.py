"""Refusal of joins whose state nothing bounds, and of those in which nothing can match."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import TemporalError
from gscope.queries.analysis.names.watchlists import WatchlistSource
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.show_expressions import show_of_sides

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.joins.conditions import Conditions, Equality
    from gscope.queries.analysis.joins.inputs import JoinInput
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.gsql import nodes


def check_bounded(
    conditions: Conditions, before: Sequence[JoinInput], later: JoinInput, position: nodes.Node
) -> Equality:
    """Return the temporal expressions that bound the state of a join.

    Raises:
        TemporalError: nothing bounds the state, or the interval of a pair is empty.
    """
    if conditions.epochs is None:
        raise _unbounded(conditions, before, later, position)
    if conditions.interval is not None and conditions.interval.width < 0:
        raise _empty_interval(conditions.epochs, before, later, position)
    return conditions.epochs


def _unbounded(
    conditions: Conditions, before: Sequence[JoinInput], later: JoinInput, position: nodes.Node
) -> TemporalError:
    """Return the error for times that no condition relates.

    The remedy names a condition if the inputs have the columns for it.
    """
    before = [each for each in before if not isinstance(each.source, WatchlistSource)]
    if conditions.half_bounded:
        return _half_bounded(conditions, before, later, position)
    labels = " and ".join(each.label for each in before)
    message = (
        f"no equality relates the time of {later.label} to that of {labels}, "
        "so the join would have to remember every tuple"
    )
    for each in (*before, later):
        if not _increasing(each):
            remedy = (
                f"{each.label} has no increasing column: let the query it comes from select one"
            )
            return TemporalError(message, position=position.position, remedy=remedy)
    pairs = [
        (left, each, right)
        for each in before
        for left in _increasing(each)
        for right in _increasing(later)
        if left.type is right.type
    ]
    if not pairs:
        remedy = "bring both to one type, such as time, which counts whole seconds"
        return TemporalError(message, position=position.position, remedy=remedy)
    left, each, right = max(pairs, key=lambda pair: pair[0].name == pair[2].name)
    one, other = f"{each.label}.{left.name}", f"{later.label}.{right.name}"
    remedy = (
        f"add {one} = {other}, or {other} BETWEEN {one} AND {one} + {_example_length(left.type)}"
    )
    return TemporalError(message, position=position.position, remedy=remedy)


def _empty_interval(
    epochs: Equality, before: Sequence[JoinInput], later: JoinInput, position: nodes.Node
) -> TemporalError:
    """Return the error for an interval whose lower end is above its upper end."""
    left, right = (_show(each, before, later) for each in epochs)
    message = f"the interval of {right} around {left} is empty: its lower bound is above its upper"
    remedy = "swap the bounds: BETWEEN the earlier AND the later"
    return TemporalError(message, position=position.position, remedy=remedy)


def _half_bounded(
    conditions: Conditions, before: Sequence[JoinInput], later: JoinInput, position: nodes.Node
) -> TemporalError:
    """Return the error for an interval that has only one end."""
    (left, right), ends = conditions.half_bounded[0]
    one, other = (_show(each, before, later) for each in (left, right))
    extent = _example_length(left.type)
    if ends.least is None:
        missing, remedy = "lower", f"add {other} >= {one} - {extent}"
    else:
        missing, remedy = "upper", f"add {other} <= {one} + {extent}"
    if ends.least == 0:
        remedy += f", or write {other} BETWEEN {one} AND {one} + {extent}"
    message = (
        f"the interval of {other} around {one} has no {missing} bound, "
        "so the join would have to remember every tuple"
    )
    return TemporalError(message, position=position.position, remedy=remedy)


def _example_length(kind: GsqlType) -> str:
    """Return a length for a remedy, along a temporal column of type ``kind``."""
    return "INTERVAL '5 sec'" if kind is GsqlType.TIMESTAMP else "5"


def _show(expression: Expression, before: Sequence[JoinInput], later: JoinInput) -> str:
    """Return an expression over either side as text, with the query's names of the inputs."""
    earlier = before[0].label if len(before) == 1 else ""
    text = show_of_sides(expression, (earlier, later.label))
    return text if earlier else text.replace(".", "", 1)


def _increasing(joined: JoinInput) -> list[ColumnSchema]:
    schema = joined.source.node.schema
    return [c for c in schema.temporal if c.ordering.direction is Direction.INCREASING]
