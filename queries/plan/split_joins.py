"""The split of joins: both sides composed into one node, packets by LFTAs that joins share.

A side that only selects and projects disappears into the node: its predicate and its columns are tested
and computed there, as far as an LFTA has not done so.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.functions import FUNCTIONS
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.expressions import (
    Call,
    Column,
    Expression,
    Literal,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.plan.low import Border
from gscope.queries.plan.program import Input, JoinNode, StreamInput
from gscope.queries.plan.trees import by_name, conjunction, map_expression, substitute_all

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gscope.queries.catalog.schema import Schema
    from gscope.queries.plan.layers import Site
    from gscope.queries.plan.logical import Join
    from gscope.queries.plan.program import Lfta

_MISSING = {
    JoinKind.LEFT_OUTER: (1,),
    JoinKind.RIGHT_OUTER: (0,),
    JoinKind.OUTER: (0, 1),
}


@dataclass(frozen=True, slots=True)
class JoinSide:
    """Where one side of a join comes from.

    Attributes:
        predicate: over the columns of the input.
        columns: the side's, over the columns of the input.
    """

    input: Input
    predicate: Expression | None
    columns: Mapping[str, Expression]


@dataclass(slots=True)
class SharedStreams:
    """The LFTAs that ship packets to joins: one for all sides that want the same packets.

    Attributes:
        borders: by what is shipped, the LFTA's place in the program and the columns it ships.
    """

    borders: dict[tuple[str, tuple[str, ...], Expression | None], tuple[int, Border]] = field(
        default_factory=dict
    )

    def side(
        self,
        lftas: list[Lfta],
        site: Site,
        columns: Sequence[NamedExpression],
        high: Sequence[Expression],
    ) -> JoinSide:
        """A side over packets; its LFTA is made, or ships what this side needs as well."""
        key = site.protocol, site.interfaces, site.predicate
        place, border = self.borders.get(key, (len(lftas), Border()))
        lifted = {c.name: border.lift(c.expression, c.name) for c in columns}
        predicate = conjunction([border.lift(p) for p in high])
        lfta = site.selection(border)
        if key in self.borders:
            lfta = replace(lfta, name=lftas[place].name, query=lftas[place].query)
            lftas[place] = lfta
        else:
            self.borders[key] = place, border
            lftas.append(lfta)
        return JoinSide(StreamInput(lfta.name), predicate, lifted)


def is_composable(columns: Sequence[NamedExpression], join: Join, number: int) -> bool:
    """Whether the columns of a side may be computed in the join itself: where the side is missing, on NULLs.

    What an LFTA computes of packets is a column of its stream.
    """
    if number not in _MISSING.get(join.kind, ()):
        return True
    return all(_is_null_of_nulls(_above_border(c.expression)) for c in columns)


def join_node(
    name: str,
    schema: Schema,
    columns: Sequence[NamedExpression],
    join: Join,
    left: JoinSide,
    right: JoinSide,
) -> JoinNode:
    """The node of ``join`` over two sides, with ``columns`` of its result computed in it."""

    def compose(expression: Expression) -> Expression:
        return map_expression(
            expression,
            lambda part: sides[part.input][part.name] if isinstance(part, Column) else part,
        )

    sides = [
        {name: _of_input(e, number) for name, e in side.columns.items()}
        for number, side in enumerate((left, right))
    ]
    own = {name: compose(e) for name, e in by_name(join.columns).items()}
    return JoinNode(
        query=name,
        kind=join.kind,
        inputs=(left.input, right.input),
        predicates=(
            left.predicate,
            None if right.predicate is None else _of_input(right.predicate, 1),
        ),
        epochs=(compose(join.epochs[0]), compose(join.epochs[1])),
        keys=tuple((compose(one), compose(other)) for one, other in join.keys),
        residual=None if join.residual is None else compose(join.residual),
        columns=substitute_all(columns, own),
        schema=schema,
    )


def _above_border(expression: Expression) -> Expression:
    is_of_packets = any(isinstance(part, PacketField) for part in walk(expression))
    return Border().lift(expression) if is_of_packets else expression


def _of_input(expression: Expression, number: int) -> Expression:
    return map_expression(
        expression,
        lambda part: replace(part, input=number) if isinstance(part, Column) else part,
    )


def _is_null_of_nulls(expression: Expression) -> bool:
    """Whether ``expression`` is sure to be NULL where all its columns are."""
    if not isinstance(expression, Call):
        return not isinstance(expression, Literal)
    strict = FUNCTIONS[expression.function].is_strict
    return strict and any(_is_null_of_nulls(a) for a in expression.arguments)
