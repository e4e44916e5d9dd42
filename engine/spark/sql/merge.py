"""Merge as Spark SQL text, of ordered and of latent inputs alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.spark.sql.expressions import quote

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import MergeNode


def lower(node: MergeNode, sources: Sources) -> str:
    """Return the Spark SQL text of a merge; rows are ordered when the step's output is written."""
    columns = ", ".join(quote(name) for name in node.schema.names)
    return " UNION ALL ".join(f"SELECT {columns} FROM {source}" for source in sources.rows)


def expressions(node: MergeNode) -> Iterator[Expression]:  # noqa: ARG001
    """Yield every expression that Spark evaluates for ``node``: none, its rows pass unchanged."""
    yield from ()
