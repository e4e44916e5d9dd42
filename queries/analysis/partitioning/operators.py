"""The operators of a query set, each once, with its compatible set.

Trees of results hold a query once for each query that reads it; costs count an operator once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.analysis.lineage.forest import MAX_LEAVES, grown, leaf_count, nodes_below
from gscope.queries.analysis.partitioning.compatible import NONE, PartitionSets
from gscope.queries.catalog.aggregates import AGGREGATES
from gscope.queries.catalog.running import DISTINCT_VALUES, RUNNING
from gscope.queries.plan.logical import (
    GroupBy,
    Join,
    Merge,
    QueryScan,
    RunningGroupBy,
    Scan,
    WindowGroupBy,
)
from gscope.queries.plan.sampling_operator import SampleGroupBy
from gscope.queries.plan.split.running import epoch_calls
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.analysis.lineage.forest import TreeNode
    from gscope.queries.analysis.partitioning.compatible import Compatible
    from gscope.queries.plan.logical import AggregateCall, LogicalPlan, LogicalQuery, Node
    from gscope.queries.plan.row_order import Order


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator of a query.

    Attributes:
        query: the name of its query.
        node: the operator; a ``QueryScan`` is none, it stands for the root of the query it reads.
        inputs: the numbers of the operators that it reads.
        compatible: its compatible set.
        is_root: whether its rows are those of the query.
        is_result: whether the query is delivered.
        is_splittable: whether partial rows of several hosts can be merged to its rows.
        order: the order whose first rows the query keeps; None if it keeps all, or this is not its
            root.
    """

    query: str
    node: Node
    inputs: tuple[int, ...]
    compatible: Compatible
    is_root: bool
    is_result: bool
    is_splittable: bool
    order: Order | None = None

    @property
    def relates(self) -> bool:
        """Whether it brings several rows together, and so needs them in one place."""
        return isinstance(
            self.node, GroupBy | RunningGroupBy | WindowGroupBy | SampleGroupBy | Join
        )

    @property
    def kind(self) -> str:
        """What it is, in one word."""
        match self.node:
            case Join():
                return "join"
            case Merge():
                return "union"
            case Scan():
                return "packets"
        return "groups" if self.relates else "rows"


def operators_of(plan: LogicalPlan, results: tuple[str, ...]) -> tuple[Operator, ...]:
    """Return the operators of a query set, each after those that it reads."""
    return _Builder(plan, results).built()


def _is_splittable(node: Node) -> bool:
    """Return whether partial rows of several hosts can be merged to the rows of a grouping."""
    match node:
        case GroupBy() | RunningGroupBy():
            calls: Sequence[AggregateCall] = epoch_calls(node).calls
        case WindowGroupBy(aggregates=aggregates):
            calls = aggregates
        case _:
            return False
    return all(
        call.function in {DISTINCT_VALUES, *RUNNING}
        or AGGREGATES[call.function].is_splittable(call.arguments)
        for call in calls
    )


class _Builder:
    def __init__(self, plan: LogicalPlan, results: tuple[str, ...]) -> None:
        self._plan = plan
        self._results = frozenset(results)
        self._queries = {query.name: query for query in plan.queries}
        self._sets = PartitionSets()
        self._made: list[Operator] = []
        self._known: dict[Compatible, Compatible] = {}
        self._roots: dict[str, int] = {}

    def built(self) -> tuple[Operator, ...]:
        for query in self._plan.queries:
            leaves = leaf_count(query.name, self._queries)
            tree = None
            if leaves <= MAX_LEAVES:
                streams = [str(number) for number in range(leaves)]
                tree = grown(query.name, self._queries, streams)
            self._roots[query.name] = self._add(query, query.root, tree, is_root=True)
        return tuple(self._made)

    def _add(self, query: LogicalQuery, node: Node, tree: TreeNode | None, *, is_root: bool) -> int:
        """Add a node and those below it; return its number.

        ``tree`` is its place in the tree of the query, None if that is too large to be analysed.
        """
        if isinstance(node, QueryScan) and not is_root:
            return self._roots[node.query]
        below = nodes_below(node)
        if isinstance(node, QueryScan):
            inputs: tuple[int, ...] = (self._roots[node.query],)
        else:
            trees = (None,) * len(below) if tree is None else tree.inputs
            inputs = tuple(
                self._add(query, each, own, is_root=False)
                for each, own in zip(below, trees, strict=True)
            )
        compatible = NONE if tree is None else self._sets.of(tree)
        is_result = query.name in self._results
        is_limited = is_root and query.order is not None and query.order.limit is not None
        order = query.order if is_limited else None
        # Equal sets are one object, which is compared with a candidate once.
        known = self._known.setdefault(compatible, compatible)
        is_splittable = _is_splittable(node)
        self._made.append(
            Operator(query.name, node, inputs, known, is_root, is_result, is_splittable, order)
        )
        return len(self._made) - 1
