"""Punctuation of LFTA streams: what a bound on packet times promises of every temporal column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.lfta.declared_orders import NO_FLOOR, signed
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Column, Literal, PacketField, walk
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.plan.trees import map_expression
from gscope.queries.plan.unbounded_search import first_reached
from gscope.queries.streams.messages import punctuation

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta
    from gscope.queries.streams.messages import Punctuation

NS_PER_SECOND = 1_000_000_000
NO_BOUND = MIN_TIME_NS
"""A bound that promises nothing: no packet is earlier."""

_TIME_FIELDS: dict[str, Callable[[int], int]] = {
    "time": lambda time_ns: time_ns // NS_PER_SECOND,
    "timestamp": lambda time_ns: time_ns,
    "time_ns": lambda time_ns: time_ns,
}


def known_value(
    expression: Expression, bound_ns: int, declared: Mapping[Expression, int]
) -> int | None:
    """The value of an ordered ``expression`` at the bounds of what it is made of.

    ``bound_ns`` is that of packet times, or ``NO_BOUND``; ``declared`` has the bound of each order that is
    declared and known. None if something in it has no bound.
    """

    def bounded(part: Expression) -> Expression:
        if part in declared:
            return Literal(declared[part], part.type)
        if isinstance(part, PacketField) and part.name in _TIME_FIELDS and bound_ns != NO_BOUND:
            return Literal(_TIME_FIELDS[part.name](bound_ns), part.type)
        return part

    known = map_expression(expression, bounded)
    if any(isinstance(part, PacketField | Column) for part in walk(known)):
        return None
    value = evaluate(known, lambda _: None)
    return int(value) if isinstance(value, int) else None


def punctuations(lfta: Lfta, bound_ns: int, floors: Sequence[int] = ()) -> tuple[Punctuation, ...]:
    """The promises for ``lfta``'s stream when no packet earlier than ``bound_ns`` will be accepted.

    ``floors`` are those of the orders that the LFTA's columns are declared to have. A decreasing column's promise is that of its negative, see ``Punctuation``. Columns that depend on
    anything but times and declared orders get none.
    """
    declared: dict[Expression, int] = {
        call: signed(call, floor)
        for call, floor in zip(lfta.declared, floors, strict=True)
        if floor != NO_FLOOR
    }
    expressions = {named.name: named.expression for named in (*lfta.keys, *lfta.columns)}
    if lfta.is_aggregation and len(lfta.schema.temporal) > 1 and bound_ns != NO_BOUND:
        # Groups of the epoch at hand may hold anything that is of this epoch.
        bound_ns = _begin(expressions[lfta.epoch or ""], bound_ns)
    made = []
    for column in lfta.schema.temporal:
        expression = expressions.get(column.name)
        value = None if expression is None else known_value(expression, bound_ns, declared)
        if value is not None:
            made.append(punctuation(column, value))
    return tuple(made)


def _begin(epoch: Expression, time_ns: int) -> int:
    """The earliest time of the epoch that ``time_ns`` is in; ``NO_BOUND`` if there is none."""
    wanted = known_value(epoch, time_ns, {})
    distance = first_reached(lambda back: known_value(epoch, time_ns - back, {}) != wanted, 1)
    return NO_BOUND if distance is None else time_ns - distance + 1


def promise_time(lfta: Lfta, promised: str, bound: int, from_ns: int) -> int | None:
    """The earliest bound on packet times, ``from_ns`` or later, at which ``lfta`` promises ``bound``.

    Args:
        lfta: that promises.
        promised: the name of the promise, see ``Punctuation``.
        bound: of the promise.
        from_ns: a time, or ``NO_BOUND``.

    Returns:
        None if time does not bring it there: another order does, or nothing.
    """
    column = promised.removeprefix("-")
    named = next((n for n in (*lfta.keys, *lfta.columns) if n.name == column), None)
    if named is None or column not in {c.name for c in lfta.schema.temporal}:
        return None
    expression, sign = named.expression, 1 if column == promised else -1
    time_ns = _first_time(expression, sign, bound, from_ns)
    if time_ns is None or not lfta.is_aggregation or len(lfta.schema.temporal) == 1:
        return time_ns
    epoch = next(key.expression for key in lfta.keys if key.name == lfta.epoch)
    if _begin(epoch, time_ns) in (time_ns, NO_BOUND):
        return time_ns
    # Nothing is promised of the epoch at hand before it is over.
    following = known_value(epoch, time_ns, {})
    return None if following is None else _first_time(epoch, 1, following + 1, time_ns)


def _first_time(expression: Expression, sign: int, bound: int, from_ns: int) -> int | None:
    """The first time from ``from_ns`` on at which ``sign * expression`` is at least ``bound``."""
    if isinstance(expression, PacketField) and sign == 1:
        unit = {"time": NS_PER_SECOND, "timestamp": 1, "time_ns": 1}.get(expression.name)
        return None if unit is None else max(from_ns, bound * unit)

    def is_reached(time_ns: int) -> bool:
        value = known_value(expression, time_ns, {})
        # Of a value that nobody knows nothing can be waited for.
        return value is None or sign * value >= bound

    return first_reached(is_reached, from_ns)


def closed_epoch(lfta: Lfta, bound_ns: int) -> int | None:
    """The last epoch that no packet from ``bound_ns`` on can belong to; None if that cannot be told."""
    expression = next(key.expression for key in lfta.keys if key.name == lfta.epoch)
    value = known_value(expression, bound_ns, {})
    return None if value is None or value == NO_BOUND else value - 1
