"""Chains of HFTA nodes that run in partitions, and which nodes cannot.

A node is compatible with a way to divide rows if each of its rows depends on rows of one partition.
Nodes that read each other and are compatible with one way form a *chain*: a task computes all of
them from the rows of some partitions.

    flows        GROUP BY tb, srcIP, destIP over the stream    partitioned by srcIP
    heavy_flows  GROUP BY tb, srcIP over flows                 partitioned by srcIP
    flow_pairs   heavy_flows S1, heavy_flows S2                partitioned by srcIP
                 WHERE S1.srcIP = S2.srcIP and S1.tb = S2.tb+1
    hosts        count(*) GROUP BY tb over heavy_flows         sub/super

From the streams up, a node joins the chains that it reads if something is left that all of their
nodes may be divided by (``dividers.py``), and if the streams are labelled with partitions, these
suit it too. Otherwise it ends the chain: a grouping whose folds
can be folded again is split into a *sub* node, which each partition runs (WHERE, partial groups),
and a *super* node, which merges their rows (HAVING, columns). Every other node is *central*, and so
is what reads central rows.

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008), §5.
"""

from __future__ import annotations

from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING

from gscope.queries.catalog.aggregate.moments import MOMENTS_BY_NAME
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.partitioning.dividers import (
    Lineage,
    dividers_of,
    joined,
    labels_of,
    lineage_of,
    over_columns,
    stream_lineage,
)
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    QueryInput,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
    node_inputs,
)
from gscope.queries.plan.show_expressions import show
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.partitioning.divider import Divider
    from gscope.queries.plan.partitioning.dividers import Members
    from gscope.queries.plan.program import HftaNode, Program


class RunsAs(Enum):
    """How a node runs where rows are divided into partitions."""

    PARTITIONED = "partitioned"
    SPLIT = "sub/super"
    CENTRAL = "central"


@dataclass(frozen=True, slots=True)
class Sub:
    """A split node whose sub node a chain runs.

    Attributes:
        query: the node.
        has_whole_groups: whether all rows of a group are in one partition, so that the super node
            has only to choose the first rows.
    """

    query: str
    has_whole_groups: bool


@dataclass(frozen=True, slots=True)
class Chain:
    """Nodes that a task computes from the rows of some partitions.

    Attributes:
        queries: the nodes, inputs before those that read them.
        of_streams: for each LFTA that they read, what divides the rows of its streams; the members
            of all LFTAs correspond. None if rows may be divided in any way.
        of_queries: the same members, over the columns of nodes where these determine them.
        subs: the sub nodes that the chain runs.
        is_labelled: whether the streams' own partitioning divides rows so.
    """

    queries: tuple[str, ...]
    of_streams: Mapping[str, Members] | None
    of_queries: Mapping[str, Members] = field(default_factory=dict)
    subs: tuple[Sub, ...] = ()
    is_labelled: bool = False


@dataclass(frozen=True, slots=True)
class Placed:
    """How one node runs, and why.

    Attributes:
        query: the node.
        runs_as: its class.
        reason: the columns that divide its rows, or what prevents that.
        chain: the number of the chain that runs the node, or its sub node; None for a central one.
    """

    query: str
    runs_as: RunsAs
    reason: str
    chain: int | None

    def __str__(self) -> str:
        if self.runs_as is RunsAs.PARTITIONED:
            return f"{self.runs_as.value} by ({self.reason})"
        return f"{self.runs_as.value}: {self.reason}"


@dataclass(frozen=True, slots=True)
class PartitionedPlan:
    """How the nodes of a program run in partitions: one entry for each, in their order."""

    placed: tuple[Placed, ...]
    chains: tuple[Chain, ...]


def partitioned_plan(
    program: Program,
    can_run: Callable[[HftaNode], bool] = lambda _: True,
) -> PartitionedPlan:
    """Return how the nodes of ``program`` run in partitions.

    Args:
        program: the program.
        can_run: whether partitions can run a node at all; a node that they cannot run is central.
    """
    return _Planner(program, can_run).planned()


@dataclass(slots=True, eq=False)
class _Growing:
    """A chain of nodes so far; ``dividers`` is None if they may be divided in any way."""

    streams: frozenset[str]
    dividers: list[Divider] | None = None
    queries: list[str] = field(default_factory=list)
    subs: list[Sub] = field(default_factory=list)


class _Planner:
    def __init__(self, program: Program, can_run: Callable[[HftaNode], bool]) -> None:
        self._program = program
        self._can_run = can_run
        self._lineages: dict[str, Lineage] = {}
        self._chains: dict[str, _Growing] = {}
        self._placed: dict[str, tuple[RunsAs, str, _Growing | None]] = {}

    def planned(self) -> PartitionedPlan:
        for node in self._program.nodes:
            self._placed[node.query] = self._place(node)
        growing = list(dict.fromkeys(c for *_, c in self._placed.values() if c is not None))
        placed = []
        for query, (runs_as, reason, chain) in self._placed.items():
            number = None if chain is None else growing.index(chain)
            if runs_as is RunsAs.PARTITIONED and chain is not None:
                reason = self._by(chain)
            placed.append(Placed(query, runs_as, reason, number))
        return PartitionedPlan(tuple(placed), tuple(map(self._finished, growing)))

    def _place(self, node: HftaNode) -> tuple[RunsAs, str, _Growing | None]:
        central = next(
            (
                i.query
                for i in node_inputs(node)
                if isinstance(i, QueryInput) and self._is_central(i)
            ),
            None,
        )
        if central is not None:
            return RunsAs.CENTRAL, f"{central} is not partitioned", None
        reason = _obstacle(node)
        if not self._can_run(node) and (not reason or isinstance(node, AggregationNode)):
            return RunsAs.CENTRAL, "Spark SQL computes it", None
        if reason:
            return RunsAs.CENTRAL, reason, None
        below = list(dict.fromkeys(self._chain_of(each) for each in node_inputs(node)))
        grown = self._grown(node, below)
        if grown is not None and not _has_limit(node):
            grown.queries.append(node.query)
            self._move(grown)
            return RunsAs.PARTITIONED, "", grown
        if grown is not None:
            self._move(grown)
            grown.subs.append(Sub(node.query, has_whole_groups=True))
            return RunsAs.SPLIT, "the first rows are those of all partitions", grown
        (chain, *others) = below
        reason = self._refusal(node, chain)
        if others or not is_splittable(node):
            return RunsAs.CENTRAL, reason, None
        chain.subs.append(Sub(node.query, has_whole_groups=False))
        self._move(chain)
        return RunsAs.SPLIT, reason, chain

    def _refusal(self, node: HftaNode, chain: _Growing) -> str:
        """Return why a node cannot join what it reads."""
        if isinstance(node, JoinNode):
            return "what it equates does not divide its inputs alike"
        if chain.dividers is None:
            return "it has no key that divides rows"
        return f"rows of a group are in several partitions of ({self._by(chain)})"

    def _move(self, chain: _Growing) -> None:
        """Note that the nodes of a chain are in it, which were in those that it has grown from."""
        for query in chain.queries:
            self._chains[query] = chain
        for query in (*chain.queries, *(sub.query for sub in chain.subs)):
            if query in self._placed:
                runs_as, reason, _ = self._placed[query]
                self._placed[query] = (runs_as, reason, chain)

    def _is_central(self, source: QueryInput) -> bool:
        return self._placed[source.query][0] is not RunsAs.PARTITIONED

    def _chain_of(self, source: StreamInput | QueryInput) -> _Growing:
        if isinstance(source, QueryInput):
            return self._chains[source.query]
        return _Growing(frozenset({source.lfta}))

    def _lineage(self, source: StreamInput | QueryInput) -> Lineage:
        if isinstance(source, StreamInput):
            return stream_lineage(self._program.lfta(source.lfta))
        return self._lineages[source.query]

    def _grown(self, node: HftaNode, below: Sequence[_Growing]) -> _Growing | None:
        """Return the chains below with ``node``.

        None if they have nothing left to be divided by.
        """
        inputs = [self._lineage(each) for each in node_inputs(node)]
        self._lineages[node.query] = lineage_of(node, inputs)
        streams = frozenset().union(*(chain.streams for chain in below))
        queries = list(dict.fromkeys(query for chain in below for query in chain.queries))
        subs = [query for chain in below for query in chain.subs]
        candidates = dividers_of(node, inputs)
        if candidates is None:
            # It looks at one row at a time.
            (chain,) = below
            return _Growing(streams, chain.dividers, queries, subs)
        found = joined(candidates, [(chain.streams, chain.dividers) for chain in below])
        if not found or (self._are_labelled(streams) and not self._labels(streams, found)):
            return None
        return _Growing(streams, found, queries, subs)

    def _are_labelled(self, streams: Iterable[str]) -> bool:
        return all(self._program.lfta(stream).partitioning is not None for stream in streams)

    def _labels(self, streams: Iterable[str], dividers: list[Divider]) -> list[Divider] | None:
        return labels_of([self._program.lfta(each) for each in sorted(streams)], dividers)

    def _finished(self, chain: _Growing) -> Chain:
        queries, subs = tuple(chain.queries), tuple(chain.subs)
        if chain.dividers is None:
            return Chain(queries, None, {}, subs)
        streams = sorted(chain.streams)
        labels = self._labels(streams, chain.dividers)
        dividers = chain.dividers if labels is None else labels
        of_queries = {
            query: members
            for query in queries
            if (members := over_columns(dividers, self._lineages[query], self._schema(query)))
        }
        of_streams = {each: tuple(d.member(each) for d in dividers) for each in streams}
        return Chain(queries, of_streams, of_queries, subs, is_labelled=labels is not None)

    def _by(self, chain: _Growing) -> str:
        """Return what divides the rows of a chain, as text over the first of its streams."""
        if chain.dividers is None:
            return "any columns"
        (stream, *_) = sorted(chain.streams)
        labels = self._labels(chain.streams, chain.dividers) or chain.dividers
        shown = []
        for each in labels:
            texts = [show(value) for value in each.member(stream).values]
            shown.append(texts[0] if len(texts) == 1 else f"{{{', '.join(texts)}}}")
        return ", ".join(shown)

    def _schema(self, query: str) -> Schema:
        return self._program.node(query).schema


def is_splittable(node: HftaNode) -> bool:
    """Return whether a sub node in each partition and a super node give the rows of ``node``.

    Sums of FLOAT are defined in ascending order of all values, so they have no partial; quantiles,
    ordered and user aggregates need all rows.
    """
    if isinstance(node, TopNode):
        return True
    return isinstance(node, AggregationNode) and all(
        each.function in _REFOLDED
        and each.type is not GsqlType.FLOAT
        and all(argument.type is not GsqlType.FLOAT for argument in each.arguments)
        for each in node.aggregates
    )


_IN_PARTITIONS = frozenset(
    {"count", "sum", "min", "max", "avg", "count_distinct", "count_dups", *MOMENTS_BY_NAME}
    | {"or_aggr", "and_aggr", "xor_aggr"}
)
"""Aggregates that several tasks compute by partition; of the others one task has all rows."""

_REFOLDED = frozenset(
    {"count", "sum", "min", "max", "count_distinct", "or_aggr", "and_aggr", "xor_aggr"}
)
"""Aggregates that a super node computes from what sub nodes have folded."""


def _obstacle(node: HftaNode) -> str:
    """Return why partitions cannot run ``node``, whatever divides its rows; "" if they can."""
    match node:
        case AggregationNode(aggregates=aggregates):
            others = [each.function for each in aggregates if each.function not in _IN_PARTITIONS]
            return f"one task computes {others[0]}" if others else ""
        case JoinNode() | SelectionNode() | MergeNode() | TopNode():
            return ""
        case WatchlistJoinNode():
            return "its table is read in one place"
    return "it keeps rows of its own from step to step"


def _has_limit(node: HftaNode) -> bool:
    """Return whether a node keeps the first rows of each epoch."""
    return isinstance(node, TopNode) or (isinstance(node, AggregationNode) and node.top is not None)
