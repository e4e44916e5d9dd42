"""The hidden column that orders the rows of an answer where no visible column is temporal.

An answer with a temporal column is held until its rows are complete, and then sorted; see decision
28. Without one, the order of rows would show the steps that emitted them. So a query that must give
the same bytes each time gets the temporal column of its input, or the epoch of its join, as its
first column; delivery sorts by it and leaves it out.

    SELECT srcIP FROM IP                →  SELECT time as $order, srcIP FROM IP
    … GROUP BY time/60 as tb, srcIP     →  SELECT tb as $order, srcIP …
    … FROM a LEFT JOIN b                →  SELECT (the epoch of a) as $order, …
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
)
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType, Ordering
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    LogicalPlan,
    LogicalQuery,
    Project,
    QueryScan,
    Scan,
    WatchlistJoin,
    first_side,
)
from gscope.queries.plan.row_order import ORDER
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.whole_input import is_whole_input
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection

    from gscope.queries.plan.logical import Node


def with_order(plan: LogicalPlan, names: Collection[str]) -> LogicalPlan:
    """Return ``plan`` with a hidden column in the queries ``names`` that need and can have one.

    Queries that these read get one as well if the column has to come from them.
    """
    extension = _Extension({query.name: query for query in plan.queries})
    for name in names:
        extension.extend(name)
    return replace(plan, queries=tuple(extension.queries[query.name] for query in plan.queries))


@dataclass(frozen=True, slots=True)
class _Ordered:
    """A node with a temporal expression over its columns."""

    node: Node
    expression: Expression
    ordering: Ordering


@dataclass(frozen=True, slots=True)
class _Extension:
    """The queries of a plan, some of them extended by a hidden column.

    Attributes:
        queries: the queries by name.
    """

    queries: dict[str, LogicalQuery] = field(default_factory=dict)

    def extend(self, name: str) -> bool:
        """Give the query ``name`` a temporal column; return whether it has one."""
        query = self.queries[name]
        if query.schema.temporal:
            return True
        if not isinstance(query.root, Project):
            return False
        root = self._project(query.root)
        if root is None:
            return False
        self.queries[name] = replace(query, root=root, schema=root.schema)
        return True

    def _project(self, node: Project) -> Project | None:
        below = self._ordered(node.input)
        if below is None:
            return None
        column = NamedExpression(ORDER, below.expression)
        schema = ColumnSchema(ORDER, below.expression.type, ordering=below.ordering)
        return replace(
            node,
            input=below.node,
            columns=(column, *node.columns),
            schema=Schema((schema, *node.schema.columns)),
        )

    def _ordered(self, node: Node) -> _Ordered | None:
        """Find or add a temporal column of ``node``; None if there cannot be one."""
        match node:
            case Filter():
                below = self._ordered(node.input)
                if below is None:
                    return None
                filtered = replace(node, input=below.node, schema=below.node.schema)
                return replace(below, node=filtered)
            case GroupBy() | SampleGroupBy() if _is_of_whole_input(node):
                return None
            case _ if node.schema.temporal:
                return _first(node)
            case Project():
                extended = self._project(node)
                return None if extended is None else _first(extended)
            case QueryScan() if self.extend(node.query):
                return _first(replace(node, schema=self.queries[node.query].schema))
            case Join():
                return _first(_with_column(node, _epoch(node)))
            case WatchlistJoin():
                below = self._ordered(node.input)
                if below is None:
                    return None
                extended_join = replace(node, input=below.node)
                return _first(_with_column(extended_join, below.expression, below.ordering))
            case _:
                return None


def _first(node: Node) -> _Ordered:
    """Return ``node`` with the first of its temporal columns."""
    column = node.schema.temporal[0]
    leaf = PacketField if _is_packets(node) else Column
    return _Ordered(node, leaf(column.name, column.type, column.is_nullable), column.ordering)


def _is_of_whole_input(group: GroupBy | SampleGroupBy) -> bool:
    """Return whether all rows of ``group`` are emitted at once, at the end of the input."""
    return any(key.name == group.epoch and is_whole_input(key.expression) for key in group.keys)


def _is_packets(node: Node) -> bool:
    while isinstance(node, Filter):
        node = node.input
    return isinstance(node, Scan)


def _with_column(
    join: Join | WatchlistJoin, expression: Expression, ordering: Ordering = INCREASING
) -> Join | WatchlistJoin:
    schema = ColumnSchema(ORDER, expression.type, ordering=ordering)
    return replace(
        join,
        columns=(NamedExpression(ORDER, expression), *join.columns),
        schema=Schema((schema, *join.schema.columns)),
    )


def _epoch(join: Join) -> Expression:
    """Return the epoch with which a row leaves ``join``, over both sides."""
    left, right = join.epochs
    if join.kind is not JoinKind.OUTER:
        return join.epochs[first_side(join.kind)]
    if join.interval is not None:
        # A right row without a partner leaves with the first epoch that it could have matched.
        is_time = right.type is GsqlType.TIMESTAMP
        least = Literal(join.interval.least, GsqlType.INTERVAL if is_time else GsqlType.INT)
        right = call("ts_sub" if is_time else "sub_int", right, least)
    return call("coalesce", left, right)
