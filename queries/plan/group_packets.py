"""The packets of groups: an LFTA that ships the keys of each packet, for a second pass."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Call, Column, Literal, NamedExpression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.plan.program import AggregationNode, QueryInput, StreamInput
from gscope.queries.plan.program_sampling import RATE_COLUMN
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Lfta, Program


class NoGroupPacketsError(Exception):
    """Why the packets of a query's groups cannot be found, a phrase."""


@dataclass(frozen=True, slots=True)
class GroupPackets:
    """The packets of the groups in the answer of a query.

    Attributes:
        lfta: a selection of the packets of all groups, with their keys as columns.
        keys: pairs of a column of the LFTA, or ``interface``, and the column of the answer that
            has the same value; () if all packets are of one group.
        source: name of the LFTA that groups the packets.
        epoch: the column of the LFTA with the epoch; None if it has none.
    """

    lfta: Lfta
    keys: tuple[tuple[str, str], ...]
    source: str
    epoch: NamedExpression | None = None


def group_packets(program: Program, query: str, name: str) -> GroupPackets:
    """Return how to find the packets of the groups in an answer.

    Args:
        program: the program.
        query: a result of it.
        name: the name for the LFTA.

    Raises:
        NoGroupPacketsError: the query is not a grouping that the capture daemon begins, or its
            answer lacks a key.
    """
    source = dict(program.results)[query]
    node = program.node(source.query) if isinstance(source, QueryInput) else None
    if not isinstance(node, AggregationNode):
        message = "it does not group packets alone"
        raise NoGroupPacketsError(message)
    groups = _groups(program, node)
    if not isinstance(groups.input, StreamInput) or groups.predicate is not None:
        message = "its groups are of rows of another query, or of a WHERE evaluated on Spark"
        raise NoGroupPacketsError(message)
    lfta = program.lfta(groups.input.lfta)
    shown = {_key_shown(column.expression): column for column in node.columns}
    low = {column.name: column.expression for column in (*lfta.keys, *lfta.columns)}
    keys: list[tuple[str, str]] = []
    columns: list[NamedExpression] = []
    for key in groups.keys:
        if isinstance(key.expression, Literal) or key.name == RATE_COLUMN:
            continue
        if not isinstance(key.expression, Column):
            message = f"its term {key.name} in GROUP BY is evaluated on Spark"
            raise NoGroupPacketsError(message)
        if key.name not in shown:
            message = f"its answer lacks the key {key.name} of its groups; add it to SELECT"
            raise NoGroupPacketsError(message)
        shipped = key.expression.name
        keys.append((shipped, shown[key.name].name))
        if shipped in low:
            expression = _over(shown[key.name].expression, low[shipped])
            columns.append(NamedExpression(shipped, expression))
    selection = replace(
        lfta,
        name=name,
        keys=(),
        epoch=None,
        partials=(),
        columns=tuple(columns),
        schema=Schema(
            tuple(
                ColumnSchema(c.name, c.expression.type, c.expression.is_nullable) for c in columns
            )
        ),
        has_interface_column=False,
        has_rate_column=False,
    )
    epoch = next((column for column in columns if column.name == lfta.epoch), None)
    return GroupPackets(selection, tuple(keys), lfta.name, epoch)


def _groups(program: Program, node: AggregationNode) -> AggregationNode:
    """Return the node that groups packets, also by the rates at which they are sampled."""
    if isinstance(node.input, StreamInput):
        return node
    below = program.node(node.input.query)
    has_rates = (
        isinstance(below, AggregationNode)
        and isinstance(below.input, StreamInput)
        and program.lfta(below.input.lfta).has_rate_column
    )
    return below if has_rates and isinstance(below, AggregationNode) else node


def _key_shown(expression: Expression) -> str:
    """Return the key that a column of the answer shows, each of its values as another one; or "".

    Numbers of minutes, as ``minute(time)`` groups by, are shown as times.
    """
    match expression:
        case Column(name=name):
            return name
        case Call(function="int_to_ts", arguments=(inner,)):
            return _key_shown(inner)
        case Call(function="mul_int", arguments=(inner, Literal(value=int(factor)))) if factor:
            return _key_shown(inner)
    return ""


def _over(expression: Expression, key: Expression) -> Expression:
    """Return what a column of the answer shows, over packet fields."""
    if isinstance(expression, Call):
        arguments = tuple(
            each if isinstance(each, Literal) else _over(each, key) for each in expression.arguments
        )
        return replace(expression, arguments=arguments, is_nullable=key.is_nullable)
    return key
