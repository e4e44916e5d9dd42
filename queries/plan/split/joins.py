"""The split of joins: one node that includes both sides, above LFTAs that joins share.

A side that only selects and projects becomes part of the node, which tests its predicate and
computes its columns as far as an LFTA has not done so.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import (
    Column,
    Expression,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import WatchlistJoin
from gscope.queries.plan.program import Input, JoinNode, StreamInput, WatchlistJoinNode
from gscope.queries.plan.split.border import Border
from gscope.queries.plan.trees import (
    conjunction,
    is_null_of_nulls,
    map_expression,
    of_input,
    substitute_all,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.logical import Join
    from gscope.queries.plan.program import Lfta
    from gscope.queries.plan.split.layers import Site

_MISSING = {
    JoinKind.LEFT_OUTER: (1,),
    JoinKind.RIGHT_OUTER: (0,),
    JoinKind.OUTER: (0, 1),
}


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One side of a join, as the node reads it.

    Attributes:
        input: the stream or query that it reads.
        predicate: the condition over the columns of the input, None for all rows.
        columns: the columns of the side by name, over the columns of the input.
    """

    input: Input
    predicate: Expression | None
    columns: Mapping[str, Expression]


@dataclass(slots=True)
class SharedStreams:
    """The LFTAs that ship packets to joins: one for all sides that read the same packets.

    Attributes:
        made: the names of the LFTAs that serve joins alone, which may ship more columns when
            another side needs them.
    """

    made: set[str] = field(default_factory=set)

    def side(
        self,
        lftas: list[Lfta],
        site: Site,
        columns: Sequence[NamedExpression],
        high: Sequence[Expression],
    ) -> JoinSide:
        """Return a side over packets, from an LFTA among ``lftas`` or a new one.

        Args:
            lftas: the LFTAs of the program so far; one is added or widened unless one has all that
                is needed.
            site: the site of an LFTA of this side.
            columns: the columns of the side, over packet fields.
            high: predicates that no LFTA can test.
        """
        own = Border()
        side = _read(site.query.name, own, columns, high)
        alone = site.selection(own)
        for place, lfta in enumerate(lftas):
            if lfta.is_aggregation or _packets(lfta) != _packets(alone):
                continue
            border = Border({c.expression: c.name for c in lfta.columns}, lfta.has_interface_column)
            shared = _read(lfta.name, border, columns, high)
            wider = replace(site.selection(border), name=lfta.name, query=lfta.query)
            if wider == lfta or lfta.name in self.made:
                lftas[place] = wider
                return shared
        lftas.append(alone)
        self.made.add(alone.name)
        return side


def _packets(lfta: Lfta) -> tuple[object, ...]:
    """Return all that determines which packets an LFTA ships; a declared order leaves some out."""
    return lfta.protocol, lfta.interfaces, lfta.predicate, set(lfta.declared)


def _read(
    lfta: str, border: Border, columns: Sequence[NamedExpression], high: Sequence[Expression]
) -> JoinSide:
    predicate = conjunction([border.lift(p) for p in high])
    lifted = {c.name: border.lift(c.expression, c.name) for c in columns}
    return JoinSide(StreamInput(lfta), predicate, lifted)


def is_composable(
    columns: Sequence[NamedExpression], join: Join | WatchlistJoin, number: int
) -> bool:
    """Return whether the join itself may compute the columns of a side.

    Where the side is missing it computes them from NULLs. What an LFTA computes of packets is a
    column of its stream.
    """
    if isinstance(join, WatchlistJoin) or number not in _MISSING.get(join.kind, ()):
        return True
    return all(is_null_of_nulls(_above_border(c.expression)) for c in columns)


@dataclass(frozen=True, slots=True)
class JoinResult:
    """The output of a node of a join: ``columns`` over those of the join."""

    query: str
    columns: Sequence[NamedExpression]
    schema: Schema


def join_node(result: JoinResult, join: Join, left: JoinSide, right: JoinSide) -> JoinNode:
    """Return the node of ``join`` over two sides, which computes the columns of the result."""
    compose = _Composer((left.columns, right.columns))
    one, other = join.epochs
    return JoinNode(
        query=result.query,
        kind=join.kind,
        inputs=(left.input, right.input),
        predicates=(
            left.predicate,
            None if right.predicate is None else of_input(right.predicate, 1),
        ),
        epochs=(compose(one), compose(other)),
        keys=compose.pairs(join.keys),
        residual=None if join.residual is None else compose(join.residual),
        columns=compose.columns(result.columns, join.columns),
        schema=result.schema,
        interval=join.interval,
    )


def watchlist_join_node(
    result: JoinResult, join: WatchlistJoin, side: JoinSide
) -> WatchlistJoinNode:
    """Return the node of a join with a table, which computes the columns of the result."""
    table = {c.name: Column(c.name, c.type, c.is_nullable) for c in join.watchlist.schema.columns}
    compose = _Composer((side.columns, table))
    return WatchlistJoinNode(
        query=result.query,
        input=side.input,
        predicate=side.predicate,
        watchlist=join.watchlist,
        keys=compose.pairs(join.keys),
        residual=None if join.residual is None else compose(join.residual),
        columns=compose.columns(result.columns, join.columns),
        schema=result.schema,
    )


@dataclass(frozen=True, slots=True)
class _Composer:
    """Replaces the columns of the sides of a join by their expressions."""

    sides: tuple[Mapping[str, Expression], Mapping[str, Expression]]

    def __call__(self, expression: Expression) -> Expression:
        return map_expression(
            expression,
            lambda part: (
                of_input(self.sides[part.input][part.name], part.input)
                if isinstance(part, Column)
                else part
            ),
        )

    def pairs(
        self, keys: Sequence[tuple[Expression, Expression]]
    ) -> tuple[tuple[Expression, Expression], ...]:
        return tuple((self(one), self(other)) for one, other in keys)

    def columns(
        self, above: Sequence[NamedExpression], own: Sequence[NamedExpression]
    ) -> tuple[NamedExpression, ...]:
        """Return ``above``, which reads the columns ``own`` of a join, over the join's sides."""
        return substitute_all(above, {c.name: self(c.expression) for c in own})


def _above_border(expression: Expression) -> Expression:
    is_of_packets = any(isinstance(part, PacketField) for part in walk(expression))
    return Border().lift(expression) if is_of_packets else expression
