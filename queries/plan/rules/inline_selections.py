"""Rule: read a selection's own input instead of its result."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.expressions import Call, Column, Expression, Literal, walk
from gscope.queries.plan.logical import Filter, LogicalPlan, Node, Project, QueryScan, Scan
from gscope.queries.plan.trees import map_nodes
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

# Each selection is written out in its readers, so a few lines could define a huge query.
_MAX_LAYERS = 20
_MAX_PARTS = 5000
_MAX_DEPTH = 150


def inline_selections(plan: LogicalPlan) -> LogicalPlan:
    """Turn a query over a selection of packets into a query over packets, which can run low.

    A selection that would grow too large when written out repeatedly stays a stream of its own. So
    does one that declares an order or has a LIMIT, because it leaves out tuples for all its
    readers.

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
        layers = _selection(root)
        is_whole = query.order is None or query.order.limit is None
        is_light = layers is not None and _is_small(layers) and is_whole
        if layers is not None and is_light and not any(map(_declares_order, layers)):
            selections[query.name] = root
        queries.append(replace(query, root=root))
    return replace(plan, queries=tuple(queries))


def _selection(root: Node) -> list[Filter | Project] | None:
    """Return the layers of a selection of packets, the lowest first; None for another query."""
    layers = []
    node = root
    while isinstance(node, Filter | Project):
        layers.append(node)
        node = node.input
    return layers[::-1] if isinstance(node, Scan) else None


def _declares_order(layer: Filter | Project) -> bool:
    return isinstance(layer, Project) and any(
        declared_ordering(part) is not None for c in layer.columns for part in walk(c.expression)
    )


@dataclass(frozen=True, slots=True)
class _Size:
    """The size of an expression.

    Attributes:
        parts: its calls and leaves, without constants.
        depth: how deep they nest.
    """

    parts: int
    depth: int


def _is_small(layers: list[Filter | Project]) -> bool:
    """Return whether a selection may be written out; otherwise it is read as a stream."""
    if len(layers) > _MAX_LAYERS:
        return False
    below: Mapping[str, _Size] = {}
    for layer in layers:
        if isinstance(layer, Filter):
            sizes = [_size(layer.predicate, below)]
        else:
            below = {c.name: _size(c.expression, below) for c in layer.columns}
            sizes = list(below.values())
        if sum(s.parts for s in sizes) > _MAX_PARTS or max(s.depth for s in sizes) > _MAX_DEPTH:
            return False
    return True


def _size(expression: Expression, below: Mapping[str, _Size]) -> _Size:
    """Return the size of ``expression`` with the columns of ``below`` written out."""
    if isinstance(expression, Column):
        return below[expression.name]
    if not isinstance(expression, Call):
        return _Size(parts=0 if isinstance(expression, Literal) else 1, depth=1)
    sizes = [_size(argument, below) for argument in expression.arguments]
    return _Size(1 + sum(s.parts for s in sizes), 1 + max((s.depth for s in sizes), default=0))
