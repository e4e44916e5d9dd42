"""How the rows of a program are divided into partitions, which tasks and hosts can process apart.

All packets are divided by one *partitioning set*, a few functions of their fields; a row of a
stream is in the partition of its packets where its columns determine the set. Where they do not,
the rows of a stream are divided by all of their keys that do not change with time, so that at least
the partial rows of one group are in one partition.

``queries/plan/partitioning/partition_hash.py`` defines the number of a row's partition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.queries.plan.show_expressions import show
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import Program


@dataclass(frozen=True, slots=True)
class PartitionMember:
    """One value that partitions depend on.

    Attributes:
        values: one expression, or two of one type whose order does not count, such as the two
            addresses of a packet.
    """

    values: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class StreamPartitioning:
    """What divides the rows of a stream.

    Attributes:
        members: the values to hash, over the output columns of the LFTA; at least one.
        follows_set: whether they are the members of the program's set, in its order, so that rows
            of different streams whose packets agree in the set are in one partition.
        partitions: the number of partitions, that of the program.
    """

    members: tuple[PartitionMember, ...]
    follows_set: bool
    partitions: int


@dataclass(frozen=True, slots=True)
class Partitioning:
    """What identifies the partitioning of a run.

    Attributes:
        partitions: the number of partitions, at least 2.
        members: the partitioning set, over packet fields; () if no set suits the queries, so that
            no two streams are divided alike.
    """

    partitions: int
    members: tuple[PartitionMember, ...]

    def __str__(self) -> str:
        texts = [[show(value) for value in member.values] for member in self.members]
        by = ", ".join(t[0] if len(t) == 1 else f"{{{', '.join(t)}}}" for t in texts)
        return f"{self.partitions} partitions by {f'({by})' if by else 'the keys of each stream'}"


def undivided(program: Program) -> Program:
    """Return ``program`` without what divides its rows into partitions."""
    lftas = tuple(replace(lfta, partitioning=None) for lfta in program.lftas)
    return replace(program, lftas=lftas, partitioning=None)
