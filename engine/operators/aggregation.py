"""Aggregation: groups of whole epochs, each answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.spark.sql.aggregates import aggregate_sql
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.engine.watermarks.release import Side
from gscope.queries.catalog.aggregates import of_no_tuples
from gscope.queries.expressions.expressions import Literal
from gscope.queries.plan.whole_input import is_global, written_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Aggregate, AggregationNode


def bookkeeping(node: AggregationNode) -> EpochOperator:
    """The running state of an aggregation."""
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    is_single = is_global(node.keys, node.epoch)
    return EpochOperator(node, (Side(epoch),), node.columns, node.keys, makes_row=is_single)


def lower(node: AggregationNode, source: str) -> str:
    """The Spark SQL text of an aggregation over the rows of ``source``.

    SELECT columns FROM (SELECT keys, aggregates FROM source WHERE predicate GROUP BY keys)
    WHERE having

    Without keys GROUP BY is left out, and an empty input gives one row.
    """
    grouped = written_keys(node.keys, node.epoch)
    keys = [f"{to_sql(key.expression, column_leaf)} AS {quote(key.name)}" for key in grouped]
    aggregates = [
        f"{_aggregate(aggregate, node.query, is_single=not keys)} AS {quote(aggregate.name)}"
        for aggregate in node.aggregates
    ]
    grouping = ", ".join(str(position) for position in range(1, len(keys) + 1))
    where = "" if node.predicate is None else f" WHERE {to_sql(node.predicate, column_leaf)}"
    groups = f"SELECT {', '.join(keys + aggregates)} FROM {source}{where}"
    if keys:
        groups += f" GROUP BY {grouping}"
    columns = ", ".join(
        f"{to_sql(column.expression, column_leaf)} AS {quote(column.name)}"
        for column in node.columns
    )
    having = "" if node.having is None else f" WHERE {to_sql(node.having, column_leaf)}"
    return f"SELECT {columns} FROM ({groups}){having}"


def _aggregate(aggregate: Aggregate, query: str, *, is_single: bool) -> str:
    """Return the text of an aggregate; of a group that ``is_single`` and may have no rows at all."""
    arguments = [to_sql(argument, column_leaf) for argument in aggregate.arguments]
    text = aggregate_sql(aggregate, arguments, quote, query)
    if not is_single:
        return text
    of_none = to_sql(Literal(of_no_tuples(aggregate.function), aggregate.type), column_leaf)
    return f"if(count(1) = 0, {of_none}, {text})"


def expressions(node: AggregationNode) -> Iterator[Expression]:
    """Every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in (*node.keys, *node.columns))
    yield from (argument for aggregate in node.aggregates for argument in aggregate.arguments)
    for predicate in (node.predicate, node.having):
        if predicate is not None:
            yield predicate
