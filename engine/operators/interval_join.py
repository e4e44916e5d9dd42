"""Interval join: rows of two sides whose epochs are at most an interval apart.

The rows of one side, the *first* (the left one; of a RIGHT join, the right one), are answered epoch
after epoch, each with all its partners:

    first side:   low         <= epoch < high             read once
    second side:  low + least <= epoch < high + most      read by each step that it has partners in
                  (least, most: second - first)

So the watermark is the lesser of the first side's punctuation and of the second's less ``most``,
and a row of the second side is retained until the first has passed it by -``least``. No row is held
in memory.

A row of the second side of a FULL join that has no partner is answered with the epoch
``row - least``: its partners are not above that epoch, and at most the interval's width below it.
That far the first side is read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.operators.epochs import EpochOperator, without_rows
from gscope.engine.watermarks.release import EpochRange, Side
from gscope.queries.gsql.nodes import JoinKind
from gscope.queries.plan.logical import first_side
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.operators.base import Work
    from gscope.queries.plan.program import JoinNode
    from gscope.queries.streams.messages import Extent

_LEFT, _RIGHT = 0, 1


@dataclass(slots=True)
class IntervalJoinOperator(EpochOperator):
    """The running state of an interval join.

    ``advance`` releases as ``EpochOperator`` does; rows of a wide side are released to each step in
    which they may have partners, and retained until no later step reads them. Each pair, and each
    row without partners that the join keeps, is answered in exactly one step.

    Attributes:
        kind: INNER, LEFT_OUTER, RIGHT_OUTER or OUTER.
    """

    kind: JoinKind = JoinKind.INNER

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release epochs; read neither side where the rows of one alone give no answer."""
        work = EpochOperator.advance(self, fresh)
        if work is None or self.kind is JoinKind.OUTER:
            return work
        first = first_side(self.kind)
        needed = (first,) if self.kind is not JoinKind.INNER else (_LEFT, _RIGHT)
        if all(work.inputs[side].reads_rows for side in needed):
            return work
        return without_rows(work)


def bookkeeping(node: JoinNode) -> IntervalJoinOperator:
    """Return the running state of an interval join."""
    interval = node.interval_from_first
    first, second = first_side(node.kind), 1 - first_side(node.kind)
    width = interval.width
    windows = {
        first: EpochRange(back=width if node.kind is JoinKind.OUTER else 0),
        second: EpochRange(home=interval.least, ahead=width),
    }
    sides = tuple(Side(epoch, epoch_range=windows[n]) for n, epoch in enumerate(node.epochs))
    return IntervalJoinOperator(node, sides, node.columns, kind=node.kind)
