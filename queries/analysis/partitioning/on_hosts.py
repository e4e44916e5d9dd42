"""The queries that every host answers by itself if packets are divided among hosts by a set."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.partitioning.operators import operators_of
from gscope.queries.analysis.partitioning.placement import Place, place
from gscope.queries.analysis.partitioning.traffic import rows_of

if TYPE_CHECKING:
    from gscope.queries.analysis.partitioning.sets import PartitionSet
    from gscope.queries.plan.logical import LogicalPlan


def queries_on_hosts(
    plan: LogicalPlan, results: tuple[str, ...], given: PartitionSet, hosts: int
) -> frozenset[str]:
    """Return the queries whose answer is the union of what each host answers, or is chosen from it.

    Args:
        plan: the queries.
        results: the queries that are delivered.
        given: the set that packets are divided by.
        hosts: the number of hosts.
    """
    operators = operators_of(plan, results)
    places = place(operators, rows_of(operators), given, hosts).places
    return frozenset(
        operator.query
        for operator, where in zip(operators, places, strict=True)
        if operator.is_root and where in (Place.HOSTS, Place.FIRST)
    )
