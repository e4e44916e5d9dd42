"""Read a selection's own input instead of its result."""

from __future__ import annotations

from dataclasses import replace

from gscope.queries.plan.logical import Filter, LogicalPlan, Node, Project, QueryScan, Scan
from gscope.queries.plan.trees import map_nodes


def inline_selections(plan: LogicalPlan) -> LogicalPlan:
    """A query over a selection of packets becomes a query over packets, so that it can run low.

    Before::

        syn: Project[tb, srcIP](Filter[SYN = 1](Scan TCP))
        counts: GroupBy[tb](QueryScan syn)

    After::

        counts: GroupBy[tb](Project[tb, srcIP](Filter[SYN = 1](Scan TCP)))
    """
    selections: dict[str, Node] = {}
    queries = []
    for query in plan.queries:
        root = map_nodes(
            query.root,
            lambda node: selections.get(node.query, node) if isinstance(node, QueryScan) else node,
        )
        if _is_selection(root):
            selections[query.name] = root
        queries.append(replace(query, root=root))
    return replace(plan, queries=tuple(queries))


def _is_selection(node: Node) -> bool:
    while isinstance(node, Filter | Project):
        node = node.input
    return isinstance(node, Scan)
