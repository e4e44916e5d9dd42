"""What divides the rows of each LFTA's streams, given the set that divides packets.

set (srcIP & 0xFFFFFF00)    GROUP BY time/60 as tb, srcIP, destIP     (srcIP & 0xFFFFFF00)
                            GROUP BY time/60 as tb, destPort          destPort, not the set
                            GROUP BY time/60 as tb                    rows are not divided
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.expressions.expressions import Column, Expression, Literal, PacketField
from gscope.queries.expressions.types import HASHED_TYPES
from gscope.queries.plan.program_partitioning import (
    Partitioning,
    PartitionMember,
    StreamPartitioning,
)
from gscope.queries.plan.sampling.sampled_rows import rewritten
from gscope.queries.plan.trees import map_expression

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import NamedExpression
    from gscope.queries.plan.program import Lfta, Program


def with_partitioning(
    program: Program, partitions: int, members: Sequence[PartitionMember]
) -> Program:
    """Return a program whose rows are divided into partitions; one is none.

    Args:
        program: the program.
        partitions: the number of partitions.
        members: the set that divides packets, over packet fields; () if none suits the queries.
    """
    if partitions < 2:
        return program
    lftas = tuple(
        replace(lfta, partitioning=stream_partitioning(lfta, partitions, members))
        for lfta in program.lftas
    )
    return replace(program, lftas=lftas, partitioning=Partitioning(partitions, tuple(members)))


def stream_partitioning(
    lfta: Lfta, partitions: int, members: Sequence[PartitionMember]
) -> StreamPartitioning | None:
    """Return what divides the rows of an LFTA; None if nothing does.

    Only rows of groups are divided by their keys if they do not determine the set: those of a
    selection are not parts of a whole.
    """
    followed = tuple(made for member in members if (made := _over_columns(lfta, member)))
    if followed and len(followed) == len(members):
        return StreamPartitioning(followed, follows_set=True, partitions=partitions)
    keys = tuple(
        PartitionMember((_column(lfta, key.name),))
        for key in lfta.keys
        if key.name != lfta.epoch
        and not isinstance(key.expression, Literal)
        and lfta.schema[key.name].type in HASHED_TYPES
        and not lfta.schema[key.name].ordering.is_temporal
    )
    if not keys:
        return None
    return StreamPartitioning(keys, follows_set=False, partitions=partitions)


def _over_columns(lfta: Lfta, member: PartitionMember) -> PartitionMember | None:
    """Return a member of the set over the columns of an LFTA; None if they do not determine it."""
    named = [
        replace(each, expression=_bare(each.expression)) for each in (*lfta.keys, *lfta.columns)
    ]
    found = _rewritten(member.values, named)
    if found is None:
        return None

    def typed(part: Expression) -> Expression:
        return _column(lfta, part.name) if isinstance(part, Column) else part

    return PartitionMember(tuple(map_expression(value, typed) for value in found))


def _rewritten(
    values: Sequence[Expression], named: Sequence[NamedExpression]
) -> tuple[Expression, ...] | None:
    return rewritten([_bare(value) for value in values], named)


def _bare(expression: Expression) -> Expression:
    """Return an expression without what a protocol knows of its fields.

    That is whether they may be NULL.
    """

    def change(part: Expression) -> Expression:
        return replace(part, is_nullable=True) if isinstance(part, PacketField) else part

    return map_expression(expression, change)


def _column(lfta: Lfta, name: str) -> Column:
    schema = lfta.schema[name]
    return Column(name, schema.type, schema.is_nullable)
