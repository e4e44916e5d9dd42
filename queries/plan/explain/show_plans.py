"""Logical plans and schemas as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.literals import write_interval
from gscope.queries.plan.explain.show_sampling_operator import show_sampling_operator
from gscope.queries.plan.explain.show_windows import show_window
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Interval,
    Join,
    LogicalQuery,
    Merge,
    Node,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.show_expressions import (
    LEFT_RIGHT,
    show,
    show_equalities,
    show_named,
    show_of_sides,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.logical import AggregateCall
    from gscope.queries.plan.row_order import Order


def show_schema(schema: Schema) -> str:
    """Return columns with type and ordering: ``tb INT increasing, srcIP IP``."""
    parts = []
    for column in schema.columns:
        ordering = f" {column.ordering.direction.value}" if column.ordering.is_temporal else ""
        parts.append(
            f"{column.name} {column.type.value}{ordering}{' NULL' if column.is_nullable else ''}"
        )
    return ", ".join(parts)


def show_query(query: LogicalQuery) -> Iterator[str]:
    """Yield the plan of a query: the order of its rows, if it gives one, above its tree."""
    order = query.order
    if order is None:
        yield from show_tree(query.root)
        return
    parts = [f"OrderBy {', '.join(keys)}"] if (keys := show_keys(order)) else []
    parts += [f"Limit {limit}"] if (limit := show_limit(order)) else []
    yield "; ".join(parts)
    yield from show_tree(query.root, 1)


def show_keys(order: Order) -> list[str]:
    """Return the columns of ORDER BY: ``["cnt DESC", "srcIP"]``."""
    return [
        key.name
        + (" DESC" if key.is_descending else "")
        + (" NULLS FIRST" if key.has_nulls_first else "")
        for key in order.keys
    ]


def show_limit(order: Order) -> str:
    """Return LIMIT and what it holds for: ``10 of each epoch tb``; "" for all rows."""
    if order.limit is None:
        return ""
    of_each = f" of each epoch {order.epoch}" if order.epoch else " of the whole input"
    return f"{order.limit}{of_each}"


def show_tree(node: Node, depth: int = 0) -> Iterator[str]:
    """Yield a logical plan, one line for each node, with its inputs indented below."""
    lead = "  " * depth
    match node:
        case Scan():
            on = ", ".join(node.interfaces) or "any interface"
            where = "" if node.membership is None else f" where {show(node.membership)}"
            yield f"{lead}Scan {node.protocol} on {on}{where}"
        case QueryScan():
            yield f"{lead}QueryScan {node.query}"
        case Filter():
            yield f"{lead}Filter {show(node.predicate)}"
            yield from show_tree(node.input, depth + 1)
        case Project():
            yield f"{lead}Project {show_named(node.columns)}"
            yield from show_tree(node.input, depth + 1)
        case GroupBy():
            aggregates = _show_calls(node.aggregates)
            yield f"{lead}GroupBy {show_named(node.keys)}; {aggregates}; closes by {node.epoch}"
            yield from show_tree(node.input, depth + 1)
        case RunningGroupBy():
            aggregates = _show_calls(node.aggregates)
            yield (
                f"{lead}RunningGroupBy {show_named(node.keys)}; {aggregates}; "
                f"at each end of {node.epoch} closes when {show(node.closing)}"
            )
            yield from show_tree(node.input, depth + 1)
        case WindowGroupBy():
            parts = [f"WindowGroupBy {show_window(node.window, node.unit_ns)} on {show(node.on)}"]
            parts += [show_named(node.keys)] if node.keys else []
            yield f"{lead}{'; '.join([*parts, _show_calls(node.aggregates)])}"
            yield from show_tree(node.input, depth + 1)
        case SampleGroupBy():
            yield f"{lead}SampleGroupBy {show_named(node.keys)}; window {node.epoch}"
            for line in show_sampling_operator(node.sampling):
                yield f"{lead}  {line}"
            yield from show_tree(node.input, depth + 1)
        case Join():
            yield f"{lead}{_show_join(node)}"
            for each in node.inputs:
                yield from show_tree(each, depth + 1)
        case WatchlistJoin():
            keys = show_equalities(node.keys, ("stream", node.watchlist.name))
            yield f"{lead}WatchlistJoin {node.watchlist.name}; {keys}"
            yield from show_tree(node.input, depth + 1)
        case Merge():
            yield f"{lead}Merge on {', '.join(node.on)} slack {node.slack}"
            for each in node.inputs:
                yield from show_tree(each, depth + 1)
        case _:
            assert_never(node)


def _show_calls(calls: Iterable[AggregateCall]) -> str:
    return ", ".join(
        f"{a.name} := {a.function}({', '.join(map(show, a.arguments)) or '*'})" for a in calls
    )


def show_interval(
    epochs: tuple[Expression, Expression], interval: Interval, names: Sequence[str] = LEFT_RIGHT
) -> str:
    """Return the interval of a join: ``-2 <= right.time - left.time <= 5``."""
    left, right = (show_of_sides(each, names) for each in epochs)
    least, most = (show_extent(end, epochs[0].type) for end in (interval.least, interval.most))
    return f"{least} <= {right} - {left} <= {most}"


def show_extent(extent: int, kind: GsqlType) -> str:
    """Return a length along an expression of type ``kind``: ``5``, of a TIMESTAMP ``250 msec``."""
    if kind is not GsqlType.TIMESTAMP:
        return str(extent)
    return write_interval(extent)


def _show_join(join: Join) -> str:
    """Return a join in one line, with the names of the queries that it reads if these differ."""
    labels = [_label(each) for each in join.inputs]
    names = labels if all(labels) and labels[0] != labels[1] else LEFT_RIGHT
    parts = [
        f"epochs {show_equalities([join.epochs], names)}"
        if join.interval is None
        else f"interval {show_interval(join.epochs, join.interval, names)}"
    ]
    if join.keys:
        parts.append(f"keys {show_equalities(join.keys, names)}")
    if join.residual is not None:
        parts.append(f"only if {show_of_sides(join.residual, names)}")
    columns = ", ".join(f"{c.name} := {show_of_sides(c.expression, names)}" for c in join.columns)
    return f"Join {join.kind.value} {columns}; {'; '.join(parts)}"


def _label(node: Node) -> str:
    while isinstance(node, Filter | Project):
        node = node.input
    return node.query if isinstance(node, QueryScan) else ""
