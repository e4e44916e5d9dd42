"""The epoch of a grouping or union without a temporal term: a finite input as a whole.

It is a constant, which never decreases and which only the end of the input closes. So a grouping
over a whole input runs like any other: its LFTA has a group table of fixed size, its partial tuples
collect in the log, and its HFTA node releases the only epoch when its input has ended. A union has
the constant in a hidden column of its inputs, on which it merges them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema
from gscope.queries.expressions.types import Direction, GsqlType, Ordering
from gscope.queries.plan.program import (
    AggregationNode,
    MergeNode,
    QueryInput,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.row_order import ORDER
from gscope.queries.plan.sampling_operator import SampleNode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Input, Program

WHOLE_INPUT = "whole_input"
"""The name of the key, unless the query has a column of that name."""

EPOCH = 0
"""The value of the only epoch."""


def whole_input_key(name: str = WHOLE_INPUT) -> NamedExpression:
    """Return the key of a grouping over a whole input."""
    return NamedExpression(name, Literal(EPOCH, GsqlType.INT))


def whole_input_schema(name: str) -> ColumnSchema:
    """Return the schema of that key, which never decreases."""
    ordering = Ordering(Direction.INCREASING)
    return ColumnSchema(name, GsqlType.INT, is_nullable=False, ordering=ordering)


def is_whole_input(epoch: Expression | None) -> bool:
    """Return whether an epoch is that of a whole input; no other epoch is a constant."""
    return isinstance(epoch, Literal)


def unites_whole_inputs(node: MergeNode) -> bool:
    """Return whether a merge waits for the end of its inputs.

    It waits because no column orders their rows.
    """
    return node.on[0] == ORDER


def written_keys(keys: Sequence[NamedExpression], epoch: str) -> list[NamedExpression]:
    """Return the keys that the query names: all but that of a whole input."""
    return [key for key in keys if key.name != epoch or not is_whole_input(key.expression)]


def answers_at_the_end(program: Program, query: str) -> bool:
    """Return whether the rows of ``query`` come from a grouping, order or union of a whole input.

    That may be its own or one below it.
    """
    order = program.order(query)
    if order is not None and order.is_selection and order.keys:
        return True
    sources: list[Input] = [QueryInput(query)]
    nodes = {node.query: node for node in program.nodes}
    while sources:
        source = sources.pop()
        # A result that is a stream of an LFTA is a selection.
        node = nodes.get(source.query) if isinstance(source, QueryInput) else None
        if isinstance(node, AggregationNode | SampleNode | TopNode) and is_whole_input(
            node.epoch_expression
        ):
            return True
        if isinstance(node, MergeNode) and unites_whole_inputs(node):
            return True
        sources += () if node is None else node_inputs(node)
    return False


def is_global(keys: Sequence[NamedExpression], epoch: str) -> bool:
    """Return whether a grouping has one group, which exists even without tuples, as in SQL."""
    return not written_keys(keys, epoch)
