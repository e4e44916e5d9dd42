"""What aggregates of the differential test mean: a function of the values in a group that are not NULL."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from tests.differential.expressions import order, value_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.syntax import Expression, Value

Rows = list[tuple[dict[str, Any], ...]]
_Values = list[Any]


def aggregated(call: Expression, rows: Rows) -> Value:
    """The value of an aggregate over the rows of a group."""
    if not call.arguments:
        return len(rows)
    values = [value_of(call.arguments[0], row) for row in rows]
    return AGGREGATES[call.text]([value for value in values if value is not None])


def running(call: Expression, life: list[Rows]) -> Value:
    """The value of an aggregate at the end of the last epoch of a group's life.

    Plain ones are about that epoch alone.
    """
    name, _, rest = call.text.partition("(")
    if name not in RUNNING:
        return aggregated(call, life[-1])
    if not call.arguments:
        return sum(len(rows) for rows in life)
    epochs = [
        [value for row in rows if (value := value_of(call.arguments[0], row)) is not None]
        for rows in life
    ]
    length = int(rest.rstrip(")").partition(",")[2] or len(epochs))
    return RUNNING[name]([value for values in epochs[-length:] for value in values])


def _sum(values: _Values) -> int | float | None:
    if not values:
        return None
    total: int | float = sum(values)
    return wrapped(total) if isinstance(total, int) else total


def _average(values: _Values) -> float | None:
    total = _sum(values)
    return None if total is None else float(total) / len(values)


def _folded(operation: Callable[[Any, Any], Any]) -> Callable[[_Values], Value]:
    return lambda values: reduce(operation, values) if values else None


def _distinct(values: _Values) -> int:
    return len({order(value) for value in values})


AGGREGATES: dict[str, Callable[[_Values], Value]] = {
    "count({0})": len,
    "sum({0})": _sum,
    "avg({0})": _average,
    "min({0})": lambda values: min(values, key=order, default=None),
    "max({0})": lambda values: max(values, key=order, default=None),
    "or_aggr({0})": _folded(or_),
    "and_aggr({0})": _folded(and_),
    "xor_aggr({0})": _folded(xor),
    "count(DISTINCT {0})": _distinct,
    "count_distinct({0})": _distinct,
    "count_dups({0})": lambda values: len(values) - _distinct(values),
}
"""By how they are written; ``count(*)`` apart."""

RUNNING: dict[str, Callable[[_Values], Value]] = {
    "running_sum": _sum,
    "running_count": len,
    "moving_sum": _sum,
    "moving_avg": _average,
    "sum_of_dups": lambda values: len(values) - _distinct(values),
}
"""Aggregates over the life of a group, or over its last epochs."""
