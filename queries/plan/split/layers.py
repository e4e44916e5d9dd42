"""The layers of a query and the site of its LFTA, which the splits of all operators share."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, Expression, NamedExpression, PacketField
from gscope.queries.expressions.schema import Schema
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.program import Lfta, Partial
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.split.border import Border, column_schema, declarations
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.plan.logical import LogicalQuery, Node
    from gscope.queries.plan.row_order import Order

Grouping = GroupBy | RunningGroupBy | WindowGroupBy | SampleGroupBy

Leaf = Scan | QueryScan | Merge | Join | WatchlistJoin | Grouping
"""The node below all layers of a query; a grouping if another groups it (SELECT DISTINCT)."""


@dataclass(frozen=True, slots=True)
class Layers:
    """The layers of a query: HAVING and outputs over a grouping over a filter over a leaf.

    Attributes:
        columns: the output; () for all columns of the node below.
        having: the condition on groups, None for all.
        group: the grouping, None without one.
        predicate: the condition on rows of the leaf, None for all.
        leaf: the node below.
    """

    columns: tuple[NamedExpression, ...]
    having: Expression | None
    group: Grouping | None
    predicate: Expression | None
    leaf: Leaf

    @property
    def is_leaf_alone(self) -> bool:
        """Whether the query is its leaf."""
        return not self.columns and self.group is None and self.predicate is None


@dataclass(frozen=True, slots=True)
class Site:
    """The query, protocol, interfaces and predicate of an LFTA."""

    query: LogicalQuery
    protocol: str
    interfaces: tuple[str, ...]
    predicate: Expression | None

    def lfta(
        self,
        *,
        schema: Schema,
        has_interface_column: bool,
        keys: tuple[NamedExpression, ...] = (),
        epoch: str | None = None,
        partials: tuple[Partial, ...] = (),
        columns: tuple[NamedExpression, ...] = (),
    ) -> Lfta:
        """Return an LFTA at this site."""
        return Lfta(
            name=self.query.name,
            query=self.query.name,
            protocol=self.protocol,
            interfaces=self.interfaces,
            predicate=self.predicate,
            keys=keys,
            epoch=epoch,
            partials=partials,
            columns=columns,
            schema=schema,
            has_interface_column=has_interface_column,
        )

    def selection(self, border: Border) -> Lfta:
        """Return an LFTA that ships the columns collected at ``border``."""
        lfta = self.lfta(
            columns=border.columns,
            schema=Schema(tuple(column_schema(c) for c in border.columns)),
            has_interface_column=border.has_interface,
        )
        return replace(lfta, declared=declarations(c.expression for c in border.columns))


def take_apart(root: Node) -> Layers:
    """Return the layers of an optimized query, or of one side of a join or merge."""
    columns: tuple[NamedExpression, ...] = ()
    above: Expression | None = None
    node = root
    if isinstance(node, Project):
        columns, node = node.columns, node.input
    if isinstance(node, Filter):
        above, node = node.predicate, node.input
    if not isinstance(node, Grouping):
        assert isinstance(node, Leaf), type(node).__name__
        return Layers(columns, None, None, above, node)
    group, node = node, node.input
    predicate: Expression | None = None
    if isinstance(node, Filter):
        predicate, node = node.predicate, node.input
    assert isinstance(node, Leaf), type(node).__name__
    return Layers(columns, above, group, predicate, node)


def first_rows_of_epochs(query: LogicalQuery) -> Order | None:
    """Return the order whose first rows of each epoch a grouping keeps; None if it keeps all."""
    order = query.order
    return None if order is None or order.limit is None or order.is_selection else order


def all_columns(node: Node) -> tuple[NamedExpression, ...]:
    """Return every column of a node, unchanged."""
    leaf = PacketField if isinstance(node, Scan) else Column
    return tuple(
        NamedExpression(c.name, leaf(c.name, c.type, c.is_nullable)) for c in node.schema.columns
    )
