"""Bookkeeping of operators that read whole epochs: aggregation, merge and join.

watermark = min over sides and their ports of epoch(bounds) - slack; a step reads the rows with
old watermark <= epoch < new watermark of every side.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, ended, extents_of, promises
from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NO_VALUE,
    NOTHING,
    Bound,
    bound_of,
    named_spans,
    span_of,
)
from gscope.engine.watermarks.ports import batch_span
from gscope.engine.watermarks.release_size import affordable
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.whole_input import EPOCH

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.storage.written import State
    from gscope.engine.watermarks.bounds import Known, KnownSpan, Span
    from gscope.engine.watermarks.release import ReleasedInput, Side
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.streams.messages import Batch, Extent


@dataclass(slots=True)
class EpochOperator:
    """The running state of an operator that releases by epoch.

    Attributes:
        outputs: the output columns, over the columns of the sides (``Column.input`` says of which).
        keys: computed columns between input and output that ``outputs`` refers to instead; () if
            there are none.
        slack: by how much the watermark stays behind the punctuation, unit of the epoch.
        beyond: 1 where rows at the watermark itself are released too, because more of them may follow: a merge
            puts equal values out as they come. 0 where their epoch must be over.
        released: rows below were read, in batches that had come by then.
        makes_row: whether a whole input gives one row even if it has no rows.
    """

    node: HftaNode
    sides: tuple[Side, ...]
    outputs: tuple[NamedExpression, ...]
    keys: tuple[NamedExpression, ...] = ()
    slack: int = 0
    beyond: int = 0
    watermark: Bound = NOTHING
    state: State | None = None
    late_tuples: int = 0
    released: Bound = NOTHING
    makes_row: bool = False

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release the epochs between the old watermark and the new one."""
        low, released = self.watermark, self.released
        reach = self.reach()
        high = max(released, reach + self.beyond)
        if self.beyond:
            for side in self.sides:
                side.forget_read(released)
        has_new = [side.has_new_below(high) for side in self.sides if self.beyond]
        late = [self._count_late(side, low) for side in self.sides]
        has_fresh = any(name in fresh for side in self.sides for name in side.ports)
        if high == released and not has_fresh and not any(late) and not any(has_new):
            return None
        taken = [side.release(low, high) for side in self.sides]
        if not has_fresh and high > released:
            nearer = max(affordable(taken, high), released + 1)
            if nearer < high:
                high = nearer
                taken = [side.release(low, high) for side in self.sides]
        self.watermark = min(max(low, reach), high)
        self.released = high
        for side in self.sides:
            side.discard(high)
        inputs = tuple(
            replace(side.take_fresh(each, fresh, low, high), late=tuple(each_late))
            for side, each, each_late in zip(self.sides, taken, late, strict=True)
        )
        known = _read_spans(inputs, fresh, low, high)
        extents = extents_of(self._temporal_outputs(), self._through_keys_span(known))
        return Work(
            self.node,
            low,
            high,
            inputs,
            self.state,
            extents,
            read_below=released,
            makes_row=self.makes_row and low <= EPOCH < high,
        )

    def reach(self) -> Bound:
        """How far the watermark may go."""
        return min(side.bound for side in self.sides) - self.slack

    def distance(self, part: Expression) -> int | None:
        """By how much the epoch of a side in the output is at least above the operator's; None of others."""
        return next((side.epoch_range.home for side in self.sides if side.epoch == part), None)

    def clock(self) -> dict[str, Bound]:
        """See ``Operator``."""
        return promises(self.node.schema, self.outputs, self._through_keys(self._last_bound))

    def output_bounds(self) -> dict[str, Bound]:
        """Bounds of the temporal output columns, given that every later epoch is >= the watermark."""
        if self.watermark == ENDED:
            return ended(self.node.schema)
        return promises(self.node.schema, self.outputs, self._through_keys(self._unread_bound))

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Continue from what was committed."""
        self.watermark = watermark
        self.released = released

    def _count_late(self, side: Side, low: Bound) -> list[tuple[str, Batch]]:
        """Batches some rows of which are late; those that are wholly late are counted here."""
        assert side.epoch is not None
        partly = []
        for name, batch in side.take_late(low):
            if batch_span(batch, side.epoch)[1] < low + side.epoch_range.last:
                self.late_tuples += batch.rows
            else:
                partly.append((name, batch))
        return partly

    def _unread_bound(self, part: Expression) -> Bound | None:
        """The bound of columns and epochs over all rows that are not read yet."""
        distance = self.distance(part)
        if distance is not None:
            return self.watermark + distance
        return self.sides[part.input].bound_unread(part) if isinstance(part, Column) else None

    def _last_bound(self, part: Expression) -> Bound | None:
        """Where the clock of columns and epochs stood."""
        if any(part == side.epoch for side in self.sides):
            return max(side.clock(part) for side in self.sides if side.epoch == part)
        return self.sides[part.input].clock(part) if isinstance(part, Column) else None

    def _through_keys(self, known: Known) -> Known:
        """What is known of output expressions when ``known`` is known of input expressions."""
        if not self.keys:
            return known
        keys = {key.name: bound_of(key.expression, known) for key in self.keys}
        return lambda part: keys.get(part.name, NOTHING) if isinstance(part, Column) else None

    def _through_keys_span(self, known: KnownSpan) -> KnownSpan:
        if not self.keys:
            return known
        keys = {key.name: span_of(key.expression, known) for key in self.keys}
        return lambda part: keys.get(part.name, ANYTHING) if isinstance(part, Column) else None

    def _temporal_outputs(self) -> list[NamedExpression]:
        schema = self.node.schema
        return [c for c in self.outputs if schema[c.name].ordering.is_temporal]


def _read_spans(
    inputs: tuple[ReleasedInput, ...],
    fresh: Mapping[str, tuple[Extent, ...]],
    low: Bound,
    high: Bound,
) -> KnownSpan:
    """The spans of columns and epochs over the rows that a step reads."""
    spans = [taken.spans(fresh) for taken in inputs]
    epochs: dict[Expression, Span] = {}
    for taken, columns in zip(inputs, spans, strict=True):
        assert taken.epoch is not None
        if taken.reads_rows:
            least, greatest = span_of(taken.epoch, named_spans(columns))
            last = high - 1 if isinstance(high, int) else high
            home = taken.epoch_range.home
            epochs[taken.epoch] = (
                max(least, low + home),
                min(greatest, last + taken.epoch_range.last),
            )
        else:
            epochs[taken.epoch] = NO_VALUE

    def known(part: Expression) -> Span | None:
        if part in epochs:
            return epochs[part]
        if not isinstance(part, Column):
            return None
        is_read = inputs[part.input].reads_rows
        return spans[part.input].get(part.name, ANYTHING) if is_read else NO_VALUE

    return known
