"""Selection as Spark SQL text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import select_list, where

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import SelectionNode


def lower(node: SelectionNode, sources: Sources) -> str:
    """Return the Spark SQL text of a selection: SELECT columns FROM source WHERE predicate."""
    (source,) = sources.rows
    return f"SELECT {select_list(node.columns)} FROM {source}{where(node.predicate)}"


def expressions(node: SelectionNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for ``node``."""
    yield from (column.expression for column in node.columns)
    if node.predicate is not None:
        yield node.predicate
