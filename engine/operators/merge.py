"""Merge: the union of streams, ordered on a temporal column, held up by no silent input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.release import Side
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import MergeNode


_WHOLE = (GsqlType.INT, GsqlType.TIMESTAMP)


def bookkeeping(node: MergeNode) -> EpochOperator:
    """The running state of a merge; its epoch is the merged column itself.

    A tuple may be ``slack`` behind the punctuation, so rows are held that much longer. Rows that are equal in the
    merged column go out as they come, for none before them can follow: simultaneous tuples wait for nobody.
    """
    sides = tuple(Side(_column(node.schema[on], place)) for place, on in enumerate(node.on))
    beyond = int(node.schema[node.on[0]].type in _WHOLE)
    return EpochOperator(node, sides, merged_outputs(node), slack=node.slack, beyond=beyond)


def merged_outputs(node: MergeNode) -> tuple[NamedExpression, ...]:
    """The output columns over those of the sides.

    Each row comes from one side alone; for all that is known of their columns, the output is a ``coalesce`` over them.
    """
    places = range(len(node.inputs))
    return tuple(
        NamedExpression(c.name, call("coalesce", *(_column(c, place) for place in places)))
        for c in node.schema.columns
    )


def _column(column: ColumnSchema, side: int) -> Column:
    return Column(column.name, column.type, column.is_nullable, side)
