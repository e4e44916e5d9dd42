"""Sliding windows: a row for each window and group, from slices that enter once and leave once.

The operator's epoch is the number of a slice (``queries/plan/windows/slicing.py``), and its
watermark stands at ends of windows only. A step answers the windows that end between the two
watermarks:

    slices:  low <= number < high          read once; the state holds those of windows still open
    windows: low < number at the end <= high

Where rows are kept instead of slices (``WindowNode.slices`` is None), a slice is one time of the
ordering column, and a step reads again the rows that its first window shares with the one before:

    rows:    low - kept <= time < high

When the input ends, windows follow until none holds a row.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.engine.operators.base import Work, extents_of
from gscope.engine.operators.epochs import EpochOperator, without_rows
from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NO_VALUE,
    NOTHING,
    enclosing_span,
    span_of,
    spans_by_name,
)
from gscope.engine.watermarks.ports import batch_span, extents_span
from gscope.engine.watermarks.release import EpochRange, Side
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import SLICE, WINDOW_END, WINDOW_START
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gscope.engine.watermarks.bounds import Bound, Span
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.windows.numbered import NumberedWindows
    from gscope.queries.streams.messages import Extent

MAX_STEP_ANSWERS = 1_000_000
"""About how many rows a step answers at most, where windows overlap."""

MAX_DOUBLINGS = 20
"""How often the stride over windows without rows doubles at most."""


@dataclass(slots=True)
class WindowOperator(EpochOperator):
    """The running state of a window.

    ``advance`` releases as ``EpochOperator`` does, up to the end of a window: a heartbeat that
    closes none makes no step. It hands ``state`` to every step that closes a window. The data plane
    replaces it by the slices of windows that are still open, with their least and greatest number
    as the extent of ``SLICE``, or by None if there are none. Where rows are kept there is no state:
    they wait in their batches.

    Attributes:
        idle: how many steps in a row have begun without a state.
    """

    idle: int = 0
    _open: tuple[Bound, Bound] = (NOTHING, NOTHING)

    def advance(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Work | None:
        """Release slices, with the state if any window has closed."""
        had_state = self.state is not None
        work = EpochOperator.advance(self, fresh)
        if work is None:
            return None
        if work.high == work.low:
            return without_rows(work)
        self.idle = 0 if had_state or self.window_node.slices is None else self.idle + 1
        spans = self._edges_of(self._answered(work, fresh))
        extents = extents_of(
            self._temporal_outputs(),
            lambda part: spans.get(part.name, ANYTHING) if isinstance(part, Column) else None,
        )
        return replace(work, extents=extents)

    def reach(self, fresh: Mapping[str, tuple[Extent, ...]]) -> Bound:
        """Return the end of the last window that the inputs allow and a step should answer."""
        bound = EpochOperator.reach(self, fresh)
        if bound == ENDED and self.window_node.window.overlap > 1:
            # What arrives with the end of the input is read before more windows are answered.
            spans = [extents_span(fresh[n], self._epoch) for n in self._side.ports if n in fresh]
            greatest = max((most for _, most in spans), default=ENDED)
            bound = greatest + 1 if math.isfinite(greatest) else bound
        if bound == NOTHING or bound < self._end_of_open():
            return min(bound, self.watermark)
        farthest = self._farthest()
        if bound != ENDED:
            last = self.windows.last_complete(math.floor(bound))
            return self.windows.end_slice(last if farthest is None else min(last, farthest))
        greatest = self._held()[1]
        if farthest is None or not math.isfinite(greatest):
            return ENDED
        last = self.windows.last_holding(math.ceil(greatest))
        return ENDED if last <= farthest else self.windows.end_slice(farthest)

    def whole(self, bound: Bound) -> Bound:
        """Return the first end of a window from ``bound`` on."""
        if not math.isfinite(bound):
            return bound
        return self.windows.end_slice(self.windows.first_open(math.ceil(bound) - 1))

    def goal(self) -> Bound:
        """Return the end of the first window that holds a row; -inf if no row waits."""
        needed = self.watermark + self._side.epoch_range.first
        spans = [batch_span(batch, self._epoch) for _, batch in self._side.pending]
        firsts = [max(least, self.watermark) for least, most in spans if most >= needed]
        if self.state is not None:
            firsts.append(self.watermark)
        first = min(firsts, default=NOTHING)
        return self.whole(first + 1)

    def distance(self, part: Expression) -> int | None:  # noqa: ARG002
        """Return None: no output is a slice's number."""
        return None

    def bound_at(self, part: Expression, watermark: Bound) -> Bound | None:
        """Return the edge of the first window that is open at ``watermark``."""
        if not isinstance(part, Column) or part.name not in (WINDOW_START, WINDOW_END):
            return None
        if not math.isfinite(watermark):
            return watermark
        first = self.windows.first_open(math.ceil(watermark))
        return self._edges_of((first, first))[part.name][0]

    @property
    def open_window_end(self) -> Bound:
        """The end of the first window that is not answered, in the unit of its column."""
        end = self.bound_at(Column(WINDOW_END, GsqlType.INT, is_nullable=False), self.watermark)
        assert end is not None
        return end

    @property
    def window_node(self) -> WindowNode:
        """The configured operator."""
        assert isinstance(self.node, WindowNode)
        return self.node

    @property
    def windows(self) -> NumberedWindows:
        """The windows by the numbers of their slices."""
        return self.window_node.windows

    @property
    def _side(self) -> Side:
        return self.sides[0]

    @property
    def _epoch(self) -> Expression:
        assert self._side.epoch is not None
        return self._side.epoch

    def _unread_bound(self, part: Expression) -> Bound | None:
        """Return the bound of an edge over all windows that are not answered."""
        return self.bound_at(part, self.watermark)

    def _last_bound(self, part: Expression) -> Bound | None:
        """Return the edge of the window that was open at the input's clock."""
        return self.bound_at(part, self._side.clock(self._epoch))

    def _held(self) -> Span:
        """Return the span of the slices that the state and the waiting batches hold."""
        spans = [batch_span(batch, self._epoch) for _, batch in self._side.pending]
        return enclosing_span([*spans, self._state_span()])

    def _state_span(self) -> Span:
        if self.state is None:
            return NO_VALUE
        extent = self.state.extent(SLICE)
        return extent.least, extent.greatest

    def _end_of_open(self) -> Bound:
        """Return the number of the slice at the end of the first window that is not answered."""
        if self._open[0] != self.watermark:
            self._open = self.watermark, self.whole(self.watermark + 1)
        return self._open[1]

    def _farthest(self) -> int | None:
        """Return the last window that a step should answer; None if it may answer all.

        A row, and a group of the state, is in at most as many answers as windows overlap. If that
        might be too many, windows are counted with all rows that have entered until then; those
        of a batch are assumed to be spread evenly over its span.
        """
        overlap = self.window_node.window.overlap
        batches = [batch for _, batch in self._side.pending]
        live = 0 if self.state is None else self.state.live_rows
        if overlap == 1 or (sum(b.rows for b in batches) + live) * overlap <= MAX_STEP_ANSWERS:
            return None
        least, greatest = self._held()
        first = max(self.watermark, least) if self.state is None else self.watermark
        if not (math.isfinite(first) and math.isfinite(greatest)):
            return None
        before = self.windows.last_complete(math.floor(first))
        spanned = max(1, self.windows.first_open(math.ceil(greatest)) - before)
        width = max(1, greatest - first + 1) / spanned
        # What was read is in the state; where rows are kept, each window reads its own again.
        read_below = first if self.window_node.slices is not None else NOTHING
        spans = [
            (max(begin, read_below), end, batch.rows)
            for batch in batches
            for begin, end in [batch_span(batch, self._epoch)]
        ]
        most = min(spanned + overlap, MAX_STEP_ANSWERS << MAX_DOUBLINGS)
        at_once = bisect_right(
            range(1, most + 1),
            MAX_STEP_ANSWERS,
            key=lambda count: math.ceil(count * (live + _begun(spans, first + count * width))),
        )
        return before + max(1, at_once, math.floor(self._stride(at_once, first, width)))

    def _stride(self, at_once: int, first: Bound, width: float) -> float:
        """Return how many windows to pass while none has rows, up to the first of a new batch.

        Strides grow: the next row of a partially read batch is unknown and may be years away.
        """
        if self.state is not None:
            return 0
        begins = (
            batch_span(batch, self._epoch)[0]
            for name, batch in self._side.pending
            if batch.sequence not in self._side.ports[name].partially_read
        )
        known = (min(begins, default=math.inf) - first) / width
        return min(max(1, at_once) << min(self.idle, MAX_DOUBLINGS), known)

    def _answered(self, work: Work, fresh: Mapping[str, tuple[Extent, ...]]) -> Span:
        """Return the first and the last window that may have rows in the answers of ``work``."""
        (taken,) = work.inputs
        read = NO_VALUE
        if taken.reads_rows:
            read = span_of(self._epoch, spans_by_name(taken.spans(fresh)))
        least, greatest = enclosing_span([read, self._state_span()])
        starts = [
            self.windows.first_open(math.floor(n)) for n in (work.low, least) if math.isfinite(n)
        ]
        ends = (
            [self.windows.last_complete(math.floor(work.high))] if math.isfinite(work.high) else []
        )
        if math.isfinite(greatest):
            ends.append(self.windows.last_holding(math.ceil(greatest)))
        first, last = max(starts, default=NOTHING), min(ends, default=ENDED)
        return first, max(first, last)

    def _edges_of(self, answered: Span) -> dict[str, Span]:
        """Return the spans of the columns of windows, from a first window to a last one."""
        first, last = answered
        return {
            name: (self._edge(name, first), self._edge(name, last))
            for name in (WINDOW_START, WINDOW_END)
        }

    def _edge(self, name: str, window: Bound) -> Bound:
        """Return an edge of a window in the unit of its column; infinite as ``window`` is."""
        if not math.isfinite(window):
            return window
        return self.window_node.edge(name, math.floor(window))


def _begun(spans: Iterable[tuple[Bound, Bound, int]], behind: float) -> float:
    """Return how many rows of batches, each with its span, are below ``behind`` if spread evenly.

    The span of late rows may be empty.
    """
    return sum(
        rows * max(0, min(1, (behind - begin) / max(1, end - begin + 1)))
        for begin, end, rows in spans
    )


def bookkeeping(node: WindowNode) -> WindowOperator:
    """Return the running state of a window."""
    back = node.window.kept if node.slices is None else 0
    side = Side(node.epoch_expression, epoch_range=EpochRange(back=back))
    return WindowOperator(node, (side,), node.columns)
