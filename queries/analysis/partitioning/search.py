"""The best set to divide packets by: the candidates, their costs, and the choice.

Candidates are the compatible sets of operators and all their meets: whatever operators a set is
compatible with, the meet of their compatible sets is too, and no finer set is. The search goes
upward from the packets and adds an operator at a time to each set of operators so far, and keeps
the sets that differ. Of those that cost the same, the finest divides packets most evenly.

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008),
§4.2.2.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.partitioning.compatible import ANY
from gscope.queries.analysis.partitioning.placement import place
from gscope.queries.analysis.partitioning.sets import PartitionSet
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.partitioning.operators import Operator
    from gscope.queries.analysis.partitioning.placement import Placement
    from gscope.queries.analysis.partitioning.traffic import Rows

MAX_CANDIDATES = 500
"""The most candidates. Operators with n different sets have up to 2ⁿ meets; published query sets
have fewer than ten."""

BY_CHANCE = PartitionSet()
"""Packets are divided by no function of their fields."""


@dataclass(frozen=True, slots=True)
class Search:
    """What a search found.

    Attributes:
        candidates: the placement of each candidate, best first; that of packets divided by chance
            is among them.
        is_complete: whether all candidates were tried.
    """

    candidates: tuple[Placement, ...]
    is_complete: bool

    @property
    def best(self) -> Placement:
        """The placement to choose."""
        return self.candidates[0]


def search(operators: Sequence[Operator], rows: Sequence[Rows], hosts: int) -> Search:
    """Return all candidates, best first."""
    found, is_complete = candidates(operators)
    placements = [place(operators, rows, given, hosts) for given in (*found, BY_CHANCE)]
    return Search(tuple(sorted(placements, key=_rank)), is_complete)


def candidates(operators: Sequence[Operator]) -> tuple[tuple[PartitionSet, ...], bool]:
    """Return the compatible sets of operators with all their meets, and whether these are all."""
    found: dict[PartitionSet, None] = {}
    own = [each.compatible for each in operators]
    for compatible in dict.fromkeys(each for each in own if each is not ANY and each):
        assert isinstance(compatible, PartitionSet)
        met = [meet for each in found if (meet := each.meet(compatible))]
        for each in (compatible, *met):
            found.setdefault(each)
            if len(found) >= MAX_CANDIDATES:
                return tuple(found), False
    return tuple(found), True


def _rank(placement: Placement) -> tuple[float, float, bool, int, tuple[str, ...]]:
    given = placement.given
    members = -len(given.plain) - len(given.symmetric)
    return placement.cost, placement.total, not given, members, given.texts()
