"""Merge: the union of streams, ordered on a temporal column."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.release import Side
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, NamedExpression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.whole_input import unites_whole_inputs

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import MergeNode


_WHOLE = (GsqlType.INT, GsqlType.TIMESTAMP)


def bookkeeping(node: MergeNode) -> EpochOperator:
    """Return the running state of a merge; its epoch is the merged column itself.

    A silent input does not delay it as long as its heartbeats promise. A tuple may be ``slack``
    behind the punctuation, so rows are retained that much longer. Rows whose merged column equals
    the watermark are released as they arrive, since no row before them can follow: simultaneous
    tuples do not wait for each other. Those of a whole input do: they are ordered at its end.
    """
    sides = tuple(Side(_column(node.schema[on], place)) for place, on in enumerate(node.on))
    is_stepped = node.schema[node.on[0]].type in _WHOLE
    beyond = int(is_stepped and not unites_whole_inputs(node))
    return EpochOperator(node, sides, merged_outputs(node), slack=node.slack, beyond=beyond)


def merged_outputs(node: MergeNode) -> tuple[NamedExpression, ...]:
    """Return the output columns over those of the sides.

    Each row comes from one side alone; as far as bounds and extents are concerned, a column of the
    output is a ``coalesce`` over those of the sides.
    """
    places = range(len(node.inputs))
    return tuple(
        NamedExpression(c.name, call("coalesce", *(_column(c, place) for place in places)))
        for c in node.schema.columns
    )


def _column(column: ColumnSchema, side: int) -> Column:
    return Column(column.name, column.type, column.is_nullable, side)
