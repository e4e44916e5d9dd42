"""Join with a watchlist: rows pass as they come, each with every matching row of the table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.pass_through import PassThroughOperator
from gscope.engine.watermarks.release import Side

if TYPE_CHECKING:
    from gscope.queries.plan.program import WatchlistJoinNode


def bookkeeping(node: WatchlistJoinNode) -> PassThroughOperator:
    """Return the running state of a join with a watchlist.

    The stream is its only side: the table has no time, and a row is joined with the table as it
    stands in the step that reads the row.
    """
    return PassThroughOperator(node, (Side(),), node.columns)
