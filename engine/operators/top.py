"""Top: the first rows of each epoch in an order, once the epoch is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.release import Side

if TYPE_CHECKING:
    from gscope.queries.plan.program import TopNode


def bookkeeping(node: TopNode) -> EpochOperator:
    """Return the running state of a top.

    It releases the rows of an epoch once the punctuation of its input has passed the epoch, so each
    epoch is answered once. It keeps nothing from step to step.
    """
    return EpochOperator(node, (Side(node.epoch_expression),), node.columns)
