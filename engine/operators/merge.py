"""Merge: the union of streams, ordered on a temporal column, held up by no silent input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.spark.expressions import quote
from gscope.queries.plan.expressions import Column, NamedExpression

if TYPE_CHECKING:
    from gscope.queries.plan.program import MergeNode


def bookkeeping(node: MergeNode) -> EpochOperator:
    """The running state of a merge; its epoch is the merged column itself.

    A tuple may be ``slack`` behind the punctuation, so rows are held that much longer.
    """
    columns = tuple(
        NamedExpression(c.name, Column(c.name, c.type, c.is_nullable)) for c in node.schema.columns
    )
    epoch = next(c.expression for c in columns if c.name == node.on[0])
    return EpochOperator(node=node, epoch=epoch, outputs=columns, slack=node.slack)


def lower(node: MergeNode, source: str) -> str:
    """The Spark SQL text of a merge; the rows of a step are ordered when they are written."""
    columns = ", ".join(quote(name) for name in node.schema.names)
    return f"SELECT {columns} FROM {source}"
