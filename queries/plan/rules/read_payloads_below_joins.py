"""Rule: read payloads before a join, not behind it."""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.queries.catalog.ordering.temporal import column_ordering
from gscope.queries.expressions.expressions import (
    Call,
    Column,
    Expression,
    NamedExpression,
    PacketField,
    walk,
)
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import VARYING, GsqlType
from gscope.queries.plan.logical import Join, LogicalPlan, Node, Project
from gscope.queries.plan.trees import by_name, inputs_of, is_null_of_nulls, map_nodes, substitute
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping


def read_payloads_below_joins(plan: LogicalPlan) -> LogicalPlan:
    """Compute what a join reads of the payload of one side's packets as a column of that side.

    So an LFTA ships only the bytes that are read, and no payload is carried through the join.

    Before::

        Join[host := tls_sni(left.data)](Project[data := TCP_data](Scan), …)

    After::

        Join[host := left.read](Project[data := TCP_data, read := tls_sni(TCP_data)](Scan), …)
    """
    return replace(
        plan, queries=tuple(replace(q, root=map_nodes(q.root, _rewrite)) for q in plan.queries)
    )


def _rewrite(node: Node) -> Node:
    return _read_below(node) if isinstance(node, Join) else node


def _read_below(join: Join) -> Join:
    sides = [_Side(number, each) for number, each in enumerate(join.inputs)]

    def change(expression: Expression) -> Expression:
        inputs = inputs_of(expression)
        if isinstance(expression, Call) and len(inputs) == 1:
            moved = sides[min(inputs)].move(expression)
            if moved is not None:
                return moved
        if not isinstance(expression, Call):
            return expression
        return replace(expression, arguments=tuple(map(change, expression.arguments)))

    keys = tuple((change(one), change(other)) for one, other in join.keys)
    residual = None if join.residual is None else change(join.residual)
    columns = tuple(NamedExpression(c.name, change(c.expression)) for c in join.columns)
    if not any(side.made for side in sides):
        return join
    left, right = (side.node() for side in sides)
    return replace(join, inputs=(left, right), keys=keys, residual=residual, columns=columns)


@dataclass(slots=True)
class _Side:
    """One input of a join, and the columns that the rule adds to it.

    Attributes:
        number: ``Column.input`` of its columns.
        input: the plan node.
        made: the added columns by their expression.
    """

    number: int
    input: Node
    made: dict[Expression, str] = field(default_factory=dict)

    def move(self, call: Call) -> Column | None:
        """Return the column for a call that reads payload; None for any other call, which stays."""
        if not isinstance(self.input, Project):
            return None
        below: Mapping[str, Expression] = by_name(self.input.columns)
        moved = substitute(call, below)
        is_payload = any(
            isinstance(part, PacketField) and part.type is GsqlType.STRING for part in walk(moved)
        )
        # The call is NULL where the side is missing, as the column will be.
        if not is_payload or not is_null_of_nulls(call):
            return None
        if moved not in self.made:
            taken = {*below, *self.made.values()}
            number = len(self.made) + 1
            while f"read_{number}" in taken:
                number += 1
            self.made[moved] = f"read_{number}"
        return Column(self.made[moved], call.type, call.is_nullable, self.number)

    def node(self) -> Node:
        if not self.made:
            return self.input
        assert isinstance(self.input, Project)
        added = tuple(NamedExpression(name, e) for e, name in self.made.items())
        schema = (
            *self.input.schema.columns,
            *(
                ColumnSchema(
                    c.name,
                    c.expression.type,
                    c.expression.is_nullable,
                    column_ordering(c.expression, lambda _: VARYING),
                )
                for c in added
            ),
        )
        return replace(self.input, columns=(*self.input.columns, *added), schema=Schema(schema))
