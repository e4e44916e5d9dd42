"""Aggregates that depend on the order of tuples.

The order is that of the input's temporal columns, and of the values among tuples that are equal in
these. So it does not depend on the order in which tuples arrive, over how many interfaces, or in
which partials. Of packets the order is ``time_ns``. The first (last) value needs only a low-level
group for each value with its least (greatest) time.
"""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.aggregate.entry import (
    FIXED_SIZE,
    ORDERED,
    AggregateEntry,
    PartialRule,
    second_argument,
)
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.scalar.logic import order_key
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression, Value


def _place(row: Sequence[Any]) -> Any:
    """Return the sort key of a row (value, *order), NULL first."""
    return (*((part is not None, order_key(part)) for part in row[1:]), order_key(row[0]))


def _first(rows: Sequence[Sequence[Any]]) -> Value:
    valued = [row for row in rows if row[0] is not None]
    return min(valued, key=_place)[0] if valued else None


def _last(rows: Sequence[Sequence[Any]]) -> Value:
    valued = [row for row in rows if row[0] is not None]
    return max(valued, key=_place)[0] if valued else None


def _changes(rows: Sequence[Sequence[Any]]) -> int:
    valued = sorted((row for row in rows if row[0] is not None), key=_place)
    return sum(1 for _ in groupby(valued, key=lambda row: order_key(row[0])))


def _has_one_order(arguments: Sequence[Expression]) -> bool:
    return len(arguments) == 2


def _end(
    name: str, op: PartialOp, evaluate: Callable[[Sequence[Any]], Value], doc: str
) -> AggregateEntry:
    return AggregateEntry(
        name,
        ORDERED,
        None,
        evaluate,
        (PartialRule(op, second_argument),),
        evaluate,
        FIXED_SIZE,
        doc,
        joins_key=True,
        is_ordered=True,
        fits=_has_one_order,
    )


ORDERED_ENTRIES = (
    _end(
        "first",
        PartialOp.MIN,
        _first,
        "The value of the earliest tuple that has one; among tuples of one time the least value.",
    ),
    _end(
        "last",
        PartialOp.MAX,
        _last,
        "The value of the latest tuple that has one; among tuples of one time the greatest value.",
    ),
    AggregateEntry(
        "count_diff",
        ORDERED,
        GsqlType.INT,
        _changes,
        (),
        _changes,
        frozenset(),
        "The number of times that the value differs from the previous one (tuples of one time in "
        "order of their values); the first value counts.",
        is_never_null=True,
        is_ordered=True,
    ),
)
