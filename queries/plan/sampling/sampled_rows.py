"""The rows that a node reads from a sample: from where, at which times, chosen by what.

A threshold is known for a moment of packet time of a stream, or for an epoch of a node. To say
which thresholds concern a row, its epoch is traced to the time of packets::

    flows:   SELECT tb, srcIP, … FROM TCP GROUP BY time/10 AS tb, srcIP     epoch: time DIV 10
    minutes: SELECT tm, srcIP, … FROM flows GROUP BY tb/6 AS tm, srcIP      epoch: time DIV 10 DIV 6

A node that answers whole epochs has a threshold for each of them, which counts for its readers. A
selection, a merge and a join with a watchlist pass rows on: what counts is what counted before.
"""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.program import AggregationNode, JoinNode, TopNode
from gscope.queries.plan.sampling.side_epochs import WINDOW_CLOCK
from gscope.queries.plan.trees import by_name, map_expression, of_input
from gscope.queries.plan.windows.columns import WINDOW_END, WINDOW_START
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.plan.program import Lfta, RunningNode
    from gscope.queries.plan.window_node import WindowNode

Epoch = tuple[str, "Expression"]
"""A node that answers whole epochs, and the epoch of a row over the columns of that row."""

TIME_FIELDS = frozenset({"time", "timestamp", "time_ns"})
"""The packet fields that are functions of a packet's time."""


class CannotMove(Exception):  # a reason, caught by ``moving_samples``
    """Why a component keeps every packet while the load decides."""


@dataclass(frozen=True, slots=True)
class ThresholdSource:
    """Whose thresholds count: those of streams, or those of the epochs of a node.

    Attributes:
        streams: the streams; () for a node.
        query: the node; "" for streams.
        place: the number of the source of that node, among those of all of its sides, by whose
            times its epochs are placed.
    """

    streams: tuple[str, ...]
    query: str = ""
    place: int = 0


@dataclass(frozen=True, slots=True)
class TracedSource:
    """A source of rows, and the times in them.

    Attributes:
        source: whose thresholds count.
        times: by name, the columns that follow from the time of packets, over packet fields.
    """

    source: ThresholdSource
    times: Mapping[str, Expression]

    def clock(self, epoch: Expression) -> Expression | None:
        """Return an expression over columns as one over packet times; None if it is not one."""
        clock = _over_times(epoch, [self.times])
        return clock if _is_time(clock) else None


@dataclass(frozen=True, slots=True)
class SampledRows:
    """The rows of an input of a node.

    Attributes:
        query: the query that gives them, for messages.
        readings: ways to place a row in time; in each of them, a row is from one of the sources. A
            join has two: its rows have a time at either side. () if no time of a row says which
            thresholds concern it.
        terms: the terms of the hash over the columns; None if these do not determine it.
        epoch: the node whose epochs the rows belong to, and the epoch over the columns; None for
            rows of no epoch.
        is_estimate: whether the rows are estimates, of whose values no threshold leaves any out,
            or state the rate that scales them.
    """

    query: str
    readings: tuple[tuple[TracedSource, ...], ...]
    terms: tuple[Expression, ...] | None
    epoch: Epoch | None = None
    is_estimate: bool = False


def rows_of_lfta(lfta: Lfta) -> SampledRows:
    """Return the rows of an LFTA that samples."""
    assert lfta.sampling is not None
    named = (*lfta.keys, *lfta.columns)
    times = {name: each for name, each in by_name(named).items() if _is_time(each)}
    terms = None if lfta.has_rate_column else rewritten(lfta.sampling.terms, named)
    return SampledRows(
        lfta.query,
        ((TracedSource(ThresholdSource(lfta.streams), times),),),
        terms,
        is_estimate=lfta.has_rate_column,
    )


def passed(query: str, rows: SampledRows, named: Sequence[NamedExpression]) -> SampledRows:
    """Return rows as a node passes them on that computes columns of each."""
    readings = tuple(
        tuple(replace(each, times=_times(named, [each.times])) for each in reading)
        for reading in rows.readings
    )
    terms = None if rows.terms is None else rewritten(rows.terms, named)
    epoch = None
    if rows.epoch is not None and (found := rewritten((rows.epoch[1],), named)) is not None:
        epoch = rows.epoch[0], found[0]
    return SampledRows(query, readings, terms, epoch)


def united(
    query: str, inputs: Sequence[SampledRows], names: Sequence[Sequence[str]], own: Sequence[str]
) -> SampledRows:
    """Return the rows of a merge.

    Args:
        query: the merge.
        inputs: the rows of its inputs.
        names: the columns of each input, in order.
        own: the columns of the merge, in order.
    """
    renamed = [
        passed(
            query, rows, [NamedExpression(o, _any(n)) for o, n in zip(own, theirs, strict=False)]
        )
        for rows, theirs in zip(inputs, names, strict=True)
    ]
    readings = tuple(
        tuple(itertools.chain(*chosen))
        for chosen in itertools.product(*(rows.readings for rows in renamed))
    )
    first, *others = (rows.terms for rows in renamed)
    is_same = first is not None and all(
        each is not None and list(map(_bare, each)) == list(map(_bare, first)) for each in others
    )
    return SampledRows(query, readings, first if is_same else None)


def grouped(
    node: AggregationNode | TopNode,
    clocks: Sequence[tuple[TracedSource, Expression]],
    rows: SampledRows,
) -> SampledRows:
    """Return the rows of a node that answers whole epochs of one input.

    Args:
        node: the node.
        clocks: its sources, each with its epoch over the time of packets.
        rows: the rows that it reads.
    """
    keys = node.keys if isinstance(node, AggregationNode) else node.columns
    sources = tuple(
        TracedSource(
            ThresholdSource((), node.query, place),
            _times(node.columns, [_times(keys, [source.times])]),
        )
        for place, (source, _) in enumerate(clocks)
    )
    kept = None if rows.terms is None else rewritten(rows.terms, keys)
    terms = None if kept is None else rewritten(kept, node.columns)
    return SampledRows(node.query, (sources,), terms, _epoch(node, epoch_key(node)))


def epoch_key(node: AggregationNode | TopNode) -> Expression:
    """Return the epoch over the keys and aggregates of a node."""
    if isinstance(node, TopNode):
        return node.epoch_expression
    key = node.epoch_expression
    return Column(node.epoch, key.type, key.is_nullable)


def _epoch(node: AggregationNode | TopNode | JoinNode, epoch: Expression | None) -> Epoch | None:
    """Return a node and its epoch over its columns; None if they do not show it."""
    found = None if epoch is None else rewritten((epoch,), node.columns)
    return None if found is None else (node.query, found[0])


def windowed(node: WindowNode, rows: SampledRows) -> SampledRows:
    """Return the rows of windows, placed in time at the end of each, given those that it reads."""
    times: dict[str, Expression] = {}
    if node.unit_ns is not None:
        times[WINDOW_END] = WINDOW_CLOCK
        if isinstance(node.window, SlidingWindow):
            length = Literal(node.window.range * node.unit_ns, GsqlType.INT)
            times[WINDOW_START] = call("sub_int", WINDOW_CLOCK, length)
    source = TracedSource(ThresholdSource((), node.query), _times(node.columns, [times]))
    kept = window_terms(node, rows)
    terms = None
    if kept is not None and (found := rewritten(kept, node.keys)) is not None:
        terms = rewritten(found, node.columns)
    shown = rewritten((window_end(node),), node.columns)
    epoch = None if shown is None else (node.query, shown[0])
    return SampledRows(node.query, ((source,),), terms, epoch)


def window_terms(node: WindowNode, rows: SampledRows) -> tuple[Expression, ...] | None:
    """Return the terms over the columns of slices by which windows are grouped."""
    assert node.slices is not None
    grouped_by = {key.expression.name for key in node.keys if isinstance(key.expression, Column)}
    keys = [key for key in node.slices.keys if key.name in grouped_by]
    return None if rows.terms is None else rewritten(rows.terms, keys)


def lived(node: RunningNode, rows: SampledRows) -> SampledRows:
    """Return the rows of groups that live across epochs; no epoch says which of them are there."""
    kept = None if rows.terms is None else rewritten(rows.terms, life_keys(node))
    terms = None if kept is None else rewritten(kept, node.columns)
    return SampledRows(node.query, (), terms)


def life_keys(node: RunningNode) -> tuple[NamedExpression, ...]:
    """Return the keys of a group that lives across epochs."""
    return tuple(key for key in node.keys if key.name != node.epoch)


def window_end(node: WindowNode) -> Column:
    """Return the end of a window over what its columns are computed from."""
    kind = GsqlType.INT if node.unit_ns is None else GsqlType.TIMESTAMP
    return Column(WINDOW_END, kind, is_nullable=False)


def joined(
    node: JoinNode,
    sides: Sequence[Sequence[tuple[TracedSource, Expression]]],
    rows: Sequence[SampledRows],
) -> SampledRows:
    """Return the rows of a join.

    Args:
        node: the join.
        sides: for each side its sources, each with its epoch over the time of packets.
        rows: the rows of each side.
    """
    is_level = node.interval is None and len({clock for side in sides for _, clock in side}) == 1
    readings = []
    place = 0
    for number, side in enumerate(sides):
        reading = []
        # At equal epochs the times of the other side are as good as those of this one.
        others = [source.times for source, _ in sides[1 - number]]
        other = others[0] if is_level and all(each == others[0] for each in others) else {}
        for source, _ in side:
            times = (source.times, other) if number == 0 else (other, source.times)
            own = ThresholdSource((), node.query, place)
            reading.append(TracedSource(own, _times(node.columns, times)))
            place += 1
        readings.append(tuple(reading))
    terms = _joined_terms(node, rows)
    present = present_side(node.kind)
    epoch = None if present is None else node.epochs[present]
    return SampledRows(node.query, tuple(readings), terms, _epoch(node, epoch))


def present_side(kind: JoinKind) -> int | None:
    """Return a side that no row of a join lacks; None if any may be missing."""
    match kind:
        case JoinKind.INNER | JoinKind.LEFT_OUTER:
            return 0
        case JoinKind.RIGHT_OUTER:
            return 1
        case _:
            return None


def _joined_terms(node: JoinNode, rows: Sequence[SampledRows]) -> tuple[Expression, ...] | None:
    """Return the terms of a row of a join, from sides that it does not lack.

    Both sides of a pair have equal values of corresponding terms.
    """
    present = present_side(node.kind)
    sides = (0, 1) if node.kind is JoinKind.INNER else () if present is None else (present,)
    known = {side: terms for side in sides if (terms := rows[side].terms) is not None}

    def shown(place: int) -> Expression | None:
        made = (
            rewritten((of_input(terms[place], side),), node.columns)
            for side, terms in known.items()
        )
        return next((each[0] for each in made if each is not None), None)

    count = max(map(len, known.values()), default=0)
    found = [term for place in range(count) if (term := shown(place)) is not None]
    return tuple(found) if found and len(found) == count else None


def rewritten(
    terms: Sequence[Expression], named: Sequence[NamedExpression]
) -> tuple[Expression, ...] | None:
    """Return expressions over the columns that ``named`` fills; None if one does not follow."""
    known = [(_bare(each.expression), each.name) for each in named]
    made = [_rewritten(term, known) for term in terms]
    if any(each is None for each in made):
        return None
    return tuple(each for each in made if each is not None)


def _rewritten(term: Expression, known: Sequence[tuple[Expression, str]]) -> Expression | None:
    bare = _bare(term)
    for expression, name in known:
        if expression == bare and term.type is not GsqlType.STRING:
            return Column(name, term.type, term.is_nullable)
    if isinstance(term, Literal):
        return term
    if not isinstance(term, Call):
        return None
    arguments = [_rewritten(part, known) for part in term.arguments]
    if any(each is None for each in arguments):
        return None
    return replace(term, arguments=tuple(each for each in arguments if each is not None))


def _bare(expression: Expression) -> Expression:
    """Return an expression to compare, in which columns are names alone."""

    def change(part: Expression) -> Expression:
        if isinstance(part, Column):
            return Column(part.name, GsqlType.NULL, is_nullable=False, input=part.input)
        return replace(part, is_nullable=False) if isinstance(part, Call) else part

    return map_expression(expression, change)


def _any(name: str) -> Column:
    return Column(name, GsqlType.NULL, is_nullable=False)


def _times(
    named: Sequence[NamedExpression], inputs: Sequence[Mapping[str, Expression]]
) -> dict[str, Expression]:
    """Return the columns that follow from the time of packets, given those of the inputs."""
    made = ((each.name, _over_times(each.expression, inputs)) for each in named)
    return {name: expression for name, expression in made if _is_time(expression)}


def _over_times(expression: Expression, inputs: Sequence[Mapping[str, Expression]]) -> Expression:
    def known(part: Expression) -> Expression:
        if not isinstance(part, Column) or part.input >= len(inputs):
            return part
        return inputs[part.input].get(part.name, part)

    return map_expression(expression, known)


def _is_time(expression: Expression) -> bool:
    return all(
        part.name in TIME_FIELDS if isinstance(part, PacketField) else not isinstance(part, Column)
        for part in walk(expression)
    )
