"""The set that a run divides packets by, for its program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.partitioning.operators import operators_of
from gscope.queries.analysis.partitioning.search import search
from gscope.queries.analysis.partitioning.traffic import rows_of
from gscope.queries.plan.program_partitioning import PartitionMember

if TYPE_CHECKING:
    from gscope.queries.analysis.partitioning.sets import PartitionSet
    from gscope.queries.plan.logical import LogicalPlan


def chosen_set(plan: LogicalPlan, results: tuple[str, ...], partitions: int) -> PartitionSet:
    """Return the set of least cost; it is empty if no set lets operators run in partitions."""
    operators = operators_of(plan, results)
    return search(operators, rows_of(operators), partitions).best.given


def members_of(given: PartitionSet) -> tuple[PartitionMember, ...]:
    """Return the members of a set, over packet fields."""
    plain = [PartitionMember((term.over(""),)) for term in given.plain]
    pairs = [
        PartitionMember(tuple(part.over("") for part in pair.parts)) for pair in given.symmetric
    ]
    return (*plain, *pairs)
