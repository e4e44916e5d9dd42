"""Which samples may follow the load, and how rows above a threshold are found.

A threshold that falls in the middle of an epoch leaves groups in the stream that lack packets. The
job has to find them, so that the answer of every node that answers whole epochs is the full answer
filtered by one threshold for each of its epochs::

    answer(epoch) = { row of the full answer | H(terms of the row) <= T(epoch) }
    T(epoch)      = the least threshold of all streams below the node, over all times of the epoch

A row of another node was cut at the threshold of a finer epoch, or of one side of a join alone. It
is cut again by the node that reads it. What lives longer than an epoch of its input (windows,
interval joins, running aggregates) is cut at the least threshold of its life. Selections and merges
pass rows on as they are: packets that are answered one by one are exact, whatever the threshold
was. Counts and sums of whole rows are scaled by the rate of the epoch that counts them, those of
single packets by the rates that their rows state (``row_rates.py``).

The hash of a row is computed again from its columns: the keys of a group determine the terms by
which its packets were chosen, so streams need no column for it. A component whose rows cannot be
found so keeps every packet while the load decides; ``moving_samples`` returns why. A fixed rate
has none of these limits.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING, assert_never

from gscope.queries.catalog.evaluate import call
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan import part_names
from gscope.queries.plan.idle_groups import closing_without_history
from gscope.queries.plan.logical import first_side
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    MergeNode,
    QueryInput,
    RunningNode,
    SelectionNode,
    StreamInput,
    TopNode,
    WatchlistJoinNode,
    node_inputs,
)
from gscope.queries.plan.program_sampling import SamplingMethod
from gscope.queries.plan.sampling.epoch_rates import RateReader, reads_rate
from gscope.queries.plan.sampling.long_groups import LongGroups
from gscope.queries.plan.sampling.row_rates import needs_row_rates, with_component_rates
from gscope.queries.plan.sampling.sampled_rows import (
    CannotMove,
    epoch_key,
    grouped,
    joined,
    life_keys,
    lived,
    passed,
    present_side,
    rewritten,
    rows_of_lfta,
    united,
    window_end,
    window_terms,
    windowed,
)
from gscope.queries.plan.sampling.side_epochs import (
    SAME_EPOCHS,
    WINDOW_CLOCK,
    SameEpochs,
    WindowEpochs,
)
from gscope.queries.plan.sampling.trimmed_sides import TrimmedSide
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.trees import of_input
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import HftaNode, Input, Program
    from gscope.queries.plan.program_sampling import SamplingComponent
    from gscope.queries.plan.sampling.sampled_rows import SampledRows, ThresholdSource, TracedSource

Clocked = tuple[tuple["TracedSource", "Expression"], ...]
"""The sources of a side, each with the side's epoch over the time of packets."""


@dataclass(frozen=True, slots=True)
class MovingSample:
    """A component whose threshold may follow the load.

    Attributes:
        lftas: its LFTAs that sample.
        min_rate: the least rate that its queries allow.
        sides: for each node that answers whole epochs, by name, its sides.
        rates: for each node that reads the column ``sample_rate``, by name, the epochs of these
            rates.
        weighted: the queries whose counts and sums weigh each packet by the rate at which it was
            kept.
    """

    lftas: tuple[str, ...]
    min_rate: float
    sides: Mapping[str, tuple[TrimmedSide, ...]]
    rates: Mapping[str, RateReader] = field(default_factory=dict)
    weighted: frozenset[str] = frozenset()

    @property
    def clocks(self) -> tuple[Expression, ...]:
        """The different epochs of its nodes, over the time of packets."""
        sides = (side for sides in self.sides.values() for side in sides)
        return tuple(dict.fromkeys(clock for side in sides for _, clock in side.clocks))


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
        self._nodes = _nodes_above(program, component.lftas)
        self._rows: dict[str, SampledRows] = {}
        self._sides: dict[str, tuple[TrimmedSide, ...]] = {}
        self._clocks: dict[str, list[Expression | None]] = {}
        self._bases: dict[str, frozenset[object]] = {}
        self._rates: dict[str, RateReader] = {}
        self._sampling = {each.query: each for each in component.nodes}

    def sample(self) -> MovingSample:
        lftas = [self._program.lfta(name) for name in self._component.lftas]
        sampled = tuple(lfta.name for lfta in lftas if lfta.sampling is not None)
        methods = {lfta.sampling.method for lfta in lftas if lfta.sampling is not None}
        is_grouped = methods == {SamplingMethod.GROUPS}
        self._ensure_rates()
        if len(methods) > 1 or len(sampled) < len(lftas):
            message = "its LFTAs are sampled in different ways"
            raise CannotMove(message)
        for node in self._nodes:
            reads_estimates = any(self._of(each).is_estimate for each in node_inputs(node))
            if not (is_grouped or reads_estimates or isinstance(node, _PASSING)):
                message = f"{node.query} does not answer packet by packet"
                raise CannotMove(message)
            known = self._sampling.get(node.query)
            scaled = () if known is None else known.scaled
            is_estimate = (is_grouped or reads_estimates) and self._is_estimate(node, scaled)
            self._add(node)
            if is_estimate:
                rows = replace(self._rows[node.query], terms=None, is_estimate=True)
                self._rows[node.query] = rows
            if reads_rate(node) or scaled:
                self._rates[node.query] = replace(self._rate(node), scaled=scaled)
        weighted = {
            node.query.removesuffix(f".{part_names.GROUPS}")
            for node in self._nodes
            for each in node_inputs(node)
            if isinstance(each, StreamInput) and self._program.lfta(each.lfta).has_rate_column
        }
        return MovingSample(
            sampled, self._component.min_rate, self._sides, self._rates, frozenset(weighted)
        )

    def _ensure_rates(self) -> None:
        """Ensure that rows state the rates of their packets where nothing else shows them."""
        needed = needs_row_rates(self._program, self._component)
        if not needed:
            return
        with_component_rates(self._program, self._component, needed)
        queries = ", ".join(self._program.lfta(name).query for name in needed)
        message = f"{queries}: compiled for a rate that does not change"
        raise CannotMove(message)

    def _add(self, node: HftaNode) -> None:
        """Note the rows that a node gives, and where it cuts those that it reads."""
        inputs = [self._of(source) for source in node_inputs(node)]
        match node:
            case SelectionNode() | WatchlistJoinNode():
                rows = passed(node.query, inputs[0], node.columns)
            case MergeNode():
                names = [self._names(source) for source in node.inputs]
                rows = united(node.query, inputs, names, node.schema.names)
            case AggregationNode() | TopNode():
                (clocks,) = self._cut(node, inputs, (node.epoch_expression,))
                rows = grouped(node, clocks, inputs[0])
            case JoinNode():
                reaches = _join_reaches(node)
                rows = joined(node, self._cut(node, inputs, node.epochs, reaches), inputs)
            case WindowNode():
                self._cut_windows(node, inputs[0])
                rows = windowed(node, inputs[0])
            case RunningNode():
                self._cut_lives(node, inputs[0])
                rows = lived(node, inputs[0])
            case SampleNode():
                message = f"{node.query} does not work epoch by epoch"
                raise CannotMove(message)
            case _:
                assert_never(node)
        self._rows[node.query] = rows

    def _is_estimate(self, node: HftaNode, scaled: Sequence[str]) -> bool:
        """Return whether the rows of a node are estimates, by what it reads or by what it does."""
        below = {self._of(source).is_estimate for source in node_inputs(node)}
        if len(below) > 1 or (scaled and True in below):
            message = f"{node.query} reads estimates beside exact rows, or scales them again"
            raise CannotMove(message)
        known = self._sampling.get(node.query)
        if True not in below and (known is None or known.is_whole):
            return False
        if not isinstance(node, (AggregationNode, TopNode, *_PASSING)):
            message = f"{node.query} estimates over several epochs"
            if isinstance(node, JoinNode):
                message = f"{node.query} joins estimates"
            raise CannotMove(message)
        return True

    def _of(self, source: Input) -> SampledRows:
        if isinstance(source, StreamInput):
            return rows_of_lfta(self._program.lfta(source.lfta))
        return self._rows[source.query]

    def _names(self, source: Input) -> Sequence[str]:
        if isinstance(source, StreamInput):
            return self._program.lfta(source.lfta).stream_schema.names
        return self._program.schema(source.query).names

    def _cut(
        self,
        node: HftaNode,
        inputs: Sequence[SampledRows],
        epochs: Sequence[Expression],
        reaches: Sequence[SameEpochs] = (SAME_EPOCHS,),
    ) -> tuple[Clocked, ...]:
        """Note where a node cuts the rows of its sides; return the sources of each."""
        sources = node_inputs(node)
        clocked = [_clocked(node, rows, epoch) for rows, epoch in zip(inputs, epochs, strict=True)]
        self._clocks[node.query] = [
            clock if reach == SAME_EPOCHS else None
            for clocks, reach in zip(clocked, reaches, strict=True)
            for _, clock in clocks
        ]
        basis: frozenset[object] = frozenset().union(*map(self._basis, clocked))
        if any(reach != SAME_EPOCHS for reach in reaches):
            basis = frozenset({(node.query, basis)})
        self._bases[node.query] = basis
        sides = []
        for source, rows, epoch, clocks, reach in zip(
            sources, inputs, epochs, clocked, reaches, strict=True
        ):
            # Of the rows that an interval join reads several times none has a partner that is cut.
            # Estimates of finer epochs have been scaled by the rates of these, and are added.
            is_cut = reach != SAME_EPOCHS or rows.is_estimate or self._are_cut(clocks, basis)
            terms = () if is_cut else rows.terms
            if terms is None:
                raise _unshown(rows)
            placed = tuple((traced.source, clock) for traced, clock in clocks)
            sides.append(TrimmedSide(placed, epoch, terms, isinstance(source, StreamInput), reach))
        self._sides[node.query] = tuple(sides)
        return tuple(clocked)

    def _cut_windows(self, node: WindowNode, rows: SampledRows) -> None:
        """Note the windows of a node, which leaves out groups of each of them."""
        if node.slices is None:
            message = f"{node.query} keeps rows for its windows instead of slices"
            raise CannotMove(message)
        clocks = _clocked(node, rows, node.epoch_expression)
        terms = window_terms(node, rows)
        if terms is None:
            raise _unshown(rows)
        self._clocks[node.query] = [WINDOW_CLOCK]
        self._bases[node.query] = frozenset({(node.query, self._basis(clocks))})
        placed = tuple((traced.source, clock) for traced, clock in clocks)
        is_logged = isinstance(node.input, StreamInput)
        groups, reach = LongGroups(terms), WindowEpochs(node)
        side = TrimmedSide(placed, node.epoch_expression, (), is_logged, reach, groups)
        self._sides[node.query] = (side,)

    def _cut_lives(self, node: RunningNode, rows: SampledRows) -> None:
        """Note where a node cuts the rows that it reads, and its groups."""
        epoch = next(key.expression for key in node.keys if key.name == node.epoch)
        self._cut(node, (rows,), (epoch,))
        terms = None if rows.terms is None else rewritten(rows.terms, life_keys(node))
        if terms is None:
            raise _unshown(rows)
        closing = closing_without_history(node)
        groups = LongGroups(terms, closing, is_cumulative=closing is None)
        (side,) = self._sides[node.query]
        if groups.is_cumulative and rows.terms is not None:
            # What the input has left out by its own thresholds is not all.
            side = replace(side, terms=rows.terms)
        self._sides[node.query] = (replace(side, groups=groups),)

    def _basis(self, clocks: Clocked) -> frozenset[object]:
        """Return what decides the thresholds of a side, to compare them with those of others."""
        found: set[object] = set()
        for traced, clock in clocks:
            source = traced.source
            if not source.query:
                found |= {(stream, clock) for stream in source.streams}
            elif self._has_epochs(source, clock):
                found |= self._bases[source.query]
            else:
                found.add((source, clock))
        return frozenset(found)

    def _are_cut(self, clocks: Clocked, basis: frozenset[object]) -> bool:
        """Return whether the query that gives a side's rows has cut them at the same thresholds."""
        queries = {traced.source.query for traced, _ in clocks}
        if len(queries) > 1 or "" in queries or self._bases[min(queries)] != basis:
            return False
        return all(self._has_epochs(traced.source, clock) for traced, clock in clocks)

    def _has_epochs(self, source: ThresholdSource, clock: Expression) -> bool:
        """Return whether an epoch is that of the node from which the rows come."""
        return self._clocks[source.query][source.place] == clock

    def _rate(self, node: HftaNode) -> RateReader:
        """Return the epochs whose rates a node reads."""
        match node:
            case AggregationNode():
                return RateReader(node.query, (node.epoch_expression,), epoch_key(node))
            case WindowNode() if not reads_rate(replace(node, having=None, columns=())):
                end = window_end(node)
                return RateReader(node.query, (end,), end)
            case JoinNode(epochs=epochs):
                if node.interval is not None and reads_rate(_second_side(node)):
                    message = f"{node.query} reads sample_rate in a row of another epoch"
                    raise CannotMove(message)
                side = present_side(node.kind)
                above = call("coalesce", *epochs) if side is None else epochs[side]
                return RateReader(node.query, epochs, above)
            case SelectionNode() | WatchlistJoinNode():
                if (epoch := self._of(node.input).epoch) is not None:
                    return RateReader(epoch[0], (epoch[1],), epoch[1])
            case RunningNode():
                message = f"{node.query} reads sample_rate, and its groups live in several epochs"
                raise CannotMove(message)
        message = f"{node.query} reads sample_rate, and its rows are of no epoch"
        raise CannotMove(message)


def _join_reaches(node: JoinNode) -> tuple[SameEpochs, SameEpochs]:
    """Return which epochs of a join the epochs of each of its sides concern.

    The epochs of an interval join are those of its first side.
    """
    if node.interval is None:
        return SAME_EPOCHS, SAME_EPOCHS
    if node.kind is JoinKind.OUTER:
        message = (
            f"{node.query} keeps the rows of both sides that have no partner within an interval"
        )
        raise CannotMove(message)
    interval = node.interval_from_first
    second = SameEpochs(interval.least, interval.most)
    return (SAME_EPOCHS, second) if first_side(node.kind) == 0 else (second, SAME_EPOCHS)


def _second_side(node: JoinNode) -> JoinNode:
    """Return an interval join with the expressions alone that read its second side alone."""
    second = 1 - first_side(node.kind)
    keys = tuple((pair[second], pair[second]) for pair in node.keys)
    predicate = node.predicates[second]
    return replace(node, predicates=(predicate, predicate), keys=keys, residual=None, columns=())


def _unshown(rows: SampledRows) -> CannotMove:
    message = f"the rows of {rows.query} do not show which packets they are of"
    return CannotMove(message)


def _nodes_above(program: Program, lftas: Sequence[str]) -> list[HftaNode]:
    """Return the nodes above some LFTAs, also those that are a part of a query."""
    found: list[HftaNode] = []
    sources: set[Input] = {StreamInput(lfta) for lfta in lftas}
    for node in program.nodes:
        if sources.intersection(node_inputs(node)):
            found.append(node)
            sources.add(QueryInput(node.query))
    return found


def _clocked(node: HftaNode, rows: SampledRows, epoch: Expression) -> Clocked:
    """Return the sources of a side, each with the side's epoch over the time of packets."""
    if not rows.readings:
        message = f"{node.query} reads {rows.query}, whose groups live longer than an epoch"
        raise CannotMove(message)
    for reading in () if epoch.is_nullable else rows.readings:
        clocks = [(traced, traced.clock(of_input(epoch, 0))) for traced in reading]
        found = tuple((traced, clock) for traced, clock in clocks if clock is not None)
        if len(found) == len(clocks):
            return found
    message = f"the epochs of {node.query} do not follow from the time of packets"
    raise CannotMove(message)


_PASSING = (SelectionNode, WatchlistJoinNode, MergeNode)
"""The nodes that pass rows on one by one."""
