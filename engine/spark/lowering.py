"""The table of operators and their halves in Spark SQL.

``engine/operators`` holds the other half of each operator: which rows a step reads. Neither half
imports the other's modules; they meet in ``Work``, which the evaluator turns into ``Sources``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gscope.engine.spark.sql import (
    aggregation,
    join,
    merge,
    running,
    sample,
    selection,
    top,
    watchlist_join,
    window,
)
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    TopNode,
    WatchlistJoinNode,
)
from gscope.queries.plan.sampling_operator import SampleNode
from gscope.queries.plan.window_node import WindowNode
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gscope.engine.spark.sql.inputs import Sources
    from gscope.queries.expressions.expressions import Expression


@dataclass(frozen=True, slots=True)
class Lowering:
    """How the nodes of one class become Spark SQL.

    Attributes:
        lower: returns the text of a node over its sources.
        expressions: yields every expression that Spark evaluates for a node, to register functions.
    """

    lower: Callable[[Any, Sources], str]
    expressions: Callable[[Any], Iterator[Expression]]


LOWERINGS: Mapping[type[HftaNode], Lowering] = {
    AggregationNode: Lowering(aggregation.lower, aggregation.expressions),
    JoinNode: Lowering(join.lower, join.expressions),
    MergeNode: Lowering(merge.lower, merge.expressions),
    RunningNode: Lowering(running.lower, running.expressions),
    SampleNode: Lowering(sample.lower, sample.expressions),
    SelectionNode: Lowering(selection.lower, selection.expressions),
    TopNode: Lowering(top.lower, top.expressions),
    WatchlistJoinNode: Lowering(watchlist_join.lower, watchlist_join.expressions),
    WindowNode: Lowering(window.lower, window.expressions),
}


def lower(node: HftaNode, sources: Sources) -> str:
    """Return the Spark SQL text of an operator over the rows that it reads."""
    return LOWERINGS[type(node)].lower(node, sources)


def expressions(node: HftaNode) -> Iterator[Expression]:
    """Yield every expression that Spark evaluates for an operator."""
    return LOWERINGS[type(node)].expressions(node)
