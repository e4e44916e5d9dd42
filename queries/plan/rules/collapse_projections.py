"""Rule: compute columns where they are used."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.plan.logical import (
    GroupBy,
    Join,
    LogicalPlan,
    Node,
    Project,
    RunningGroupBy,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.trees import by_name, map_nodes, substitute, substitute_all

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import AggregateCall


def collapse_projections(plan: LogicalPlan) -> LogicalPlan:
    """Compute the columns of a projection in the projection or grouping above it.

    A join computes columns of its own, so the rule stops there.

    Before::

        GroupBy[tb; sum(bytes)](Project[tb := time / 60, bytes := len](Scan))

    After::

        GroupBy[tb := time / 60; sum(len)](Scan)
    """
    queries = tuple(replace(q, root=map_nodes(q.root, _collapse)) for q in plan.queries)
    return replace(plan, queries=queries)


def _collapse(node: Node) -> Node:
    match node:
        case Project(input=Project() as below):
            columns = substitute_all(node.columns, by_name(below.columns))
            return replace(node, input=below.input, columns=columns)
        case Project(input=Join() as join):
            columns = substitute_all(node.columns, by_name(join.columns))
            return replace(join, columns=columns, schema=node.schema)
        case WindowGroupBy(input=Project() as below):
            inner = by_name(below.columns)
            return replace(
                node,
                input=below.input,
                on=substitute(node.on, inner),
                keys=substitute_all(node.keys, inner),
                aggregates=_substituted(node.aggregates, inner),
            )
        case SampleGroupBy(input=Project() as below):
            inner = by_name(below.columns)
            values = substitute_all(node.sampling.values, inner)
            return replace(
                node,
                input=below.input,
                keys=substitute_all(node.keys, inner),
                sampling=replace(node.sampling, values=values),
            )
        case GroupBy(input=Project() as below) | RunningGroupBy(input=Project() as below):
            inner = by_name(below.columns)
            aggregates = _substituted(node.aggregates, inner)
            keys = substitute_all(node.keys, inner)
            return replace(node, input=below.input, keys=keys, aggregates=aggregates)
        case _:
            return node


def _substituted(
    calls: tuple[AggregateCall, ...], columns: Mapping[str, Expression]
) -> tuple[AggregateCall, ...]:
    return tuple(
        replace(call, arguments=tuple(substitute(e, columns) for e in call.arguments))
        for call in calls
    )
