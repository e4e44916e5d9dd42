"""The columns of a result that identify a group: the key of a row in a view and in an alert."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.plan.program import (
    AggregationNode,
    QueryInput,
    RunningNode,
    SelectionNode,
    TopNode,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.plan.program import Input, Program


def group_columns(
    program: Program, source: Input, *, has_computed: bool = False
) -> frozenset[str] | None:
    """Return the columns of ``source`` that are keys of its groups.

    None without groups: for streams, and for nodes such as joins and merges.

    Args:
        program: the program.
        source: what has the columns.
        has_computed: whether columns that are computed of keys alone count, too. Several groups may
            have the same values of these.
    """
    if not isinstance(source, QueryInput):
        return None
    match program.node(source.query):
        case TopNode(input=below):
            return group_columns(program, below, has_computed=has_computed)
        case SelectionNode(input=below, columns=columns):
            names = group_columns(program, below, has_computed=has_computed)
        case (
            AggregationNode(keys=keys, columns=columns)
            | RunningNode(keys=keys, columns=columns)
            | WindowNode(keys=keys, columns=columns)
            | SampleNode(keys=keys, columns=columns)
        ):
            names = frozenset(key.name for key in keys)
        case _:
            return None
    if names is None:
        return None
    chosen = _computed_of if has_computed else _taken_from
    return frozenset(each.name for each in columns if chosen(each, names))


def _taken_from(column: NamedExpression, names: frozenset[str]) -> bool:
    expression = column.expression
    return isinstance(expression, Column) and expression.name in names


def _computed_of(column: NamedExpression, names: frozenset[str]) -> bool:
    parts = {part.name for part in walk(column.expression) if isinstance(part, Column)}
    return bool(parts) and parts <= names
