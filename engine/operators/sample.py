"""Sampling: groups of whole windows, sampled in the order of their tuples.

It releases whole windows as a plain aggregation does. Its state is that of the stateful functions,
one row for each supergroup of the last window that had tuples; a step without tuples leaves it as
it is. ``engine/sampling`` computes the next state.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator, without_rows
from gscope.engine.watermarks.bounds import ENDED
from gscope.engine.watermarks.release import Side
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.sampling_operator import SampleNode
    from gscope.queries.streams.messages import Extent


@dataclass(slots=True)
class SampleOperator(EpochOperator):
    """The running state of a sampling operator.

    ``state`` goes to every step that reads rows, and is replaced by what that step left. The step
    at the end of the input leaves none.
    """

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release whole windows, with the state if there are rows."""
        work = EpochOperator.advance(self, fresh)
        if self.watermark == ENDED and (work is None or not _reads(work)):
            self.state = None
        if work is None or _reads(work):
            return work
        return without_rows(work)

    def goal(self) -> Bound:
        """Return the watermark that releases the first row that waits; a state waits for rows."""
        state, self.state = self.state, None
        try:
            return EpochOperator.goal(self)
        finally:
            self.state = state


def _reads(work: Work) -> bool:
    return any(taken.reads_rows for taken in work.inputs)


def bookkeeping(node: SampleNode) -> SampleOperator:
    """Return the running state of a sampling operator."""
    return SampleOperator(node, (Side(node.epoch_expression),), node.columns, node.keys)
