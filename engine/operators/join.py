"""Join: rows of two sides whose epochs are equal, and what else the query asks of a pair."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators import interval_join
from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.release import Side

if TYPE_CHECKING:
    from gscope.queries.plan.program import JoinNode


def bookkeeping(node: JoinNode) -> EpochOperator:
    """Return the running state of a join.

    A pair has equal epochs, so both sides are released up to the same value, the least that any of
    their ports has been promised: every match and every outer row is found exactly once. It keeps
    nothing from step to step.
    """
    if node.interval is not None:
        return interval_join.bookkeeping(node)
    return EpochOperator(node, tuple(Side(epoch) for epoch in node.epochs), node.columns)
