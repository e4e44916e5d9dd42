"""Rule: compute columns where they are used."""

from __future__ import annotations

from dataclasses import replace

from gscope.queries.plan.logical import GroupBy, Join, LogicalPlan, Node, Project, RunningGroupBy
from gscope.queries.plan.trees import by_name, map_nodes, substitute, substitute_all


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
        case GroupBy(input=Project() as below) | RunningGroupBy(input=Project() as below):
            inner = by_name(below.columns)
            aggregates = tuple(
                replace(a, arguments=tuple(substitute(e, inner) for e in a.arguments))
                for a in node.aggregates
            )
            keys = substitute_all(node.keys, inner)
            return replace(node, input=below.input, keys=keys, aggregates=aggregates)
        case _:
            return node
