"""The part of a running aggregation that is Spark SQL text: a row for each epoch and group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.running.reduce import dealing_keys
from gscope.engine.spark.sql.aggregates import aggregate_sql
from gscope.engine.spark.sql.expressions import column_leaf, quote, to_sql
from gscope.queries.catalog.running import DISTINCT_VALUES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Aggregate, RunningNode

TASKS = 4
"""The number of parts into which the groups of a large fold are dealt, by a hash of their keys."""


def lower(node: RunningNode, sources: Sources) -> str:
    """Return the Spark SQL text of what the fold reads: a row for each epoch and group.

    Its columns are those of ``engine/running/rows.py``: SELECT e, keys, aggregates, task FROM
    source WHERE predicate GROUP BY e, keys
    """
    (source,) = sources.rows
    others = [key for key in node.keys if key.name != node.epoch]
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    keys = [f"{to_sql(epoch, column_leaf)} AS e"]
    keys += [f"{to_sql(k.expression, column_leaf)} AS k{n}" for n, k in enumerate(others)]
    aggregates = [f"{_aggregate(a, node.query)} AS a{n}" for n, a in enumerate(node.aggregates)]
    tests = [] if node.predicate is None else [to_sql(node.predicate, column_leaf)]
    if epoch.is_nullable:
        tests.append(f"{to_sql(epoch, column_leaf)} IS NOT NULL")
    where = f" WHERE {' AND '.join(tests)}" if tests else ""
    grouping = ", ".join(str(position) for position in range(1, len(keys) + 1))
    groups = f"SELECT {', '.join(keys + aggregates)} FROM {source}{where} GROUP BY {grouping}"
    dealing = dealing_keys(node)
    dealt = [f"k{number}" for number, key in enumerate(others) if key.expression in dealing]
    hashed = f"pmod(hash({', '.join(dealt)}), {TASKS})"
    return f"SELECT *, {hashed if others else 'cast(0 AS INT)'} AS kb FROM ({groups})"


def expressions(node: RunningNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    if node.predicate is not None:
        yield node.predicate
    yield from (key.expression for key in node.keys)
    yield from (argument for aggregate in node.aggregates for argument in aggregate.arguments)


def _aggregate(aggregate: Aggregate, query: str) -> str:
    """Return the text of an aggregate; values that must be distinct over time are collected."""
    arguments = [to_sql(argument, column_leaf) for argument in aggregate.arguments]
    if aggregate.function == DISTINCT_VALUES:
        return f"collect_set({arguments[0]})"
    return aggregate_sql(aggregate, arguments, quote, query)
