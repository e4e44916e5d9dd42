"""How a query set is divided among hosts, as plain values and as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.queries.analysis.partitioning.compatible import ANY
from gscope.queries.analysis.partitioning.operators import operators_of
from gscope.queries.analysis.partitioning.placement import Place, place
from gscope.queries.analysis.partitioning.search import search
from gscope.queries.analysis.partitioning.traffic import rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.analysis.partitioning.operators import Operator
    from gscope.queries.analysis.partitioning.placement import Placement
    from gscope.queries.analysis.partitioning.sets import PartitionSet
    from gscope.queries.analysis.partitioning.traffic import Counts
    from gscope.queries.plan.logical import LogicalPlan

_PLACES = {
    Place.HOSTS: "on each host",
    Place.SPLIT: "partial rows on each host, merged on the aggregating host",
    Place.FIRST: "first rows on each host, of which the aggregating host keeps the first",
    Place.CENTRAL: "on the aggregating host",
}


def explain_partitioning(
    plan: LogicalPlan,
    results: tuple[str, ...],
    hosts: int,
    given: PartitionSet | None = None,
    counts: Counts | None = None,
) -> dict[str, Any]:
    """Return the compatible sets, the candidates with their costs, the choice and the places.

    Args:
        plan: the queries.
        results: the queries that are delivered.
        hosts: the number of hosts.
        given: the set that packets are divided by; None for the best one.
        counts: what a run of the queries counted; None to assume shares of rows.
    """
    operators = operators_of(plan, results)
    rows = rows_of(operators, counts)
    found = search(operators, rows, hosts)
    chosen = found.best if given is None else place(operators, rows, given, hosts)
    return {
        "hosts": hosts,
        "set": list(chosen.given.texts()),
        "is_given": given is not None,
        "is_measured": counts is not None,
        "cost": round(chosen.cost, 3),
        "total": round(chosen.total, 3),
        "candidates": [_candidate(each) for each in found.candidates],
        "is_complete": found.is_complete,
        "operators": _operators(operators, chosen),
    }


def _candidate(placement: Placement) -> dict[str, Any]:
    return {
        "set": list(placement.given.texts()),
        "cost": round(placement.cost, 3),
        "total": round(placement.total, 3),
    }


def _operators(operators: Sequence[Operator], chosen: Placement) -> list[dict[str, Any]]:
    """Return the operators that matter: those that relate rows, and those whose rows are sent."""
    return [
        {
            "query": operator.query,
            "operator": operator.kind,
            "compatible": None if operator.compatible is ANY else list(operator.compatible.texts()),
            "place": where.value,
            "received": round(received, 3),
        }
        for operator, where, received in zip(operators, chosen.places, chosen.received, strict=True)
        if operator.relates or received or operator.compatible is not ANY
    ]


def partitioning_lines(shown: dict[str, Any]) -> Iterator[str]:
    """Yield the lines of what ``explain_partitioning`` returned."""
    how = "as given" if shown["is_given"] else "the set of least cost"
    yield f"by {_set(shown['set'])}, {how}"
    basis = "by the counts of the run" if shown["is_measured"] else "by assumed shares of rows"
    yield (
        f"the aggregating host receives {shown['total']:g} bytes for each packet, at most "
        f"{shown['cost']:g} for one operator ({basis})"
    )
    for each in shown["candidates"]:
        yield f"candidate {_set(each['set'])}: {each['cost']:g}, {each['total']:g} in all"
    if not shown["is_complete"]:
        yield "there are more candidates, which were not tried"
    for each in shown["operators"]:
        yield f"{each['query']}, {each['operator']}: {_PLACES[Place(each['place'])]}"
        if each["compatible"] is not None:
            sets = _set(each["compatible"]) if each["compatible"] else "no set"
            yield f"  compatible with {sets}"
        if each["received"]:
            yield f"  {each['received']:g} bytes for each packet are sent"


def _set(members: Sequence[str]) -> str:
    return f"({', '.join(members)})" if members else "no function of packets"
