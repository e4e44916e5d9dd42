"""Aggregation: groups of whole epochs, each answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator
from gscope.engine.watermarks.release import Side
from gscope.queries.plan.whole_input import is_global

if TYPE_CHECKING:
    from gscope.queries.plan.program import AggregationNode


def bookkeeping(node: AggregationNode) -> EpochOperator:
    """Return the running state of an aggregation.

    It releases the rows of an epoch once the punctuation of every port has passed the epoch, so
    that its groups are complete and each is answered once. It keeps nothing from step to step.
    """
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    is_single = is_global(node.keys, node.epoch)
    return EpochOperator(node, (Side(epoch),), node.columns, node.keys, makes_row=is_single)
