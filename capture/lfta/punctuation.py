"""Punctuation of LFTA streams: what a bound on packet times promises for each temporal column."""

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
    """Return the value of an ordered ``expression`` at the bounds of its parts.

    ``bound_ns`` is the bound of packet times, or ``NO_BOUND``; ``declared`` has the bound of each
    declared order for which it is known. Returns None if a part has no bound.
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
    """Return what ``lfta``'s stream promises once packets earlier than ``bound_ns`` are late.

    ``floors`` are the floors of the LFTA's declared orders. The promise of a decreasing column is
    that of its negative, see ``Punctuation``. Columns that depend on anything but times and
    declared orders get none.
    """
    declared: dict[Expression, int] = {
        call: signed(call, floor)
        for call, floor in zip(lfta.declared, floors, strict=True)
        if floor != NO_FLOOR
    }
    expressions = {named.name: named.expression for named in (*lfta.keys, *lfta.columns)}
    if lfta.is_aggregation and len(lfta.schema.temporal) > 1 and bound_ns != NO_BOUND:
        # Groups of the current epoch may have any value that belongs to it.
        bound_ns = _begin(expressions[lfta.epoch or ""], bound_ns)
    made = []
    for column in lfta.schema.temporal:
        expression = expressions.get(column.name)
        value = None if expression is None else known_value(expression, bound_ns, declared)
        if value is not None:
            made.append(punctuation(column, value))
    return tuple(made)


def _begin(epoch: Expression, time_ns: int) -> int:
    """Return the earliest time of the epoch of ``time_ns``; ``NO_BOUND`` if there is none."""
    wanted = known_value(epoch, time_ns, {})
    distance = first_reached(lambda back: known_value(epoch, time_ns - back, {}) != wanted, 1)
    return NO_BOUND if distance is None else time_ns - distance + 1


def promise_time(lfta: Lfta, promised: str, bound: int, from_ns: int) -> int | None:
    """Return the earliest bound on packet times from which on ``lfta`` promises ``bound``.

    Args:
        lfta: the LFTA that promises.
        promised: name of the promise, see ``Punctuation``.
        bound: bound of the promise.
        from_ns: least time to consider, or ``NO_BOUND``.

    Returns:
        The time; None if no time leads to the promise: another order does, or nothing.
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
    # Nothing is promised for the current epoch before it ends.
    following = known_value(epoch, time_ns, {})
    return None if following is None else _first_time(epoch, 1, following + 1, time_ns)


def _first_time(expression: Expression, sign: int, bound: int, from_ns: int) -> int | None:
    """Return the first time from ``from_ns`` on at which ``sign * expression >= bound``."""
    if isinstance(expression, PacketField) and sign == 1:
        unit = {"time": NS_PER_SECOND, "timestamp": 1, "time_ns": 1}.get(expression.name)
        return None if unit is None else max(from_ns, bound * unit)

    def is_reached(time_ns: int) -> bool:
        value = known_value(expression, time_ns, {})
        # There is nothing to wait for if the value is unknown.
        return value is None or sign * value >= bound

    return first_reached(is_reached, from_ns)


def closed_epoch(lfta: Lfta, bound_ns: int) -> int | None:
    """Return the last epoch without packets from ``bound_ns`` on; None if it is unknown."""
    expression = next(key.expression for key in lfta.keys if key.name == lfta.epoch)
    value = known_value(expression, bound_ns, {})
    return None if value is None or value == NO_BOUND else value - 1
