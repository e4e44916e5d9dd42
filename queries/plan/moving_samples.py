"""Which samples may follow the load, and how rows above a threshold are found in streams.

A threshold that falls in the middle of an epoch leaves groups in the stream that lack packets. The
job has to find them, so that the answer of every node is the full answer filtered by one threshold
for each of its epochs::

    answer(epoch) = { row of the full answer | H(terms of the row) <= T(epoch) }
    T(epoch)      = the least threshold of all streams below the node, over all times of the epoch

The hash of a row is computed again from its columns: the keys of a group determine the terms by
which its packets were chosen, so streams need no column for it. A component whose rows cannot be
found so keeps every packet while the load decides; ``moving_samples`` returns why. A fixed rate
has none of these limits.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Column, Literal, PacketField, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    QueryInput,
    SelectionNode,
    StreamInput,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.sampling import SamplingMethod
from gscope.queries.plan.trees import by_name, map_expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import HftaNode, Input, Lfta, Program
    from gscope.queries.plan.sampling import SamplingComponent

TIME_FIELDS = frozenset({"time", "timestamp", "time_ns"})
"""The packet fields that are functions of a packet's time."""


@dataclass(frozen=True, slots=True)
class TrimmedSide:
    """A side of a node that reads streams of a sample whose threshold moves.

    Attributes:
        streams: the streams.
        clock: the side's epoch over the time of packets.
        epoch: the side's epoch over the columns of the streams.
        terms: the terms of the hash over the columns of the streams.
    """

    streams: tuple[str, ...]
    clock: Expression
    epoch: Expression
    terms: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class MovingSample:
    """A component whose threshold may follow the load.

    Attributes:
        lftas: its LFTAs that sample.
        min_rate: the least rate that its queries allow.
        sides: for each node that reads streams, by name, its sides; None for one that needs no
            trimming.
    """

    lftas: tuple[str, ...]
    min_rate: float
    sides: Mapping[str, tuple[TrimmedSide | None, ...]]


class CannotMove(Exception):  # a reason, caught here
    """Why a component keeps every packet while the load decides."""


def moving_samples(program: Program) -> tuple[tuple[MovingSample, ...], dict[str, str]]:
    """Return the components that may follow the load, and why others keep every packet.

    Reasons are phrases, by the names of the LFTAs, joined by commas.
    """
    samples, reasons = [], {}
    for component in program.sampling:
        try:
            samples.append(_Component(program, component).sample())
        except CannotMove as reason:
            reasons[", ".join(component.lftas)] = str(reason)
    return tuple(samples), reasons


class _Component:
    def __init__(self, program: Program, component: SamplingComponent) -> None:
        self._program = program
        self._component = component
        names = {node.query for node in component.nodes}
        self._nodes = {node.query: node for node in program.nodes if node.query in names}
        self._clocks: dict[str, Expression] = {}

    def sample(self) -> MovingSample:
        lftas = [self._program.lfta(name) for name in self._component.lftas]
        sampled = tuple(lfta.name for lfta in lftas if lfta.sampling is not None)
        for node in self._component.nodes:
            if node.scaled or not node.is_whole:
                message = f"{node.query} estimates: its rates may not change within an epoch"
                raise CannotMove(message)
        methods = {lfta.sampling.method for lfta in lftas if lfta.sampling is not None}
        if methods == {SamplingMethod.TUPLES}:
            return self._alone(sampled)
        if SamplingMethod.TUPLES in methods or len(sampled) < len(lftas):
            message = "its LFTAs are sampled in different ways"
            raise CannotMove(message)
        sides = {query: self._sides(node) for query, node in self._nodes.items()}
        for lfta in lftas:
            if not self._is_read(lfta):
                message = f"the rows of {lfta.query} are answered as they arrive"
                raise CannotMove(message)
        return MovingSample(sampled, self._component.min_rate, sides)

    def _alone(self, sampled: tuple[str, ...]) -> MovingSample:
        """Return the sample of packets that are answered one by one: nothing is ever trimmed."""
        for node in self._nodes.values():
            if not isinstance(node, SelectionNode):
                message = f"{node.query} does not answer packet by packet"
                raise CannotMove(message)
        return MovingSample(sampled, self._component.min_rate, {})

    def _is_read(self, lfta: Lfta) -> bool:
        """Return whether nodes alone read the streams of an LFTA."""
        is_result = any(source == StreamInput(lfta.name) for _, source in self._program.results)
        return not is_result

    def _sides(self, node: HftaNode) -> tuple[TrimmedSide | None, ...]:
        """Return what has to be trimmed at the sides of a node.

        Rows of other nodes were trimmed by these, by the same threshold: their epochs are the same,
        and so are the streams below.
        """
        sources = node_inputs(node)
        if isinstance(node, SelectionNode) and isinstance(node.input, QueryInput):
            self._clocks[node.query] = self._clocks[node.input.query]
            return (None,)
        if isinstance(node, JoinNode) and node.interval is not None:
            message = f"{node.query} joins rows of different epochs"
            raise CannotMove(message)
        epochs = _epochs(node)
        clocks = [self._clock(node, e, s) for e, s in zip(epochs, sources, strict=True)]
        self._clocks[node.query] = clocks[0]
        streams = [self._streams_below(source) for source in sources]
        together = set().union(*streams)
        sides: list[TrimmedSide | None] = []
        for epoch, clock, source, below in zip(epochs, clocks, sources, streams, strict=True):
            if isinstance(source, QueryInput):
                is_same = clock == self._clocks[source.query] and set(below) == together
                if not is_same or len(set(clocks)) > 1:
                    message = f"{node.query} reads {source.query} in other epochs, or with others"
                    raise CannotMove(message)
                sides.append(None)
            else:
                lfta = self._program.lfta(source.lfta)
                sides.append(TrimmedSide(lfta.streams, clock, epoch, _terms(lfta)))
        return tuple(sides)

    def _clock(self, node: HftaNode, epoch: Expression, source: Input) -> Expression:
        """Return the epoch of a side over the time of packets."""
        columns = self._columns(source)

        def known(part: Expression) -> Expression:
            return columns.get(part.name, part) if isinstance(part, Column) else part

        clock = map_expression(epoch, known)
        for part in walk(clock):
            is_time = isinstance(part, PacketField) and part.name in TIME_FIELDS
            if not is_time and not isinstance(part, Literal | Call):
                message = f"the epochs of {node.query} do not follow from the time of packets"
                raise CannotMove(message)
        return clock

    def _columns(self, source: Input) -> dict[str, Expression]:
        """Return the columns of an input over packet fields."""
        if isinstance(source, StreamInput):
            return _computed(self._program.lfta(source.lfta))
        node = self._nodes[source.query]
        if isinstance(node, MergeNode):
            message = f"{node.query} does not work epoch by epoch"
            raise CannotMove(message)
        below = [self._columns(each) for each in node_inputs(node)]

        def over(expression: Expression, inputs: Sequence[dict[str, Expression]]) -> Expression:
            def known(part: Expression) -> Expression:
                if not isinstance(part, Column):
                    return part
                return inputs[part.input].get(part.name, part)

            return map_expression(expression, known)

        if isinstance(node, AggregationNode):
            below = [{key.name: over(key.expression, below) for key in node.keys}]
        return {column.name: over(column.expression, below) for column in node.columns}

    def _streams_below(self, source: Input) -> tuple[str, ...]:
        if isinstance(source, StreamInput):
            return self._program.lfta(source.lfta).streams
        below = (self._streams_below(each) for each in node_inputs(self._nodes[source.query]))
        return tuple(sorted({stream for streams in below for stream in streams}))


def _epochs(node: HftaNode) -> tuple[Expression, ...]:
    match node:
        case AggregationNode() | TopNode():
            return (node.epoch_expression,)
        case JoinNode():
            return node.epochs
    message = f"{node.query} does not work epoch by epoch"
    raise CannotMove(message)


def _computed(lfta: Lfta) -> dict[str, Expression]:
    """Return the columns of an LFTA's streams that are functions of a packet."""
    return by_name((*lfta.keys, *lfta.columns))


def _terms(lfta: Lfta) -> tuple[Expression, ...]:
    """Return the terms of an LFTA's hash over the columns of its streams."""
    assert lfta.sampling is not None
    named = (*lfta.keys, *lfta.columns)
    return tuple(_over_columns(term, named, lfta) for term in lfta.sampling.terms)


def _over_columns(term: Expression, named: Sequence[NamedExpression], lfta: Lfta) -> Expression:
    for each in named:
        if each.expression == term and term.type is not GsqlType.STRING:
            return Column(each.name, term.type, term.is_nullable)
    if isinstance(term, Literal):
        return term
    if isinstance(term, Call):
        arguments = tuple(_over_columns(part, named, lfta) for part in term.arguments)
        return Call(term.function, arguments, term.type, term.is_nullable)
    message = f"the rows of {lfta.query} do not show which packets they are of"
    raise CannotMove(message)
