"""What ORDER BY and LIMIT mean: Python's sort, and the first rows of each epoch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tests.differential.syntax import Group, Query, Select, Term

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.differential.syntax import Field

Row = dict[str, Any]

EPOCH = "$epoch"
"""The entry of a row with its epoch, which no query can read; without it all rows are of one
epoch."""


def is_ordered(query: Query) -> bool:
    """Whether the order of all rows of ``query`` is known."""
    return isinstance(query, Select | Group) and bool(query.order or query.limit)


def first_rows(query: Query, rows: list[Row]) -> list[Row]:
    """The rows that a query keeps, in their order."""
    if not isinstance(query, Select | Group) or not is_ordered(query):
        return rows
    fields = {field.name: field for field in query.fields}
    # The rows of an epoch have one time, those of a selection have many.
    times = [f.name for f in query.fields if f.unit_ns] if isinstance(query, Select) else []
    terms = [*query.order, *(Term(n, False, True) for n in (*times, *fields))]
    places = rows
    for term in reversed(terms):
        places = _sorted(places, term, fields[term.name])
    places = sorted(places, key=lambda row: row.get(EPOCH, 0))
    if query.limit is None:
        return places
    kept: list[Row] = []
    taken: dict[Any, int] = {}
    for row in places:
        epoch = row.get(EPOCH, 0)
        taken[epoch] = taken.get(epoch, 0) + 1
        if taken[epoch] <= query.limit:
            kept.append(row)
    return kept


def _sorted(rows: list[Row], term: Term, field: Field) -> list[Row]:
    """The rows in a stable order by one column."""
    rank: Callable[[Row], Any] = lambda row: _rank(row[field.name])  # noqa: E731
    known = [row for row in rows if row.get(field.name) is not None]
    missing = [row for row in rows if row.get(field.name) is None]
    known.sort(key=rank, reverse=term.is_descending)
    return [*missing, *known] if term.has_nulls_first else [*known, *missing]


def _rank(value: Any) -> Any:
    """NaN is greater than any number; negative zero equals zero."""
    return (math.isnan(value), value + 0.0) if isinstance(value, float) else value
