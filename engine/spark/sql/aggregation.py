"""Aggregation as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.aggregates import aggregate_sql
from gscope.engine.spark.sql.expressions import column_leaf, quote, select_list, to_sql, where
from gscope.engine.spark.sql.top import first_rows
from gscope.queries.catalog.aggregates import of_no_tuples
from gscope.queries.expressions.expressions import Literal
from gscope.queries.plan.whole_input import written_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Aggregate, AggregationNode


def lower(node: AggregationNode, sources: Sources) -> str:
    """Return the Spark SQL text of an aggregation.

    SELECT columns FROM (SELECT keys, aggregates FROM source WHERE predicate GROUP BY keys)
    WHERE having

    Without keys there is no GROUP BY, and an empty input gives one row. LIMIT keeps the first rows
    of each epoch.
    """
    (source,) = sources.rows
    grouped = written_keys(node.keys, node.epoch)
    keys = [f"{to_sql(key.expression, column_leaf)} AS {quote(key.name)}" for key in grouped]
    aggregates = [
        f"{_aggregate(aggregate, node.query, is_single=not keys)} AS {quote(aggregate.name)}"
        for aggregate in node.aggregates
    ]
    groups = f"SELECT {', '.join(keys + aggregates)} FROM {source}{where(node.predicate)}"
    if keys:
        groups += f" GROUP BY {', '.join(str(n) for n in range(1, len(keys) + 1))}"
    text = f"SELECT {select_list(node.columns)} FROM ({groups}){where(node.having)}"
    return first_rows(text, node.schema, node.top)


def _aggregate(aggregate: Aggregate, query: str, *, is_single: bool) -> str:
    """Return the text of an aggregate; a group that ``is_single`` may have no rows at all."""
    arguments = [to_sql(argument, column_leaf) for argument in aggregate.arguments]
    text = aggregate_sql(aggregate, arguments, quote, query)
    if not is_single:
        return text
    of_none = to_sql(Literal(of_no_tuples(aggregate.function), aggregate.type), column_leaf)
    return f"if(count(1) = 0, {of_none}, {text})"


def expressions(node: AggregationNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in (*node.keys, *node.columns))
    yield from (argument for aggregate in node.aggregates for argument in aggregate.arguments)
    for predicate in (node.predicate, node.having):
        if predicate is not None:
            yield predicate
