"""HFTA operators as Spark SQL text: which module knows what about which node."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from gscope.engine.operators import aggregation, join, merge, running, selection, watchlist_join
from gscope.engine.spark.tasks.task import MAX_TASK_ROWS
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.queries.plan.program import (
    AggregationNode,
    HftaNode,
    JoinNode,
    MergeNode,
    RunningNode,
    SelectionNode,
    WatchlistJoinNode,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.expressions.expressions import Expression


def lower(
    node: HftaNode,
    sources: Sequence[str],
    rows: int,
    rows_in_memory: int = MAX_TASK_ROWS,
    epochs: tuple[Bound, Bound] = (NOTHING, ENDED),
) -> str:
    """The Spark SQL text of an operator.

    Args:
        node: the operator.
        sources: a subquery for what each side reads; for a merge only for those that read something.
        rows: how many there can be in them together.
        rows_in_memory: up to so many a join holds its smaller side in memory.
        epochs: those that are answered: from, and below.
    """
    match node:
        case AggregationNode():
            return aggregation.lower(node, sources[0])
        case SelectionNode():
            return selection.lower(node, sources[0])
        case MergeNode():
            return merge.lower(node, sources)
        case JoinNode():
            left, right = sources
            fits_in_memory = rows <= rows_in_memory
            return join.lower(node, left, right, epochs=epochs, fits_in_memory=fits_in_memory)
        case WatchlistJoinNode():
            return watchlist_join.lower(node, sources[0])
        case RunningNode():
            return running.lower(node, sources[0])
        case _:
            assert_never(node)


def expressions(node: HftaNode) -> Iterator[Expression]:
    """Every expression that Spark evaluates for an operator."""
    match node:
        case AggregationNode():
            yield from aggregation.expressions(node)
        case SelectionNode():
            yield from selection.expressions(node)
        case MergeNode():
            return
        case JoinNode():
            yield from join.expressions(node)
        case WatchlistJoinNode():
            yield from watchlist_join.expressions(node)
        case RunningNode():
            yield from running.expressions(node)
        case _:
            assert_never(node)
