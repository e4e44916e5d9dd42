"""Selection: WHERE and SELECT over rows as they come."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.pass_through import PassThroughOperator
from gscope.engine.watermarks.release import Side

if TYPE_CHECKING:
    from gscope.queries.plan.program import SelectionNode


def bookkeeping(node: SelectionNode) -> PassThroughOperator:
    """Return the running state of a selection; it holds back no row."""
    return PassThroughOperator(node, (Side(),), node.columns)
