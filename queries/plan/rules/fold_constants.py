"""Rule: compute expressions that do not depend on a tuple."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.expressions.expressions import Call, Expression, Literal, NamedExpression
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
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.trees import map_expression, map_nodes

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Column, PacketField, Value
    from gscope.queries.plan.logical import AggregateCall


def fold_constants(plan: LogicalPlan) -> LogicalPlan:
    """Replace pure calls on literals by literals: ``time / (6 * 10)`` by ``time / 60``."""
    queries = tuple(replace(q, root=map_nodes(q.root, _fold_node)) for q in plan.queries)
    return replace(plan, queries=queries)


def _fold_node(node: Node) -> Node:
    match node:
        case Filter():
            return replace(node, predicate=_fold(node.predicate))
        case Project():
            return replace(node, columns=_fold_all(node.columns))
        case GroupBy():
            return replace(node, keys=_fold_all(node.keys), aggregates=_fold_calls(node.aggregates))
        case RunningGroupBy():
            return replace(
                node,
                keys=_fold_all(node.keys),
                aggregates=_fold_calls(node.aggregates),
                closing=_fold(node.closing),
            )
        case SampleGroupBy():
            values = _fold_all(node.sampling.values)
            return replace(
                node,
                keys=_fold_all(node.keys),
                sampling=replace(node.sampling, values=values),
            )
        case WindowGroupBy():
            return replace(
                node,
                on=_fold(node.on),
                keys=_fold_all(node.keys),
                aggregates=_fold_calls(node.aggregates),
            )
        case WatchlistJoin():
            return replace(
                node,
                keys=tuple((_fold(left), _fold(right)) for left, right in node.keys),
                residual=None if node.residual is None else _fold(node.residual),
            )
        case Join():
            return replace(
                node,
                epochs=(_fold(node.epochs[0]), _fold(node.epochs[1])),
                keys=tuple((_fold(left), _fold(right)) for left, right in node.keys),
                residual=None if node.residual is None else _fold(node.residual),
                columns=_fold_all(node.columns),
            )
        case _:
            return node


def _fold_all(named: tuple[NamedExpression, ...]) -> tuple[NamedExpression, ...]:
    return tuple(NamedExpression(n.name, _fold(n.expression)) for n in named)


def _fold_calls(calls: tuple[AggregateCall, ...]) -> tuple[AggregateCall, ...]:
    return tuple(replace(c, arguments=tuple(_fold(e) for e in c.arguments)) for c in calls)


def _fold(expression: Expression) -> Expression:
    return map_expression(expression, _fold_call)


def _fold_call(part: Expression) -> Expression:
    if not isinstance(part, Call) or not part.arguments:
        return part
    if not FUNCTIONS[part.function].is_foldable:
        return part
    if not all(isinstance(argument, Literal) for argument in part.arguments):
        return part
    return Literal(evaluate(part, _no_leaf), part.type)


def _no_leaf(leaf: Column | PacketField) -> Value:
    message = f"{leaf.name!r} is not a constant"
    raise ValueError(message)
