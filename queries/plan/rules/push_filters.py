"""Rule: filter as early as possible."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, Expression, walk
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    LogicalPlan,
    Node,
    Project,
    RunningGroupBy,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.trees import (
    by_name,
    conjunction,
    conjuncts,
    inputs_of,
    map_nodes,
    of_input,
    substitute,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from collections.abc import Set as AbstractSet


_NEVER_MISSING: dict[JoinKind, frozenset[int]] = {
    JoinKind.INNER: frozenset({0, 1}),
    JoinKind.LEFT_OUTER: frozenset({0}),
    JoinKind.RIGHT_OUTER: frozenset({1}),
    JoinKind.OUTER: frozenset(),
}


def push_filters(plan: LogicalPlan) -> LogicalPlan:
    """Move filters below projections and, as far as they read keys only, below groupings.

    Below a grouping that runs across epochs move only filters on the keys that identify a group: a
    filter on the epoch chooses rows, while the tuples of the epoch still count for later ones. A
    filter above a join moves to the side that it reads, if that side is never missing.

    Before::

        Filter[b > 1](Project[b := len + 1](Scan))
        Filter[srcIP = x AND cnt > 5](GroupBy[tb, srcIP; cnt](Scan))

    After::

        Project[b := len + 1](Filter[len + 1 > 1](Scan))
        Filter[cnt > 5](GroupBy[tb, srcIP; cnt](Filter[srcIP = x](Scan)))
    """
    queries = tuple(replace(q, root=map_nodes(q.root, _push)) for q in plan.queries)
    return replace(plan, queries=queries)


def _push(node: Node) -> Node:
    if not isinstance(node, Filter):
        return node
    below = node.input
    match below:
        case Filter():
            both = conjunction([*conjuncts(below.predicate), *conjuncts(node.predicate)])
            assert both is not None
            return _push(Filter(below.input, both, below.schema))
        case Project():
            predicate = substitute(node.predicate, by_name(below.columns))
            return replace(below, input=_push(Filter(below.input, predicate, below.input.schema)))
        case GroupBy() | WindowGroupBy():
            return _below_grouping(node, below, by_name(below.keys))
        case RunningGroupBy():
            keys = by_name(below.keys)
            del keys[below.epoch]
            return _below_grouping(node, below, keys)
        case Join():
            return _below_join(node, below)
        case WatchlistJoin():
            return _below_watchlist_join(node, below)
        case _:
            return node


def _below_join(node: Filter, join: Join) -> Node:
    """Push conditions on one side that is never missing to that side.

    Conditions over both sides of pairs become conditions of the join; others stay above it.
    """
    columns = by_name(join.columns)
    sides: tuple[list[Expression], list[Expression]] = ([], [])
    residual: list[Expression] = []
    late: list[Expression] = []
    for part in conjuncts(node.predicate):
        of_sides = substitute(part, columns)
        inputs = inputs_of(of_sides)
        if len(inputs) == 1 and inputs <= _NEVER_MISSING[join.kind]:
            sides[inputs.pop()].append(of_input(of_sides, 0))
        elif inputs and join.kind is JoinKind.INNER:
            residual.append(of_sides)
        else:
            late.append(part)
    left, right = (
        _filtered(each, predicates) for each, predicates in zip(join.inputs, sides, strict=True)
    )
    both = conjunction([*conjuncts(join.residual), *residual])
    join = replace(join, inputs=(left, right), residual=both)
    predicate = conjunction(late)
    return join if predicate is None else replace(node, input=join, predicate=predicate)


def _below_watchlist_join(node: Filter, join: WatchlistJoin) -> Node:
    """Push conditions on the stream alone to the stream, others into the join."""
    columns = by_name(join.columns)
    parts = [substitute(part, columns) for part in conjuncts(node.predicate)]
    early = [part for part in parts if inputs_of(part) == {0}]
    both = conjunction([*conjuncts(join.residual), *(p for p in parts if p not in early)])
    return replace(join, input=_filtered(join.input, early), residual=both)


def _filtered(node: Node, predicates: Sequence[Expression]) -> Node:
    predicate = conjunction(predicates)
    return node if predicate is None else _push(Filter(node, predicate, node.schema))


def _below_grouping(
    node: Filter, group: GroupBy | RunningGroupBy | WindowGroupBy, keys: Mapping[str, Expression]
) -> Node:
    """Push the conditions of ``node`` that read ``keys`` alone below ``group``."""
    parts = conjuncts(node.predicate)
    early = [substitute(part, keys) for part in parts if _reads_only(part, keys.keys())]
    late = conjunction([part for part in parts if not _reads_only(part, keys.keys())])
    early_predicate = conjunction(early)
    if early_predicate is not None:
        pushed = _push(Filter(group.input, early_predicate, group.input.schema))
        group = replace(group, input=pushed)
    return group if late is None else replace(node, input=group, predicate=late)


def _reads_only(expression: Expression, names: AbstractSet[str]) -> bool:
    columns = {part.name for part in walk(expression) if isinstance(part, Column)}
    return bool(columns) and columns <= names
