"""The compatible set of each node: the partitioning sets by which it may be divided.

A node is compatible with a partitioning set if each of its rows depends on the packets of one
partition: the union of what it computes in the partitions is its answer.

    selection, projection, merge, watchlist     any set
    GROUP BY time/60, srcIP, destIP & 0xFF00    (srcIP, destIP & 0xFF00)
    WHERE a.srcIP = b.srcIP and a.tb = b.tb     (srcIP)

All packets are divided alike, so what a join equates counts only if it is the *same* function of
the packets on both sides. Members that depend on time are none: one host would get all packets of
an epoch.

Source: "Query-aware partitioning for monitoring massive network data streams" (SIGMOD 2008), §3.
"""

from __future__ import annotations

from enum import Enum
from itertools import combinations
from typing import TYPE_CHECKING, Final, TypeAlias

from gscope.queries.analysis.lineage.compatible import ALL, CompatibleSets
from gscope.queries.analysis.lineage.cuts import meet
from gscope.queries.analysis.partitioning.sets import PartitionSet, Symmetric, plain
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.plan.logical import (
    Filter,
    Merge,
    Project,
    QueryScan,
    Scan,
    WatchlistJoin,
)

if TYPE_CHECKING:
    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Term


class _Any(Enum):
    ANY = "any"


ANY: Final = _Any.ANY
"""The compatible set of what looks at one row at a time: every partitioning set."""

Compatible: TypeAlias = PartitionSet | _Any

NONE = PartitionSet()
"""The compatible set of a node that needs all packets in one place."""


class PartitionSets:
    """The compatible sets of the nodes of trees."""

    def __init__(self) -> None:
        self._groups = CompatibleSets()

    def of(self, tree: TreeNode) -> Compatible:
        """Return the compatible set of a node, whatever that of the nodes below."""
        match tree.node:
            case Project(columns=columns) if any(
                declared_ordering(each.expression) for each in columns
            ):
                # Which packet breaks the order depends on all packets before it.
                return NONE
            case Scan() | QueryScan() | Filter() | Project() | WatchlistJoin() | Merge():
                return ANY
        terms = self._groups.of(tree)
        if terms is ALL:
            return ANY
        own = [made for term in terms if (made := _plain(term)) is not None]
        pairs = [_symmetric(one, other) for one, other in combinations(terms, 2)]
        return PartitionSet.of(own, [pair for pair in pairs if pair is not None])


def is_compatible(found: Compatible, given: PartitionSet) -> bool:
    """Return whether a node with the compatible set ``found`` may be divided by ``given``."""
    return bool(given) and (found is ANY or found.determines(given))


def _plain(term: Term) -> Term | None:
    """Return the member that a term over several streams is; None if it differs between them."""
    bases = {base for _, base in term.bases}
    return plain(bases.pop(), term.cut) if len(bases) == 1 else None


def _symmetric(one: Term, other: Term) -> Symmetric | None:
    """Return the member that two terms are whose expressions change places between streams."""
    cut = meet(one.cut, other.cut)
    pairs = {frozenset((first, dict(other.bases)[stream])) for stream, first in one.bases}
    if cut is None or len(pairs) != 1 or one.streams != other.streams:
        return None
    pair = sorted(pairs.pop(), key=repr)
    return Symmetric.of(pair[0], pair[1], cut) if len(pair) == 2 else None
