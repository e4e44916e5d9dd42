"""Every aggregate by its name: its types, its partial and final halves, its meaning.

Entries are in ``queries/catalog/aggregate/``, by family; ``entry.py`` there describes an entry.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregate.entry import AggregateEntry, PartialRule
from gscope.queries.catalog.aggregate.estimates import ESTIMATES
from gscope.queries.catalog.aggregate.moments import MOMENTS
from gscope.queries.catalog.aggregate.ordered import ORDERED_ENTRIES
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.catalog.aggregate.plain import PLAIN
from gscope.queries.catalog.aggregate.values import VALUES
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, Value

__all__ = [
    "AGGREGATES",
    "DISTINCT_FORMS",
    "AggregateEntry",
    "PartialRule",
    "of_no_tuples",
    "partial_type",
]

AGGREGATES: dict[str, AggregateEntry] = {
    entry.name: entry for entry in (*PLAIN, *MOMENTS, *ORDERED_ENTRIES, *VALUES, *ESTIMATES)
}

DISTINCT_FORMS: dict[str, str] = {
    "count": "count_distinct",
    "sum": "sum_distinct",
    "avg": "avg_distinct",
    **{
        name: name
        for name in ("min", "max", "or_aggr", "and_aggr", "bool_or", "bool_and")
        # a repeated value changes nothing
    },
}
"""The aggregate that computes the DISTINCT form of another."""


def of_no_tuples(function: str) -> Value:
    """Return the result of an aggregate over no tuples: 0 for a count, NULL for any other."""
    return 0 if AGGREGATES[function].is_never_null else None


def partial_type(op: PartialOp, argument: Expression | None) -> GsqlType:
    """Return the type of a partial's column."""
    return GsqlType.INT if op is PartialOp.COUNT or argument is None else argument.type
