"""The split: each query's plan becomes LFTAs beside the packets and HFTA nodes above.

Low goes what reduces: selection, projection, partial aggregation. An aggregation that cannot run low
as a whole gets an LFTA that ships the columns it needs.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.schema import ColumnSchema, Schema
from gscope.queries.plan.expressions import Column, Expression, NamedExpression, PacketField
from gscope.queries.plan.logical import Filter, GroupBy, Merge, Project, QueryScan, Scan
from gscope.queries.plan.low import (
    INTERFACE,
    Border,
    choose_interfaces,
    column_schema,
    declarations,
    is_low,
    is_low_key,
)
from gscope.queries.plan.partials import Partials, can_run_low
from gscope.queries.plan.program import (
    Aggregate,
    AggregationNode,
    HftaNode,
    Input,
    Lfta,
    MergeNode,
    Partial,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
)
from gscope.queries.plan.trees import conjunction, conjuncts, scans

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.plan.logical import LogicalPlan, LogicalQuery, Node


def split(plan: LogicalPlan, results: Sequence[str]) -> Program:
    """Cut ``plan`` into a program.

    Args:
        plan: optimized: each query is Project, Filter or GroupBy over one leaf.
        results: the queries to deliver; queries that none of them needs are left out.
    """
    cut = _Split()
    needed = _needed(plan, results)
    queries = [query for query in plan.queries if query.name in needed]
    for query in queries:
        cut.add(query)
    return Program(
        interfaces=plan.interfaces,
        lftas=tuple(cut.lftas),
        nodes=tuple(cut.nodes),
        results=tuple((name, cut.inputs[name]) for name in results),
        schemas=tuple((query.name, query.schema) for query in queries),
    )


def _needed(plan: LogicalPlan, results: Sequence[str]) -> set[str]:
    needed = set(results)
    for query in reversed(plan.queries):
        if query.name in needed:
            needed.update(scans(query.root))
    return needed


@dataclass(frozen=True, slots=True)
class _Layers:
    """A query taken apart: having and outputs over a grouping (or none) over a filter over a leaf."""

    columns: tuple[NamedExpression, ...]
    having: Expression | None
    group: GroupBy | None
    predicate: Expression | None
    leaf: Scan | QueryScan | Merge

    @property
    def is_leaf_alone(self) -> bool:
        """Whether nothing is done above the leaf."""
        return not self.columns and self.group is None and self.predicate is None


@dataclass(slots=True)
class _Split:
    lftas: list[Lfta] = field(default_factory=list)
    nodes: list[HftaNode] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)

    def add(self, query: LogicalQuery) -> None:
        layers = _take_apart(query.root)
        match layers.leaf:
            case Scan():
                self._over_packets(query, layers, layers.leaf)
            case QueryScan():
                self._over_stream(query, layers, self.inputs[layers.leaf.query])
            case Merge():
                merged = self._merge(query, layers, layers.leaf)
                if merged is not None:
                    self._over_stream(query, layers, merged)
            case _:
                assert_never(layers.leaf)
        self.inputs.setdefault(query.name, QueryInput(query.name))

    def _over_packets(self, query: LogicalQuery, layers: _Layers, scan: Scan) -> None:
        predicates = [*conjuncts(scan.membership), *conjuncts(layers.predicate)]
        interfaces, rest = choose_interfaces(scan.interfaces, predicates)
        low = tuple(p for p in rest if is_low(p))
        high = tuple(p for p in rest if not is_low(p))
        site = _Site(query, scan.protocol, interfaces, conjunction(low))
        if layers.group is None:
            self._selection(site, layers, high)
        elif not high and _can_group_low(layers.group):
            self._aggregation(site, layers, layers.group)
        else:
            self._aggregation_of_rows(site, layers, layers.group, high)

    def _aggregation(self, site: _Site, layers: _Layers, group: GroupBy) -> None:
        """Partial aggregation low, final aggregation high."""
        border = Border()
        keys = tuple(NamedExpression(k.name, border.lift(k.expression, k.name)) for k in group.keys)
        partials = Partials(border)
        aggregates = tuple(partials.add(call) for call in group.aggregates)
        epoch_key = next(k.expression for k in keys if k.name == group.epoch)
        assert isinstance(epoch_key, Column)
        columns = (
            *(column_schema(c) for c in border.columns),
            *(ColumnSchema(p.name, p.type, p.is_nullable) for p in partials.made),
        )
        lfta = site.lfta(
            keys=border.columns,
            epoch=epoch_key.name,
            partials=tuple(partials.made),
            schema=Schema(columns),
            has_interface_column=border.has_interface,
        )
        self.lftas.append(lfta)
        self.nodes.append(
            _aggregation_node(site.query, layers, group, StreamInput(lfta.name), keys, aggregates)
        )

    def _aggregation_of_rows(
        self, site: _Site, layers: _Layers, group: GroupBy, high: tuple[Expression, ...]
    ) -> None:
        """Rows are selected low; predicate and grouping are high."""
        border = Border()
        predicate = conjunction([border.lift(p) for p in high])
        keys = tuple(NamedExpression(k.name, border.lift(k.expression, k.name)) for k in group.keys)
        aggregates = tuple(
            Aggregate(
                call.name,
                call.function,
                tuple(border.lift(a) for a in call.arguments),
                (),
                call.type,
                call.is_nullable,
            )
            for call in group.aggregates
        )
        lfta = site.selection(border)
        self.lftas.append(lfta)
        self.nodes.append(
            _aggregation_node(
                site.query, layers, group, StreamInput(lfta.name), keys, aggregates, predicate
            )
        )

    def _selection(self, site: _Site, layers: _Layers, high: tuple[Expression, ...]) -> None:
        border = Border()
        predicate = conjunction([border.lift(p) for p in high])
        columns = tuple(
            NamedExpression(c.name, border.lift(c.expression, c.name))
            for c in layers.columns or _all_columns(layers.leaf)
        )
        lfta = site.selection(border)
        self.lftas.append(lfta)
        stream = StreamInput(lfta.name)
        query = site.query
        is_plain = predicate is None and all(
            isinstance(c.expression, Column) and c.expression.name == c.name for c in columns
        )
        temporal = query.schema.temporal
        if is_plain and len(lfta.interfaces) <= 1:
            self.inputs[query.name] = stream
        elif is_plain and temporal:
            self.nodes.append(
                MergeNode(query.name, (stream,), (temporal[0].name,), 0, query.schema)
            )
        else:
            self.nodes.append(SelectionNode(query.name, stream, predicate, columns, query.schema))

    def _over_stream(self, query: LogicalQuery, layers: _Layers, source: Input) -> None:
        if layers.group is None:
            columns = layers.columns or _all_columns(layers.leaf)
            self.nodes.append(
                SelectionNode(query.name, source, layers.predicate, columns, query.schema)
            )
            return
        aggregates = tuple(
            Aggregate(a.name, a.function, a.arguments, (), a.type, a.is_nullable)
            for a in layers.group.aggregates
        )
        self.nodes.append(
            _aggregation_node(
                query,
                layers,
                layers.group,
                source,
                layers.group.keys,
                aggregates,
                layers.predicate,
            )
        )

    def _merge(self, query: LogicalQuery, layers: _Layers, merge: Merge) -> Input | None:
        """The merge itself; None when it is the whole of the query."""
        inputs = tuple(
            self._merge_input(query, each, number, merge)
            for number, each in enumerate(merge.inputs)
        )
        is_whole = layers.is_leaf_alone
        name = query.name if is_whole else f"{query.name}.merged"
        on = (merge.on[0],) * len(inputs)
        self.nodes.append(MergeNode(name, inputs, on, merge.slack, merge.schema))
        return None if is_whole else QueryInput(name)

    def _merge_input(self, query: LogicalQuery, node: Node, number: int, merge: Merge) -> Input:
        """One input of a merge, its columns renamed to those of the merge."""
        layers = _take_apart(node)
        same_names = node.schema.names == merge.schema.names
        if isinstance(layers.leaf, QueryScan) and same_names and layers.is_leaf_alone:
            return self.inputs[layers.leaf.query]
        own = layers.columns or _all_columns(node)
        renamed = tuple(
            NamedExpression(name, c.expression)
            for name, c in zip(merge.schema.names, own, strict=True)
        )
        part = replace(query, name=f"{query.name}.{number + 1}", schema=merge.schema)
        layers = replace(layers, columns=renamed)
        if isinstance(layers.leaf, Scan):
            self._over_packets(part, layers, layers.leaf)
        else:
            assert isinstance(layers.leaf, QueryScan)
            self._over_stream(part, layers, self.inputs[layers.leaf.query])
        return self.inputs.setdefault(part.name, QueryInput(part.name))


@dataclass(frozen=True, slots=True)
class _Site:
    """Where an LFTA stands: its query, protocol, interfaces and predicate."""

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
        """An LFTA that ships the columns collected at ``border``."""
        lfta = self.lfta(
            columns=border.columns,
            schema=Schema(tuple(column_schema(c) for c in border.columns)),
            has_interface_column=border.has_interface,
        )
        return replace(lfta, declared=declarations(c.expression for c in border.columns))


def _take_apart(root: Node) -> _Layers:
    columns: tuple[NamedExpression, ...] = ()
    above: Expression | None = None
    node = root
    if isinstance(node, Project):
        columns, node = node.columns, node.input
    if isinstance(node, Filter):
        above, node = node.predicate, node.input
    if not isinstance(node, GroupBy):
        assert isinstance(node, Scan | QueryScan | Merge), type(node).__name__
        return _Layers(columns, None, None, above, node)
    group, node = node, node.input
    predicate: Expression | None = None
    if isinstance(node, Filter):
        predicate, node = node.predicate, node.input
    assert isinstance(node, Scan | QueryScan | Merge), type(node).__name__
    return _Layers(columns, above, group, predicate, node)


def _can_group_low(group: GroupBy) -> bool:
    """Whether the whole grouping has a low half."""
    epoch = next(k.expression for k in group.keys if k.name == group.epoch)
    keys_fit = all(is_low_key(k.expression) or _is_interface(k.expression) for k in group.keys)
    return is_low(epoch) and keys_fit and all(can_run_low(call) for call in group.aggregates)


def _is_interface(expression: Expression) -> bool:
    return isinstance(expression, PacketField) and expression.name == INTERFACE


def _aggregation_node(
    query: LogicalQuery,
    layers: _Layers,
    group: GroupBy,
    source: Input,
    keys: tuple[NamedExpression, ...],
    aggregates: tuple[Aggregate, ...],
    predicate: Expression | None = None,
) -> AggregationNode:
    return AggregationNode(
        query=query.name,
        input=source,
        predicate=predicate,
        keys=keys,
        epoch=group.epoch,
        aggregates=aggregates,
        having=layers.having,
        columns=layers.columns or _all_columns(group),
        schema=query.schema,
    )


def _all_columns(node: Node) -> tuple[NamedExpression, ...]:
    """Every column of a node as it stands."""
    leaf = PacketField if isinstance(node, Scan) else Column
    return tuple(
        NamedExpression(c.name, leaf(c.name, c.type, c.is_nullable)) for c in node.schema.columns
    )
