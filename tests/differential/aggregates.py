"""What aggregates of the differential test mean: a function of the values in a group that are not NULL."""

from __future__ import annotations

from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from tests.differential.expressions import order, value_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.syntax import Expression, Value

_Values = list[Any]


def aggregated(call: Expression, rows: list[tuple[dict[str, Any], ...]]) -> Value:
    """The value of an aggregate over the rows of a group."""
    if not call.arguments:
        return len(rows)
    values = [value_of(call.arguments[0], row) for row in rows]
    return AGGREGATES[call.text]([value for value in values if value is not None])


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
