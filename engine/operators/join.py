"""Join: rows of two sides whose epochs are equal, and what else the query asks of a pair.

A pair has equal epochs, so releasing both sides up to the same value gives every match and every outer
row exactly once; nothing is kept from step to step.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gscope.engine.operators import interval_join
from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.spark.sql import outer_residual
from gscope.engine.spark.sql.expressions import quote, to_sql
from gscope.engine.spark.sql.join_sides import equated, leaf, side_rows
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release import Side
from gscope.queries.gsql.nodes import JoinKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import JoinNode

_KINDS = {
    JoinKind.INNER: "INNER JOIN",
    JoinKind.OUTER: "FULL OUTER JOIN",
    JoinKind.LEFT_OUTER: "LEFT OUTER JOIN",
    JoinKind.RIGHT_OUTER: "RIGHT OUTER JOIN",
}


def bookkeeping(node: JoinNode) -> EpochOperator:
    """The running state of a join."""
    if node.interval is not None:
        return interval_join.bookkeeping(node)
    return EpochOperator(node, tuple(Side(epoch) for epoch in node.epochs), node.columns)


def lower(
    node: JoinNode,
    left: str,
    right: str,
    *,
    epochs: tuple[Bound, Bound] = (NOTHING, ENDED),
    fits_in_memory: bool = True,
) -> str:
    """The Spark SQL text of a join over the rows of both sides, which answers ``epochs``.

    SELECT columns FROM (SELECT needed FROM left WHERE predicate) JOIN (… right …)
    ON epoch = epoch AND keys = keys AND residual

    One side becomes a hash table, which needs no sorting but cannot spill; where a side may not fit,
    both are sorted.
    """
    if node.interval is not None:
        return interval_join.lower(
            node, (left, right), epochs, partial(lower, fits_in_memory=fits_in_memory)
        )
    if outer_residual.is_needed(node):
        return outer_residual.lower(node, left, right)
    method = "SHUFFLE_HASH" if fits_in_memory else "MERGE"
    pairs = zip(equated(node, 0), equated(node, 1), strict=True)
    tests = [f"{to_sql(one, leaf)} = {to_sql(other, leaf)}" for one, other in pairs]
    if node.residual is not None:
        tests.append(to_sql(node.residual, leaf))
    columns = ", ".join(
        f"{to_sql(column.expression, leaf)} AS {quote(column.name)}" for column in node.columns
    )
    return (
        f"SELECT /*+ {method}(l, r) */ {columns} FROM {side_rows(node, 0, left)} l"
        f" {_KINDS[node.kind]} {side_rows(node, 1, right)} r ON {' AND '.join(tests)}"
    )


def expressions(node: JoinNode) -> Iterator[Expression]:
    """Every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    yield from node.epochs
    yield from (expression for pair in node.keys for expression in pair)
    for predicate in (*node.predicates, node.residual):
        if predicate is not None:
            yield predicate
