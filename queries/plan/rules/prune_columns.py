"""Rule: remove the columns of joins that nothing above reads."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, Expression, NamedExpression, walk
from gscope.queries.expressions.schema import Schema
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

if TYPE_CHECKING:
    from collections.abc import Iterable
    from collections.abc import Set as AbstractSet


def prune_columns(plan: LogicalPlan) -> LogicalPlan:
    """Remove columns of a join, and of the projections below it, that nothing above reads.

    Before::

        Project[a.x](Join[a.x, a.y, b.y; a.t = b.t](Project[t, x, y](…), Project[t, y](…)))

    After::

        Project[a.x](Join[a.x; a.t = b.t](Project[t, x](…), Project[t](…)))
    """
    return replace(plan, queries=tuple(replace(q, root=prune(q.root)) for q in plan.queries))


def prune(node: Node) -> Node:
    """Return ``node`` with the same columns, above joins that have only those that it needs."""
    match node:
        case Project():
            needed = _read(c.expression for c in node.columns)
            return replace(node, input=_needing(node.input, needed))
        case Filter():
            return replace(node, input=prune(node.input))
        case GroupBy() | RunningGroupBy() | WindowGroupBy():
            arguments = (e for a in node.aggregates for e in a.arguments)
            on = (node.on,) if isinstance(node, WindowGroupBy) else ()
            needed = _read((*on, *(k.expression for k in node.keys), *arguments))
            return replace(node, input=_needing(node.input, needed))
        case SampleGroupBy():
            read = (*node.keys, *node.sampling.values)
            needed = _read(each.expression for each in read)
            return replace(node, input=_needing(node.input, needed))
        case Join() | WatchlistJoin():
            return _needing(node, set(node.schema.names))
        case _:
            return node


def _needing(node: Node, needed: AbstractSet[str]) -> Node:
    """Return ``node`` with at least its columns ``needed``."""
    match node:
        case Project():
            kept = _kept(node.columns, needed)
            return prune(replace(node, columns=kept, schema=_narrowed(node.schema, kept)))
        case Filter():
            below = _needing(node.input, needed | _read([node.predicate]))
            return replace(node, input=below, schema=below.schema)
        case Join():
            return _join(node, needed)
        case WatchlistJoin():
            return _watchlist_join(node, needed)
        case _:
            return prune(node)


def _join(join: Join, needed: AbstractSet[str]) -> Join:
    columns = _kept(join.columns, needed)
    sides = [
        *join.epochs,
        *(side for key in join.keys for side in key),
        *([] if join.residual is None else [join.residual]),
        *(c.expression for c in columns),
    ]
    left, right = (_needing(each, _read(sides, n)) for n, each in enumerate(join.inputs))
    return replace(
        join, inputs=(left, right), columns=columns, schema=_narrowed(join.schema, columns)
    )


def _watchlist_join(join: WatchlistJoin, needed: AbstractSet[str]) -> WatchlistJoin:
    columns = _kept(join.columns, needed)
    used = [
        *(side for key in join.keys for side in key),
        *([] if join.residual is None else [join.residual]),
        *(c.expression for c in columns),
    ]
    return replace(
        join,
        input=_needing(join.input, _read(used)),
        columns=columns,
        schema=_narrowed(join.schema, columns),
    )


def _read(expressions: Iterable[Expression], number: int = 0) -> set[str]:
    return {
        part.name
        for expression in expressions
        for part in walk(expression)
        if isinstance(part, Column) and part.input == number
    }


def _kept(
    columns: tuple[NamedExpression, ...], needed: AbstractSet[str]
) -> tuple[NamedExpression, ...]:
    """Return the needed columns, or the first if none is needed: a stream has at least one."""
    return tuple(c for c in columns if c.name in needed) or columns[:1]


def _narrowed(schema: Schema, columns: tuple[NamedExpression, ...]) -> Schema:
    return Schema(tuple(schema[c.name] for c in columns))
