"""The split: each query's plan becomes LFTAs beside the packets and HFTA nodes above.

LFTAs run the operators that reduce traffic: selection, projection, partial aggregation. An
aggregation that cannot run low as a whole gets an LFTA that ships the columns it needs.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    Literal,
    NamedExpression,
)
from gscope.queries.expressions.schema import Schema
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan import part_names
from gscope.queries.plan.clock_columns import clock_units
from gscope.queries.plan.logical import (
    GroupBy,
    Join,
    Merge,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.payload_columns import mark_payloads
from gscope.queries.plan.program import (
    HftaNode,
    Input,
    Lfta,
    MergeNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
    TopNode,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.split.border import (
    Border,
    choose_interfaces,
    declarations,
    is_low,
)
from gscope.queries.plan.split.groupings import (
    can_group_low,
    group_low,
    group_rows,
    group_stream,
)
from gscope.queries.plan.split.joins import (
    JoinResult,
    JoinSide,
    SharedStreams,
    is_composable,
    join_node,
    watchlist_join_node,
)
from gscope.queries.plan.split.layers import Grouping, Layers, Site, all_columns, take_apart
from gscope.queries.plan.split.sampling import sample_packets, sample_stream
from gscope.queries.plan.split.slice_classes import slice_classes
from gscope.queries.plan.split.windows import LowSlices, can_slice_low, ship_rows, window_stream
from gscope.queries.plan.trees import by_name, conjunction, conjuncts, nodes_of, scans
from gscope.queries.plan.whole_input import is_global
from gscope.queries.plan.windows.window_plan import WindowPlan
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from gscope.queries.expressions.schema import ClockUnit
    from gscope.queries.plan.logical import LogicalPlan, LogicalQuery, Node
    from gscope.queries.plan.row_order import Order


def split(
    plan: LogicalPlan,
    results: Sequence[str],
    *,
    delivers_in_order: bool = True,
    windows: WindowPlan = WindowPlan.PAIRED,
) -> Program:
    """Cut ``plan`` into a program.

    Args:
        plan: the optimized plan: each query is Project, Filter or GroupBy over one leaf.
        results: the queries to deliver; queries that none of them needs are left out.
        delivers_in_order: whether delivery can order the rows of a selection; if not, because a
            kill would lose them, an operator does.
        windows: how windows are computed.
    """
    cut = _Split(
        read={name for query in plan.queries for name in scans(query.root)},
        ordered=() if delivers_in_order else results,
        windows=windows,
    )
    needed = _needed(plan, results)
    queries = [query for query in plan.queries if query.name in needed]
    schemas = mark_payloads(plan)
    units = clock_units(plan)
    cut.find_slices(queries)
    for query in queries:
        cut.add(query)
    return Program(
        interfaces=plan.interfaces,
        lftas=tuple(cut.lftas),
        nodes=tuple(cut.nodes),
        results=tuple((name, cut.inputs[name]) for name in results),
        schemas=tuple(
            (query.name, _with_clocks(schemas[query.name], units[query.name])) for query in queries
        ),
        orders=tuple(
            (q.name, q.order) for q in queries if q.order is not None and q.name in results
        ),
        saved_packets=plan.saved_packets,
    )


def _with_clocks(schema: Schema, units: Mapping[str, ClockUnit]) -> Schema:
    """Return ``schema`` with the units of the columns that count time."""
    return Schema(tuple(replace(c, clock=units.get(c.name)) for c in schema.columns))


def _needed(plan: LogicalPlan, results: Sequence[str]) -> set[str]:
    needed = set(results)
    for query in reversed(plan.queries):
        if query.name in needed:
            needed.update(scans(query.root))
    return needed


@dataclass(slots=True)
class _Split:
    """The program so far.

    Attributes:
        lftas: its LFTAs.
        nodes: its HFTA nodes.
        inputs: what a reader of a query reads, by the name of the query.
        streams: the LFTAs that joins share.
        parts: the sides of joins that are nodes of their own, for sides that are equal.
        read: the queries that other queries read.
        ordered: the results whose order is not left to delivery.
        windows: how windows are computed.
        slices: the windows whose slices LFTAs fold, each with the slices of its class.
    """

    lftas: list[Lfta] = field(default_factory=list)
    nodes: list[HftaNode] = field(default_factory=list)
    inputs: dict[str, Input] = field(default_factory=dict)
    streams: SharedStreams = field(default_factory=SharedStreams)
    parts: dict[Node, Input] = field(default_factory=dict)
    read: Collection[str] = ()
    ordered: Collection[str] = ()
    windows: WindowPlan = WindowPlan.PAIRED
    slices: dict[WindowGroupBy, LowSlices] = field(default_factory=dict)

    def add(self, query: LogicalQuery) -> None:
        if query.order is not None and self._needs_top(query, query.order):
            part = replace(query, name=f"{query.name}.{part_names.ROWS}", order=None)
            self.add(part)
            self.nodes.append(
                TopNode(query.name, self.inputs[part.name], query.order, query.schema)
            )
            self.inputs[query.name] = QueryInput(query.name)
            return
        layers = take_apart(query.root)
        match layers.leaf:
            case Scan():
                self._over_packets(query, layers, layers.leaf)
            case QueryScan():
                self._over_stream(query, layers, self.inputs[layers.leaf.query])
            case Merge():
                merged = self._merge(query, layers, layers.leaf)
                if merged is not None:
                    self._over_stream(query, layers, merged)
            case Join() | WatchlistJoin():
                joined = self._join(query, layers, layers.leaf)
                if joined is not None:
                    self._over_stream(query, layers, joined)
            case GroupBy() | RunningGroupBy() | WindowGroupBy() | SampleGroupBy():
                self._over_stream(query, layers, self._groups(query, layers.leaf))
            case _:
                assert_never(layers.leaf)
        self.inputs.setdefault(query.name, QueryInput(query.name))

    def _needs_top(self, query: LogicalQuery, order: Order) -> bool:
        """Return whether an operator of its own orders and limits the rows of ``query``."""
        is_read = query.name in self.read and order.limit is not None
        if order.is_selection:
            return is_read or (query.name in self.ordered and not order.is_head)
        is_long_lived = isinstance(take_apart(query.root).group, RunningGroupBy | SampleGroupBy)
        return is_long_lived and order.limit is not None

    def _over_packets(self, query: LogicalQuery, layers: Layers, scan: Scan) -> None:
        site, high = self._site(query, layers, scan)
        group = layers.group
        if (
            not site.interfaces
            and isinstance(group, GroupBy)
            and is_global(group.keys, group.epoch)
        ):
            # The group exists even if no interface is read: the end of an input releases it.
            site = replace(
                site, interfaces=scan.interfaces, predicate=Literal(False, GsqlType.BOOL)
            )
        if group is None:
            self._selection(site, layers, high)
            return
        made: tuple[Lfta, HftaNode]
        if isinstance(group, WindowGroupBy):
            slices = self.slices.get(group)
            if slices is not None:
                made = slices.split(site, layers, group)
            else:
                made = ship_rows(site, layers, group, high, self.windows)
        elif isinstance(group, SampleGroupBy):
            made = sample_packets(site, layers, group, high)
        elif not high and can_group_low(group):
            made = group_low(site, layers, group)
        else:
            made = group_rows(site, layers, group, high)
        lfta, node = made
        self.lftas.append(lfta)
        self.nodes.append(node)

    def find_slices(self, queries: Sequence[LogicalQuery]) -> None:
        """Find the windows over packets that LFTAs can fold, and the classes that share one."""
        if self.windows is WindowPlan.SUPERQUERY:
            return
        found: list[tuple[Site, WindowGroupBy]] = []
        for query in queries:
            for node in nodes_of(query.root):
                if not isinstance(node, WindowGroupBy):
                    continue
                layers = take_apart(node)
                if not isinstance(layers.leaf, Scan):
                    continue
                site, high = self._site(query, layers, layers.leaf)
                if not high and can_slice_low(node):
                    found.append((site, node))
        for shared in slice_classes(found, self.windows):
            slices = LowSlices.of(shared)
            self.slices |= dict.fromkeys(shared.members, slices)

    def _site(
        self, query: LogicalQuery, layers: Layers, scan: Scan
    ) -> tuple[Site, tuple[Expression, ...]]:
        """Return the site of the LFTA of a scan, and the predicates that the LFTA cannot test."""
        predicates = [*conjuncts(scan.membership), *conjuncts(layers.predicate)]
        interfaces, rest = choose_interfaces(scan.interfaces, predicates)
        low = tuple(p for p in rest if is_low(p))
        high = tuple(p for p in rest if not is_low(p))
        return Site(query, scan.protocol, interfaces, conjunction(low)), high

    def _selection(self, site: Site, layers: Layers, high: tuple[Expression, ...]) -> None:
        border = Border()
        predicate = conjunction([border.lift(p) for p in high])
        columns = tuple(
            NamedExpression(c.name, border.lift(c.expression, c.name))
            for c in layers.columns or all_columns(layers.leaf)
        )
        lfta = site.selection(border)
        self.lftas.append(lfta)
        stream = StreamInput(lfta.name)
        query = site.query
        is_plain = predicate is None and all(
            isinstance(c.expression, Column) and c.expression.name == c.name for c in columns
        )
        clock = _clock(lfta)
        if is_plain and len(lfta.interfaces) <= 1:
            self.inputs[query.name] = stream
        elif is_plain and clock is not None:
            self.nodes.append(MergeNode(query.name, (stream,), (clock,), 0, query.schema))
        else:
            self.nodes.append(SelectionNode(query.name, stream, predicate, columns, query.schema))

    def _over_stream(self, query: LogicalQuery, layers: Layers, source: Input) -> None:
        if layers.group is None:
            columns = layers.columns or all_columns(layers.leaf)
            self.nodes.append(
                SelectionNode(query.name, source, layers.predicate, columns, query.schema)
            )
            return
        group = layers.group
        if isinstance(group, WindowGroupBy):
            self.nodes.append(window_stream(query, layers, group, source, self.windows))
            return
        if isinstance(group, SampleGroupBy):
            self.nodes.append(sample_stream(query, layers, group, source))
            return
        self.nodes.append(group_stream(query, layers, group, source))

    def _groups(self, query: LogicalQuery, group: Grouping) -> Input:
        """Return a grouping that is grouped again, as a node of its own."""
        part = replace(
            query,
            name=f"{query.name}.{part_names.GROUPS}",
            root=group,
            schema=group.schema,
            order=None,
        )
        self.add(part)
        return self.inputs[part.name]

    def _merge(self, query: LogicalQuery, layers: Layers, merge: Merge) -> Input | None:
        """Add the node of a merge and return it, or None if it is the whole of the query."""
        inputs = tuple(
            self._merge_input(query, each, number, merge)
            for number, each in enumerate(merge.inputs)
        )
        is_whole = layers.is_leaf_alone
        name = query.name if is_whole else f"{query.name}.{part_names.MERGED}"
        on = (merge.on[0],) * len(inputs)
        self.nodes.append(MergeNode(name, inputs, on, merge.slack, merge.schema))
        return None if is_whole else QueryInput(name)

    def _join(
        self, query: LogicalQuery, layers: Layers, join: Join | WatchlistJoin
    ) -> Input | None:
        """Add the node of a join and return it, or None if it is the whole of the query."""
        inputs = join.inputs if isinstance(join, Join) else (join.input,)
        sides = [self._join_side(query, each, n, join) for n, each in enumerate(inputs)]
        is_whole = layers.group is None and layers.predicate is None
        result = JoinResult(
            query=query.name if is_whole else f"{query.name}.{part_names.JOINED}",
            columns=(layers.columns if is_whole else ()) or all_columns(join),
            schema=query.schema if is_whole else join.schema,
        )
        if isinstance(join, Join):
            self.nodes.append(join_node(result, join, *sides))
        else:
            self.nodes.append(watchlist_join_node(result, join, *sides))
        return None if is_whole else QueryInput(result.query)

    def _join_side(
        self, query: LogicalQuery, node: Node, number: int, join: Join | WatchlistJoin
    ) -> JoinSide:
        """Return one side of a join.

        The side is the stream of an LFTA, the result of a query as it is, or else a node of its
        own.
        """
        layers = take_apart(node)
        part = replace(
            query, name=f"{query.name}.{number + 1}", root=node, schema=node.schema, order=None
        )
        columns = layers.columns or all_columns(layers.leaf)
        if layers.group is None and is_composable(columns, join, number):
            if isinstance(layers.leaf, Scan):
                site, high = self._site(part, layers, layers.leaf)
                return self.streams.side(self.lftas, site, columns, high)
            if isinstance(layers.leaf, QueryScan):
                source = self.inputs[layers.leaf.query]
                return JoinSide(source, layers.predicate, by_name(columns))
        if node not in self.parts:
            self.add(part)
            self.parts[node] = self.inputs[part.name]
        return JoinSide(self.parts[node], None, by_name(all_columns(node)))

    def _merge_input(self, query: LogicalQuery, node: Node, number: int, merge: Merge) -> Input:
        """Return one input of a merge, with its columns renamed to those of the merge."""
        layers = take_apart(node)
        same_names = node.schema.names == merge.schema.names
        if isinstance(layers.leaf, QueryScan) and same_names and layers.is_leaf_alone:
            return self.inputs[layers.leaf.query]
        own = layers.columns or all_columns(node)
        renamed = tuple(
            NamedExpression(name, c.expression)
            for name, c in zip(merge.schema.names, own, strict=True)
        )
        part = replace(query, name=f"{query.name}.{number + 1}", schema=merge.schema, order=None)
        layers = replace(layers, columns=renamed)
        if isinstance(layers.leaf, Scan):
            self._over_packets(part, layers, layers.leaf)
        else:
            assert isinstance(layers.leaf, QueryScan)
            self._over_stream(part, layers, self.inputs[layers.leaf.query])
        return self.inputs.setdefault(part.name, QueryInput(part.name))


def _clock(lfta: Lfta) -> str | None:
    """Return the column to merge the interfaces of a selection on.

    None if no column goes on without traffic on each of them.
    """
    increasing = (
        named.name
        for named in lfta.columns
        if lfta.schema[named.name].ordering.direction is Direction.INCREASING
        and not declarations([named.expression])
    )
    return next(increasing, None)
