"""Punctuation of LFTA streams: what a bound on packet times promises of every temporal column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.types import Direction
from gscope.queries.plan.expressions import PacketField, walk
from gscope.queries.streams.messages import Punctuation

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.plan.expressions import Column, Expression, Value
    from gscope.queries.plan.program import Lfta

NS_PER_SECOND = 1_000_000_000
NO_BOUND = -(1 << 63)
"""A bound that promises nothing: no packet is earlier."""

_TIME_FIELDS: dict[str, Callable[[int], int]] = {
    "time": lambda time_ns: time_ns // NS_PER_SECOND,
    "timestamp": lambda time_ns: time_ns,
    "time_ns": lambda time_ns: time_ns,
}


def is_function_of_time(expression: Expression) -> bool:
    """Whether the packet's time alone decides the value."""
    fields = [part for part in walk(expression) if isinstance(part, PacketField)]
    return bool(fields) and all(field.name in _TIME_FIELDS for field in fields)


def value_at(expression: Expression, time_ns: int) -> int | None:
    """What ``expression`` gives for a packet of this time."""

    def leaf(field: PacketField | Column) -> Value:
        return _TIME_FIELDS[field.name](time_ns)

    value = evaluate(expression, leaf)
    return value if isinstance(value, int) else None


def punctuations(lfta: Lfta, bound_ns: int) -> tuple[Punctuation, ...]:
    """The promises for ``lfta``'s stream when no packet earlier than ``bound_ns`` will be accepted.

    An increasing column gets a lower bound, a decreasing one an upper bound; columns whose value is not a
    function of time get none.
    """
    if bound_ns == NO_BOUND:
        return ()
    expressions = {named.name: named.expression for named in (*lfta.keys, *lfta.columns)}
    made = []
    for column in lfta.schema.temporal:
        expression = expressions.get(column.name)
        if expression is None or not is_function_of_time(expression):
            continue
        value = value_at(expression, bound_ns)
        if value is not None:
            is_rising = column.ordering.direction is Direction.INCREASING
            band = column.ordering.band
            made.append(Punctuation(column.name, value - band if is_rising else value + band))
    return tuple(made)


def closed_epoch(lfta: Lfta, bound_ns: int) -> int | None:
    """The last epoch that no packet from ``bound_ns`` on can belong to; None if that cannot be told."""
    if bound_ns == NO_BOUND:
        return None
    expression = next(key.expression for key in lfta.keys if key.name == lfta.epoch)
    if not is_function_of_time(expression):
        return None
    value = value_at(expression, bound_ns)
    if value is None or value == NO_BOUND:
        return None
    return value - lfta.schema[lfta.epoch or ""].ordering.band - 1
