"""A compiled query set: LFTAs for the capture daemon, HFTA nodes for the HFTA job.

A program is plain frozen data; the daemon and the job both get the whole of it.

Streams: the LFTA called ``flow`` on the interface ``main1`` writes the stream ``flow@main1``; it
has the LFTA's schema plus, when ``has_interface_column`` is set, the constant STRING column
``interface``, and when ``has_rate_column`` is set, ``RATE_COLUMN``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.protocols import FLOW_FIELD
from gscope.queries.expressions.expressions import (
    Column,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.logical import Interval, first_side
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.catalog.aggregate.partial_op import PartialOp
    from gscope.queries.catalog.user_functions.files import UserFile
    from gscope.queries.expressions.expressions import Call, Expression, Value
    from gscope.queries.gsql.nodes import JoinKind
    from gscope.queries.plan.logical import Watchlist
    from gscope.queries.plan.program_partitioning import Partitioning, StreamPartitioning
    from gscope.queries.plan.program_sampling import LeafSampling, SamplingComponent
    from gscope.queries.plan.row_order import Order
    from gscope.queries.plan.sampling_operator import PreSample


@dataclass(frozen=True, slots=True)
class Partial:
    """One partial aggregate of an LFTA: a column ``name`` of its stream.

    Attributes:
        name: the column.
        op: how values are folded.
        argument: the expression whose values are folded; None for a count of tuples.
        type: the type of the column.
        is_nullable: whether a group may have no value.
    """

    name: str
    op: PartialOp
    argument: Expression | None
    type: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class Lfta:
    """A low-level query; it runs beside the packets of each of its interfaces.

    Expressions contain ``PacketField`` and ``Literal`` leaves and LFTA-safe functions only.

    Attributes:
        name: unique in the program, a valid file name.
        query: the query that it serves.
        protocol: the protocol that it reads, for display.
        interfaces: the names of the interfaces it is attached to.
        predicate: protocol membership and the LFTA-safe part of WHERE; None passes all packets. A
            NULL predicate rejects the packet.
        keys: the group-by terms in order; () for a selection.
        epoch: the name of the key that closes groups; None for a selection.
        partials: the partial aggregates; () for a selection.
        columns: the output expressions of a selection; () for an aggregation.
        schema: the columns of its output: keys then partials, or ``columns``.
        has_interface_column: whether its streams have the constant column ``interface`` as well.
        has_rate_column: whether each row states the rate at which its packets were sampled: no row
            is of packets that were sampled at different rates.
        declared: the orders declared of a selection's columns (``increasing(x)`` …): a packet that
            breaks one of them is left out and counted.
        sampling: which packets it keeps; None for all of them.
        partitioning: what divides the rows of its streams; None if nothing does.
        pre_sample: which tuples of a selection it leaves out because all of its readers, which are
            sampling operators, would reject them; None for none.
        answers: the digest of the operators whose answers its streams have, each stream those of
            one host; None for rows of packets. Then ``columns`` has the temporal columns only, over
            packet fields, as far as packets determine them.
    """

    name: str
    query: str
    protocol: str
    interfaces: tuple[str, ...]
    predicate: Expression | None
    keys: tuple[NamedExpression, ...]
    epoch: str | None
    partials: tuple[Partial, ...]
    columns: tuple[NamedExpression, ...]
    schema: Schema
    has_interface_column: bool = False
    has_rate_column: bool = False
    declared: tuple[Call, ...] = ()
    sampling: LeafSampling | None = None
    partitioning: StreamPartitioning | None = None
    pre_sample: PreSample | None = None
    answers: str | None = None

    @property
    def is_aggregation(self) -> bool:
        """Whether it groups; otherwise it selects."""
        return self.epoch is not None

    @property
    def reads_flows(self) -> bool:
        """Whether it reads flow records, otherwise packets."""
        parts = () if self.predicate is None else walk(self.predicate)
        return any(isinstance(p, PacketField) and p.name.startswith(FLOW_FIELD) for p in parts)

    @property
    def stream_schema(self) -> Schema:
        """The schema of its streams: ``schema``, and ``interface`` and the rate if it has them."""
        added = []
        if self.has_interface_column:
            added.append(ColumnSchema("interface", GsqlType.STRING))
        if self.has_rate_column:
            added.append(ColumnSchema(RATE_COLUMN, GsqlType.FLOAT))
        return Schema((*self.schema.columns, *added)) if added else self.schema

    def stream(self, interface: str) -> str:
        """Return the name of the stream that it writes for ``interface``."""
        return f"{self.name}@{interface}"

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of all its interfaces."""
        return tuple(self.stream(interface) for interface in self.interfaces)


@dataclass(frozen=True, slots=True)
class StreamInput:
    """An input of an HFTA node: the streams of an LFTA, of all its interfaces together."""

    lfta: str


@dataclass(frozen=True, slots=True)
class QueryInput:
    """An input of an HFTA node: the result of another query."""

    query: str


Input = StreamInput | QueryInput


@dataclass(frozen=True, slots=True)
class Aggregate:
    """One aggregate of an aggregation, under the column name that HAVING and outputs use.

    Attributes:
        name: the column that it fills.
        function: its entry in ``catalog/aggregates.py``.
        arguments: expressions over the node's input columns. From an LFTA there are none, except
            for aggregates whose argument joined the low-level key (count_distinct, count_dups): a
            ``Column``.
        partials: the LFTA's partial columns that it combines, in the order its entry lists; () if
            the node aggregates plain rows.
        type: the type of the result.
        is_nullable: whether the result may be NULL.
        is_bounded: whether values are so small that no sum of them exceeds 64 bits; see
            ``catalog/aggregate/halves.py``.
    """

    name: str
    function: str
    arguments: tuple[Expression, ...]
    partials: tuple[str, ...]
    type: GsqlType
    is_nullable: bool
    is_bounded: bool = False

    @property
    def can_wrap(self) -> bool:
        """Whether the result is a sum that may exceed 64 bits."""
        is_sum = self.function in ("sum", "sum_distinct") and self.type is GsqlType.INT
        return is_sum and not self.is_bounded


@dataclass(frozen=True, slots=True)
class SelectionNode:
    """WHERE and SELECT over one input, with expressions over the input's columns."""

    query: str
    input: Input
    predicate: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class AggregationNode:
    """GROUP BY over one input, released by whole epochs.

    Attributes:
        predicate: the condition over input columns, before grouping; None from an LFTA unless part
            of WHERE is not LFTA-safe.
        keys: the group-by terms, over input columns.
        epoch: the name of the temporal key; a group with epoch e closes when the watermark of that
            key passes e.
        aggregates: see ``Aggregate``.
        having: the condition over the columns of keys and aggregates.
        columns: the output, over the columns of keys and aggregates.
        top: the order whose first rows of each epoch are kept; None to keep all.
    """

    query: str
    input: Input
    predicate: Expression | None
    keys: tuple[NamedExpression, ...]
    epoch: str
    aggregates: tuple[Aggregate, ...]
    having: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema
    top: Order | None = None

    @property
    def epoch_expression(self) -> Expression:
        """The temporal key, over input columns; a constant where the whole input is the epoch."""
        return next(key.expression for key in self.keys if key.name == self.epoch)


@dataclass(frozen=True, slots=True)
class MergeNode:
    """MERGE: the union of inputs, ordered on a temporal column at the same position in each.

    Attributes:
        on: for each input the name of the column it is ordered on.
        slack: by how much a tuple may be behind and still be on time, in the unit of the column.
    """

    query: str
    inputs: tuple[Input, ...]
    on: tuple[str, ...]
    slack: int
    schema: Schema


@dataclass(frozen=True, slots=True)
class RunningAggregate:
    """One aggregate of a running node that keeps state from epoch to epoch.

    Attributes:
        name: the column that it fills.
        function: its entry in ``catalog/running.py``.
        inputs: the columns of ``RunningNode.aggregates`` that it reads, in the order its entry
            lists.
        constants: its constant arguments, in the order its entry lists.
        type: the type of the result.
        is_nullable: whether the result may be NULL.
    """

    name: str
    function: str
    inputs: tuple[str, ...]
    constants: tuple[Value, ...]
    type: GsqlType
    is_nullable: bool


@dataclass(frozen=True, slots=True)
class RunningNode:
    """GROUP BY … CLOSING_WHEN over one input: groups that live across epochs.

    The rows of an epoch are aggregated as those of an ``AggregationNode``; the results are then
    folded over the epochs. The keys other than the epoch identify a group.

    Attributes:
        predicate, keys, epoch: as of an ``AggregationNode``.
        aggregates: the aggregates of each epoch alone: the plain ones, and those that ``running``
            reads.
        running: the aggregates with state, over ``aggregates``.
        closing: the condition over the columns of keys and aggregates, tested after the row at an
            epoch's end.
        having: the condition over the columns of keys and aggregates that filters rows; it does not
            end groups.
        columns: the output, over the columns of keys and aggregates.
    """

    query: str
    input: Input
    predicate: Expression | None
    keys: tuple[NamedExpression, ...]
    epoch: str
    aggregates: tuple[Aggregate, ...]
    running: tuple[RunningAggregate, ...]
    closing: Expression
    having: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class JoinNode:
    """A join of two inputs, released by whole epochs of both.

    Expressions over one side read ``Column`` with ``input`` 0 (left) or 1 (right).

    Attributes:
        kind: INNER, LEFT_OUTER, RIGHT_OUTER or OUTER.
        predicates: for each side the condition that filters its rows before the join, or None.
        epochs: the temporal expression of each side; those of a pair are equal, or within
            ``interval``. A row leaves the join when the watermark, the minimum of both, passes it.
        keys: further pairs of expressions, left and right, that must be equal.
        residual: the other conditions on a pair; a pair that fails them does not match.
        columns: the output over both sides; the columns of a missing side are NULL.
        interval: by how much the epochs of a pair may differ, a consequence of the residual; None
            if they must be equal.
    """

    query: str
    kind: JoinKind
    inputs: tuple[Input, Input]
    predicates: tuple[Expression | None, Expression | None]
    epochs: tuple[Expression, Expression]
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema
    interval: Interval | None = None

    @property
    def interval_from_first(self) -> Interval:
        """The interval of second epoch - first epoch in an interval join; see ``first_side``."""
        assert self.interval is not None
        if first_side(self.kind) == 0:
            return self.interval
        return Interval(-self.interval.most, -self.interval.least)


@dataclass(frozen=True, slots=True)
class WatchlistJoinNode:
    """Rows of one input, each with every row of a table that matches it.

    Rows pass in the order in which they arrive. Expressions over both sides read ``Column`` with
    ``input`` 0 (the input) or 1 (the table).

    Attributes:
        predicate: the condition that filters rows of the input before the join; None for all.
        watchlist: the table; its file is read again when it changes.
        keys: pairs of expressions, of the input and of the table, that must be equal.
        residual: the other conditions, over both sides.
        columns: the output over both sides.
    """

    query: str
    input: Input
    predicate: Expression | None
    watchlist: Watchlist
    keys: tuple[tuple[Expression, Expression], ...]
    residual: Expression | None
    columns: tuple[NamedExpression, ...]
    schema: Schema


@dataclass(frozen=True, slots=True)
class TopNode:
    """ORDER BY … LIMIT over one input, released by whole epochs.

    The LIMIT of an aggregation is part of its own node (``AggregationNode.top``).

    Attributes:
        order: the order of the rows, and how many of each epoch are kept.
        schema: the columns, those of the input.
    """

    query: str
    input: Input
    order: Order
    schema: Schema

    @property
    def columns(self) -> tuple[NamedExpression, ...]:
        """The output, which is the input's."""
        return tuple(
            NamedExpression(c.name, Column(c.name, c.type, c.is_nullable))
            for c in self.schema.columns
        )

    @property
    def epoch_expression(self) -> Expression:
        """The epoch, over input columns; a constant where the whole input is the epoch."""
        if self.order.epoch is None:
            return Literal(0, GsqlType.INT)
        column = self.schema[self.order.epoch]
        return Column(column.name, column.type, column.is_nullable)


HftaNode = (
    SelectionNode
    | AggregationNode
    | RunningNode
    | WindowNode
    | SampleNode
    | MergeNode
    | JoinNode
    | WatchlistJoinNode
    | TopNode
)


def node_inputs(node: HftaNode) -> tuple[Input, ...]:
    """Return the inputs of a node, in the order in which it refers to them."""
    return node.inputs if isinstance(node, MergeNode | JoinNode) else (node.input,)


@dataclass(frozen=True, slots=True)
class Program:
    """A compiled query set.

    Attributes:
        interfaces: the names of all interfaces, in order.
        lftas: all low-level queries.
        nodes: all HFTA nodes, inputs before those that read them; at most one for each query.
        results: the queries whose rows are delivered, each with the source of the rows: a
            ``QueryInput`` (an HFTA node) or a ``StreamInput`` (an LFTA whose output is the answer).
        schemas: the output schema of every query, by name.
        user_files: the user code that queries may call; a process that runs the program installs it
            first.
        orders: the orders of results whose queries have ORDER BY or LIMIT, by name. Nodes have kept
            the first rows of each epoch already, except those of a selection
            (``Order.is_selection``), which delivery chooses unless its source is a ``TopNode``.
        saved_packets: the queries that save their packets, by their own text, each with the file.
        sampling: the components that are sampled: every LFTA belongs to one at most.
        partitioning: how rows are divided into partitions; None if they are not, and then that of
            no LFTA is given.
        lookups: the files in which functions look values up, each with the name of its lookup.
        served: what another host reads of this one: LFTAs of the program, and streams of answers to
            its results. None if the other host reads all LFTAs, or there is none.
    """

    interfaces: tuple[str, ...]
    lftas: tuple[Lfta, ...]
    nodes: tuple[HftaNode, ...]
    results: tuple[tuple[str, Input], ...]
    schemas: tuple[tuple[str, Schema], ...]
    user_files: tuple[UserFile, ...] = ()
    orders: tuple[tuple[str, Order], ...] = ()
    saved_packets: tuple[tuple[str, str], ...] = ()
    sampling: tuple[SamplingComponent, ...] = ()
    partitioning: Partitioning | None = None
    served: tuple[Lfta, ...] | None = None
    lookups: tuple[tuple[str, str], ...] = ()

    @property
    def answers(self) -> tuple[Lfta, ...]:
        """The streams of answers that another host reads of this one."""
        return tuple(each for each in self.served or () if each.answers is not None)

    @property
    def needs_spark(self) -> bool:
        """Whether an HFTA job has work to do."""
        return bool(self.nodes)

    def lfta(self, name: str) -> Lfta:
        """Return the LFTA called ``name``."""
        return next(lfta for lfta in self.lftas if lfta.name == name)

    def node(self, query: str) -> HftaNode:
        """Return the HFTA node of ``query``."""
        return next(node for node in self.nodes if node.query == query)

    def component(self, lfta: str) -> SamplingComponent | None:
        """Return the component of the LFTA called ``lfta``; None if it is not sampled."""
        return next((each for each in self.sampling if lfta in each.lftas), None)

    def order(self, query: str) -> Order | None:
        """Return ORDER BY and LIMIT of the result ``query``; None if it has neither."""
        return dict(self.orders).get(query)

    def input_schema(self, source: Input) -> Schema:
        """Return the schema of the rows that an input of an HFTA node delivers."""
        if isinstance(source, StreamInput):
            return self.lfta(source.lfta).stream_schema
        return self.schema(source.query)

    def schema(self, query: str) -> Schema:
        """Return the output schema of ``query``, or of the HFTA node that is a part of a query."""
        for name, schema in self.schemas:
            if name == query:
                return schema
        return next(node.schema for node in self.nodes if node.query == query)
