"""Window queries made of ordinary ones: the epoch of each grouping becomes the end of a window."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.expressions import Column, PacketField
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import GroupBy, Project, WindowGroupBy
from gscope.queries.plan.rules.optimize import optimize
from gscope.queries.plan.split.share import share
from gscope.queries.plan.split.split import split
from gscope.queries.plan.trees import map_nodes, substitute_all
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.window_plan import WindowPlan

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.logical import LogicalPlan, LogicalQuery, Node
    from gscope.queries.plan.program import Program
    from gscope.queries.plan.windows.window import Window

SECOND_NS = 10**9
TIME = PacketField("time", GsqlType.INT, is_nullable=False)
TIME_NS = PacketField("time_ns", GsqlType.INT, is_nullable=False)


def window_program(
    text: str,
    windows: Sequence[Window],
    *,
    unit_ns: int | None = SECOND_NS,
    plan: WindowPlan = WindowPlan.PAIRED,
) -> Program:
    """Return the program of ``text``, the n-th of its groupings over the n-th of ``windows``.

    A grouping of ``time/60 as tb`` becomes one by windows over time, and ``tb`` their ends.
    """
    built = window_plan(text, windows, unit_ns)
    logical = [built, *(after for _, after in optimize(built))][-1]
    names = [query.name for query in logical.queries]
    return share(split(logical, names, windows=plan))


def window_plan(text: str, windows: Sequence[Window], unit_ns: int | None) -> LogicalPlan:
    """Return the logical plan of such queries, not yet optimized."""
    waiting = list(windows)
    plan = analyze([parse(text, "q.gsql")], ("main1",), {}, {})

    def change(node: Node) -> Node:
        if not isinstance(node, GroupBy) or not waiting:
            return node
        return _windowed(node, waiting.pop(0), unit_ns)

    queries = [_with_ends(replace(q, root=map_nodes(q.root, change))) for q in plan.queries]
    return replace(plan, queries=tuple(queries))


def _windowed(group: GroupBy, window: Window, unit_ns: int | None) -> WindowGroupBy:
    epoch = next(key for key in group.keys if key.name == group.epoch)
    kind = GsqlType.INT if unit_ns is None else GsqlType.TIMESTAMP
    ends = (ColumnSchema(name, kind, ordering=INCREASING) for name in (WINDOW_START, WINDOW_END))
    others = (c for c in group.schema.columns if c.name != group.epoch)
    on: Expression = epoch.expression
    if unit_ns is not None:
        on = TIME if unit_ns == SECOND_NS else TIME_NS
    return WindowGroupBy(
        input=group.input,
        window=window,
        on=on,
        unit_ns=unit_ns,
        keys=tuple(key for key in group.keys if key.name != group.epoch),
        aggregates=group.aggregates,
        schema=Schema((*ends, *others)),
    )


def _with_ends(query: LogicalQuery) -> LogicalQuery:
    """Return ``query`` with the ends of windows in place of the epochs of its groupings."""

    def change(node: Node) -> Node:
        below = node.input if isinstance(node, Project) else None
        if not isinstance(node, Project) or not isinstance(below, WindowGroupBy):
            return node
        end = below.schema[WINDOW_END]
        known: dict[str, Expression] = {
            c.name: Column(c.name, c.type, c.is_nullable) for c in below.schema.columns
        }
        known["tb"] = Column(WINDOW_END, end.type, is_nullable=False)
        columns = substitute_all(node.columns, known)
        schemas = (replace(c, type=end.type) if c.name == "tb" else c for c in node.schema.columns)
        return replace(node, columns=columns, schema=Schema(tuple(schemas)))

    root = map_nodes(query.root, change)
    return replace(query, root=root, schema=root.schema)
