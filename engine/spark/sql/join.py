"""Join of two streams as Spark SQL text, of equal epochs or of epochs in an interval."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql import equal_join, interval_join

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import JoinNode


def lower(node: JoinNode, sources: Sources) -> str:
    """Return the Spark SQL text of a join."""
    if node.interval is not None:
        return interval_join.lower(node, sources)
    return equal_join.lower(node, sources)


def expressions(node: JoinNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    yield from node.epochs
    yield from (expression for pair in node.keys for expression in pair)
    for predicate in (*node.predicates, node.residual):
        if predicate is not None:
            yield predicate
