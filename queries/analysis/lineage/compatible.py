"""The compatible set of each node: the terms that all packets of one of its rows agree in.

If a packet is kept by the hash of such terms, either all packets of a row are kept, or none: the
rows that appear are those of the full answer. Packets themselves and selections of them agree in
everything (``ALL``).

    GROUP BY time/60, srcIP, destIP & 0xFF00      {srcIP, destIP & 0xFF00}
    FROM a, b WHERE a.srcIP = b.destIP            {a: srcIP, b: destIP}
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Final, TypeAlias, assert_never

from gscope.queries.analysis.lineage.terms import (
    Terms,
    are_functions_of,
    common,
    is_usable,
    reduced,
    term_of,
)
from gscope.queries.analysis.lineage.traces import Traces
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    Join,
    Merge,
    Project,
    QueryScan,
    RunningGroupBy,
    Scan,
    WatchlistJoin,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.lineage.terms import Term, Values


class _All(Enum):
    ALL = "all"


ALL: Final = _All.ALL
"""The compatible set of packets: every function of their fields."""

Compatible: TypeAlias = Terms | _All


class CompatibleSets:
    """The compatible sets of the nodes of trees, each computed once.

    Attributes:
        traces: the values of columns.
    """

    def __init__(self) -> None:
        self.traces = Traces()
        self._sets: dict[TreeNode, Compatible] = {}

    def of(self, tree: TreeNode) -> Compatible:
        """Return the compatible set of a node.

        () if packets of its rows agree in no usable term.
        """
        if tree not in self._sets:
            self._sets[tree] = self._computed(tree)
        return self._sets[tree]

    def admits(self, tree: TreeNode, terms: Sequence[Term]) -> bool:
        """Return whether the rows of a node are whole if its packets are kept by ``terms``."""
        found = self.of(tree)
        return bool(terms) and (found is ALL or are_functions_of(terms, found))

    def of_union(self, tree: TreeNode) -> Terms:
        """Return the terms of the columns of a union, by which all of its inputs can be sampled."""
        columns = self.traces.columns(tree).values()
        return self._on_all_sides(self._usable(columns, tree), tree)

    def _computed(self, tree: TreeNode) -> Compatible:
        node = tree.node
        match node:
            case Scan():
                return ALL
            case QueryScan() | Filter() | Project() | WatchlistJoin():
                return self.of(tree.inputs[0])
            case GroupBy() | RunningGroupBy() | WindowGroupBy():
                own = self._usable(
                    (self.traces.values(key.expression, tree.inputs) for key in node.keys), tree
                )
                below = self.of(tree.inputs[0])
                return own if below is ALL else common(own, below)
            case SampleGroupBy():
                # A window that a sample empties would be another window before the next.
                return ()
            case Merge():
                if all(self.of(each) is ALL for each in tree.inputs):
                    return ALL
                return self.of_union(tree)
            case Join():
                pairs = self.traces.pairs(tree)
                return self._on_all_sides(self._usable(pairs, tree), tree)
            case _:
                assert_never(node)

    def _usable(self, values: Iterable[Values], tree: TreeNode) -> Terms:
        """Return the terms of the values that have an expression of every stream."""
        streams = set(tree.streams)
        return reduced(term_of(each) for each in values if set(each) == streams and is_usable(each))

    def _on_all_sides(self, terms: Terms, tree: TreeNode) -> Terms:
        """Return the terms in which the packets of the rows of every input agree, too."""
        return tuple(
            term
            for term in terms
            if all(self.admits(each, (term.of(each.streams),)) for each in tree.inputs)
        )
