"""Aggregates as Spark SQL text: over plain rows, and over the partials of an LFTA.

Both give the same bits: integer sums wrap at 64 bits and an average is one division of two exact
integers, never a running double.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.errors import EngineError
from gscope.queries.catalog.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.plan.program import Aggregate

FROM_PARTIALS: dict[str, str] = {
    "count": "sum({0})",
    "sum": "sum({0})",
    "min": "min({0})",
    "max": "max({0})",
    "avg": "(cast(sum({0}) AS DOUBLE) / cast(sum({1}) AS DOUBLE))",
    "or_aggr": "bit_or({0})",
    "and_aggr": "bit_and({0})",
    "xor_aggr": "bit_xor({0})",
    "count_distinct": "count(DISTINCT {a0})",
    "count_dups": "(sum({0}) - count(DISTINCT {a0}))",
}
"""``{n}`` is the n-th partial column, ``{an}`` the n-th argument that joined the low-level key."""

FROM_ROWS: dict[str, str] = {
    "count": "count({a0})",
    "sum": "sum({a0})",
    "min": "min({a0})",
    "max": "max({a0})",
    "avg": "(cast(sum({a0}) AS DOUBLE) / cast(count({a0}) AS DOUBLE))",
    "or_aggr": "bit_or({a0})",
    "and_aggr": "bit_and({a0})",
    "xor_aggr": "bit_xor({a0})",
    "count_distinct": "count(DISTINCT {a0})",
    "count_dups": "(count({a0}) - count(DISTINCT {a0}))",
}


def aggregate_sql(
    aggregate: Aggregate, arguments: Sequence[str], partial: Callable[[str], str]
) -> str:
    """The Spark SQL text of ``aggregate``.

    Args:
        aggregate: which, and of what.
        arguments: the texts of its arguments.
        partial: gives the text of a partial column; unused over plain rows.

    Raises:
        EngineError: the aggregate has no high-level half here.
    """
    table = FROM_PARTIALS if aggregate.partials else FROM_ROWS
    template = table.get(aggregate.function)
    if template is None:
        message = f"the HFTA job has no aggregate {aggregate.function!r}"
        raise EngineError(message)
    texts = {f"a{index}": text for index, text in enumerate(arguments)}
    texts.setdefault("a0", "1")
    text = template.format(*(partial(name) for name in aggregate.partials), **texts)
    if aggregate.type is GsqlType.BOOL and aggregate.function not in ("min", "max"):
        return f"({text} <> 0L)"
    return text
