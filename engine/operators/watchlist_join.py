"""Join with a watchlist: rows pass as they come, each with every row of the table that fits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.selection import SelectionOperator

if TYPE_CHECKING:
    from gscope.queries.plan.program import WatchlistJoinNode


def bookkeeping(node: WatchlistJoinNode) -> SelectionOperator:
    """Return the running state: that of a selection, for the table has no time."""
    return SelectionOperator(node)
