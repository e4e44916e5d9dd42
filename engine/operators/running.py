"""Running aggregation: groups that live across epochs, a row at each epoch's end.

It releases whole epochs as a plain aggregation does. Its state is one row for each live group, left
in a file by each step and read by the next; ``engine/running`` computes the one from the other.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, extents_of
from gscope.engine.operators.epochs import EpochOperator, without_rows
from gscope.engine.watermarks.bounds import ENDED, NO_VALUE, NOTHING, span_of, spans_by_name
from gscope.engine.watermarks.ports import batch_span
from gscope.engine.watermarks.release import Side
from gscope.queries.expressions.expressions import Column
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.watermarks.bounds import Bound, Span
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.program import RunningNode
    from gscope.queries.streams.messages import Extent

MAX_STEP_ANSWERS = 1_000_000
"""About how many rows a step answers at most, while groups live through epochs without tuples."""

MAX_STEP_EPOCHS = 10_000
"""About how many epochs such a step answers at most."""

MAX_DOUBLINGS = 20
"""How often the stride over epochs without groups doubles at most."""


@dataclass(slots=True)
class RunningOperator(EpochOperator):
    """The running state of a running aggregation.

    ``advance`` releases as ``EpochOperator`` does, but no farther than a step should answer, and
    hands ``state`` to every step that closes an epoch: groups that live have an answer in epochs
    without tuples too. ``state`` is replaced by what the step left, and None once no group lives;
    the last step, at the end of the input, leaves none.

    Attributes:
        groupless: how many steps in a row have begun without a group.
    """

    groupless: int = 0

    def reach(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Bound:
        """Return how far the inputs allow, but no farther than a step should go."""
        bound = EpochOperator.reach(self, fresh)
        epoch = self.sides[0].epoch
        assert epoch is not None
        spans = [batch_span(batch, epoch) for _, batch in self.sides[0].pending]
        if self.state is None and not spans:
            return bound
        first = self.watermark
        if self.state is None:
            first = max(first, min((least for least, _ in spans), default=NOTHING))
        if not math.isfinite(first):
            return bound
        answers_at_once = max(1, MAX_STEP_ANSWERS // (1 if self.state is None else self.state.rows))
        # Times without groups are passed in ever longer strides: the next row of a partially read
        # batch is unknown and may be years away.
        stride = MAX_STEP_EPOCHS << min(self.groupless, MAX_DOUBLINGS)
        nearer = first + (stride if self.state is None else min(MAX_STEP_EPOCHS, answers_at_once))
        last = max([self._last(), *(greatest for _, greatest in spans)])
        is_last = bound == ENDED and last < nearer
        return bound if is_last else min(bound, nearer)

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release epochs, with the state if any epoch has closed."""
        had_groups = self.state is not None
        work = EpochOperator.advance(self, fresh)
        if work is not None and work.high > work.low:
            self.groupless = 0 if had_groups else self.groupless + 1
        if work is None or work.high == work.low:
            return None if work is None else without_rows(work)
        last = self._last() if work.high == ENDED else NOTHING
        if work.high == ENDED and last < work.low and not work.inputs[0].reads_rows:
            # The epoch that was open at the end has been answered.
            self.state = None
            return replace(work, state=None)
        extents = self._extents_of(work, last, fresh)
        return replace(work, last=last, extents=extents)

    def _last(self) -> Bound:
        epoch = self.sides[0].epoch
        assert epoch is not None
        return self.sides[0].clock(epoch)

    def _extents_of(
        self, work: Work, last: Bound, fresh: Mapping[str, tuple[Extent, ...]]
    ) -> tuple[Extent, ...]:
        """Return the extents of the answers; live groups have rows in epochs without tuples too."""
        (taken,) = work.inputs
        assert taken.epoch is not None
        columns = taken.spans(fresh)
        read = NO_VALUE
        if taken.reads_rows:
            read = span_of(taken.epoch, spans_by_name(columns))
        epoch = self._epoch_name()
        least = work.low if work.state is not None else max(work.low, read[0])
        greatest = work.high - 1 if math.isfinite(work.high) else max(last, read[1])

        def known(part: Expression) -> Span | None:
            return (least, greatest) if isinstance(part, Column) and part.name == epoch else None

        return extents_of(self._temporal_outputs(), known)

    def _epoch_name(self) -> str:
        epoch = self.sides[0].epoch
        return next(key.name for key in self.keys if key.expression == epoch)


def bookkeeping(node: RunningNode) -> RunningOperator:
    """Return the running state of a running aggregation."""
    epoch = next(key.expression for key in node.keys if key.name == node.epoch)
    return RunningOperator(node, (Side(epoch),), node.columns, node.keys)
