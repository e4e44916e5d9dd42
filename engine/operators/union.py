"""Union: a merge of latent inputs alone, whose rows pass as they come, in no order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.merge import merged_outputs
from gscope.engine.operators.pass_through import PassThroughOperator
from gscope.engine.watermarks.release import Side

if TYPE_CHECKING:
    from gscope.queries.plan.program import MergeNode


def bookkeeping(node: MergeNode) -> PassThroughOperator:
    """Return the running state of a merge of latent inputs.

    Its output is promised the least that its inputs are promised, so operators above it that need
    time are as right as above an ordered merge.
    """
    return PassThroughOperator(node, tuple(Side() for _ in node.inputs), merged_outputs(node))
