"""What aggregates of the differential test mean.

A function of the values in a group that are not NULL.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from functools import reduce
from operator import and_, or_, xor
from typing import TYPE_CHECKING, Any

from tests.differential.expressions import holds, order, value_of, wrapped

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.syntax import Expression, Value

Rows = list[tuple[dict[str, Any], ...]]
_Values = list[Any]


def aggregated(call: Expression, rows: Rows) -> Value:
    """The value of an aggregate over the rows of a group."""
    call, (rows,) = _selected(call, [rows])
    if not call.arguments:
        return len(rows)
    values = [value_of(call.arguments[0], row) for row in rows]
    if call.text in ORDERED:
        timed = [
            (row[0]["time_ns"], order(value), value)
            for row, value in zip(rows, values, strict=True)
            if value is not None
        ]
        return ORDERED[call.text]([value for _, _, value in sorted(timed)])
    return AGGREGATES[call.text]([value for value in values if value is not None])


def running(call: Expression, life: list[Rows]) -> Value:
    """The value of an aggregate at the end of the last epoch of a group's life.

    Plain ones are about that epoch alone.
    """
    call, life = _selected(call, life)
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


def _selected(call: Expression, life: list[Rows]) -> tuple[Expression, list[Rows]]:
    """An aggregate without its FILTER, and the rows that this lets through."""
    text, _, condition = call.text.partition(" FILTER ")
    if not condition:
        return call, life
    *arguments, test = call.arguments
    plain = replace(call, text=text, arguments=tuple(arguments))
    return plain, [[row for row in rows if holds(test, row)] for rows in life]


def _sum(values: _Values) -> int | float | None:
    if not values:
        return None
    total: int | float = sum(values)
    return wrapped(total) if isinstance(total, int) else total


def _average(values: _Values) -> float | None:
    return float(sum(values)) / len(values) if values else None


def _folded(operation: Callable[[Any, Any], Any]) -> Callable[[_Values], Value]:
    return lambda values: reduce(operation, values) if values else None


def _quantile(part: float) -> Callable[[_Values], Value]:
    def quantile(values: _Values) -> float | None:
        if not values:
            return None
        place = part * (len(values) - 1)
        below, above = (sorted(values)[rule(place)] for rule in (math.floor, math.ceil))
        return float(below + (above - below) * (place - math.floor(place)))

    return quantile


def _top_two(values: _Values) -> bytes:
    """The two most frequent values with their counts, of equal counts the least first."""
    counts = sorted(Counter(values).items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{value}={count}" for value, count in counts[:2]).encode()


def _changes(values: _Values) -> int:
    return sum(n == 0 or values[n - 1] != value for n, value in enumerate(values))


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
    "bool_or({0})": lambda values: any(values) if values else None,
    "bool_and({0})": lambda values: all(values) if values else None,
    "sum(DISTINCT {0})": lambda values: _sum(list(set(values))),
    "avg(DISTINCT {0})": lambda values: _average(list(set(values))),
    "median({0})": _quantile(0.5),
    "quantile({0}, 0.25)": _quantile(0.25),
    "approx_top_k({0}, 2)": lambda values: _top_two(values) if values else None,
}
"""By how they are written; ``count(*)`` apart."""

ORDERED: dict[str, Callable[[_Values], Value]] = {
    "first({0})": lambda values: values[0] if values else None,
    "last({0})": lambda values: values[-1] if values else None,
    "count_diff({0})": _changes,
}
"""Aggregates of packets for which it matters which came first; values in the order of time."""

RUNNING: dict[str, Callable[[_Values], Value]] = {
    "running_sum": _sum,
    "running_count": len,
    "moving_sum": _sum,
    "moving_avg": _average,
    "sum_of_dups": lambda values: len(values) - _distinct(values),
}
"""Aggregates over the life of a group, or over its last epochs."""
