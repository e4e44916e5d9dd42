"""Bookkeeping of operators that release whole epochs: aggregation, merge and join.

watermark = min over sides and their ports of epoch(bounds) - slack; a step reads the rows with
old watermark <= epoch < new watermark of every side.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, ended, extents_of, promises
from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NO_VALUE,
    NOTHING,
    Bound,
    bound_of,
    span_of,
    spans_by_name,
)
from gscope.engine.watermarks.ports import batch_span
from gscope.engine.watermarks.release_size import affordable_bound
from gscope.queries.expressions.expressions import Column
from gscope.queries.plan.whole_input import EPOCH
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.engine.storage.parquet_files import State
    from gscope.engine.watermarks.bounds import Known, KnownSpan, Span
    from gscope.engine.watermarks.release import ReleasedInput, Side
    from gscope.queries.expressions.expressions import Expression, NamedExpression
    from gscope.queries.plan.program import HftaNode
    from gscope.queries.streams.messages import Batch, Extent


@dataclass(slots=True)
class EpochOperator:
    """The running state of an operator that releases by epoch.

    ``advance`` releases, of every side, the rows from the old watermark up to the new one, each row
    in exactly one step; a backlog is released in pieces, at least one epoch each. It retains
    batches with rows at or above the new watermark and forgets all others. Rows that arrive below
    the watermark are late: they are counted and in no answer. ``watermark`` and ``released`` never
    fall. Columns of the output besides the epoch are promised as the unread rows allow, among them
    rows of the same step that wait.

    Attributes:
        outputs: the output columns, over the columns of the sides (``Column.input`` names the
            side).
        keys: computed columns between input and output that ``outputs`` refers to instead; () if
            there are none.
        slack: how far the watermark stays behind the punctuation, in the unit of the epoch.
        beyond: 1 where rows at the watermark itself are released too, although more of them may
            follow: a merge forwards equal values as they arrive. 0 where their epoch must be over.
        released: the bound below which all rows of batches that had arrived were read.
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
        reach = self.reach(fresh)
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
            nearer = self.whole(max(affordable_bound(taken, high), released + 1))
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
        for side, each in zip(self.sides, inputs, strict=True):
            side.note_carried(each.carries, fresh)
        known = _read_spans(inputs, fresh, low, high)
        extents = extents_of(self._temporal_outputs(), self.spans_through_keys(known))
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

    def reach(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Bound:  # noqa: ARG002
        """Return how far the inputs let the watermark go; ``fresh`` as in ``advance``."""
        return min(side.bound for side in self.sides) - self.slack

    def whole(self, bound: Bound) -> Bound:
        """Return the first value from ``bound`` on at which a step may end: any."""
        return bound

    def goal(self) -> Bound:
        """Return the watermark that releases the first row that waits; -inf if none waits."""
        firsts: list[Bound] = []
        for side in self.sides:
            assert side.epoch is not None
            for _, batch in side.pending:
                least, greatest = batch_span(batch, side.epoch)
                first = max(least, self.released + side.epoch_range.last)
                if first <= greatest:
                    firsts.append(first - side.epoch_range.last)
        if self.state is not None:
            # What lives emits a row at the end of every epoch.
            firsts.append(self.watermark)
        return min(firsts, default=NOTHING) + 1 - self.beyond

    def distance(self, part: Expression) -> int | None:
        """Return how far a side's epoch in the output is at least above the operator's.

        None for expressions that are not the epoch of a side.
        """
        return next((side.epoch_range.home for side in self.sides if side.epoch == part), None)

    def bound_at(self, part: Expression, watermark: Bound) -> Bound | None:
        """Return the bound of a part of the output if the operator stood at ``watermark``.

        None of parts that do not follow from it.
        """
        distance = self.distance(part)
        return None if distance is None else watermark + distance

    def clock(self) -> dict[str, Bound]:
        """See ``Operator``."""
        return promises(self.node.schema, self.outputs, self._through_keys(self._last_bound))

    def output_bounds(self) -> dict[str, Bound]:
        """Return bounds of the temporal output columns: every later epoch is >= the watermark."""
        if self.watermark == ENDED:
            return ended(self.node.schema)
        return promises(self.node.schema, self.outputs, self._through_keys(self._unread_bound))

    def restore(self, watermark: Bound, released: Bound) -> None:
        """Continue from what was committed."""
        self.watermark = watermark
        self.released = released

    def _count_late(self, side: Side, low: Bound) -> list[tuple[str, Batch]]:
        """Return the batches that have late rows and others; count those with late rows only."""
        assert side.epoch is not None
        partly = []
        for name, batch in side.take_late(low):
            if batch_span(batch, side.epoch)[1] < low + side.epoch_range.last:
                self.late_tuples += batch.rows
            else:
                partly.append((name, batch))
        return partly

    def _unread_bound(self, part: Expression) -> Bound | None:
        """Return the bound of a column or epoch over all unread rows."""
        bound = self.bound_at(part, self.watermark)
        if bound is not None:
            return bound
        return self.sides[part.input].bound_unread(part) if isinstance(part, Column) else None

    def _last_bound(self, part: Expression) -> Bound | None:
        """Return where the clock of a column or epoch stood."""
        if any(part == side.epoch for side in self.sides):
            return max(side.clock(part) for side in self.sides if side.epoch == part)
        return self.sides[part.input].clock(part) if isinstance(part, Column) else None

    def _through_keys(self, known: Known) -> Known:
        """Return the bounds of output expressions, given those of input expressions."""
        if not self.keys:
            return known
        keys = {key.name: bound_of(key.expression, known) for key in self.keys}
        return lambda part: keys.get(part.name, NOTHING) if isinstance(part, Column) else None

    def spans_through_keys(self, known: KnownSpan) -> KnownSpan:
        """Return the spans of output expressions, given those of input expressions."""
        if not self.keys:
            return known
        keys = {key.name: span_of(key.expression, known) for key in self.keys}
        return lambda part: keys.get(part.name, ANYTHING) if isinstance(part, Column) else None

    def _temporal_outputs(self) -> list[NamedExpression]:
        schema = self.node.schema
        return [c for c in self.outputs if schema[c.name].ordering.is_temporal]


def without_rows(work: Work) -> Work:
    """Return ``work`` that reads nothing: rows are kept, and late ones counted."""
    unread = tuple(
        replace(taken, batches=(), partially_read=(), late_below=(), straddles=False, upstream=())
        for taken in work.inputs
    )
    return replace(work, inputs=unread, state=None)


def _read_spans(
    inputs: tuple[ReleasedInput, ...],
    fresh: Mapping[str, tuple[Extent, ...]],
    low: Bound,
    high: Bound,
) -> KnownSpan:
    """Return the spans of columns and epochs over the rows that a step reads."""
    spans = [taken.spans(fresh) for taken in inputs]
    epochs: dict[Expression, Span] = {}
    for taken, columns in zip(inputs, spans, strict=True):
        assert taken.epoch is not None
        if taken.reads_rows:
            least, greatest = span_of(taken.epoch, spans_by_name(columns))
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
