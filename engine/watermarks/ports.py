"""Ports: where the rows of one source wait for one operator (control plane, no tuples)."""

from __future__ import annotations

import math
from dataclasses import field
from itertools import takewhile
from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import (
    ENDED,
    NOTHING,
    Bound,
    Span,
    bound_of,
    bounds_by_name,
    span_of,
    spans_by_name,
)
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Shed


@dataclass(slots=True)
class Port:
    """One source of rows of one operator, and its batches that wait to be read.

    Attributes:
        name: the name of the stream or of the upstream query.
        pending: batches with unread rows, in order of arrival.
        bounds: the punctuation of each temporal column; it never falls.
        clock: the time that the source has reached, by column: of a stream the highest finite
            bound, of an upstream query that has ended the clock of its inputs. Its bounds do not
            count: a query that answers the end of its input in pieces promises more than its clock.
        cursor: the sequence number of the last message received; -1 before the first.
        last_judged_sequence: the sequence number of the last batch that was checked for late rows;
            -1 before the first.
        partially_read: the sequence numbers of the pending batches of which a step has read some
            rows.
        late_below: by sequence number, for each pending batch that arrived with late rows, the
            value below which its rows are late: they are in no answer.
        carried: the extents of the rows of this step that wait for a later one, None without any.
            They are a pending batch once the step is evaluated.
        has_ended: whether the source sends no more batches.
        is_repeating: whether the log has redelivered batches that were judged before a restart.
        tuples_in: the rows of all batches received of a stream, each once, since the run began; 0
            for an upstream query.
        counted_sequence: the sequence number of the last batch in ``tuples_in``; -1 before the
            first.
    """

    name: str
    pending: list[Batch] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    clock: dict[str, Bound] = field(default_factory=dict)
    cursor: int = -1
    last_judged_sequence: int = -1
    partially_read: frozenset[int] = frozenset()
    late_below: dict[int, Bound] = field(default_factory=dict)
    carried: tuple[Extent, ...] | None = None
    has_ended: bool = False
    is_repeating: bool = False
    tuples_in: int = 0
    counted_sequence: int = -1

    def on_batch(self, batch: Batch) -> None:
        """Add a batch to those that wait; ignore one that was received already."""
        if batch.sequence > self.cursor:
            self.cursor = batch.sequence
            self.pending.append(batch)
            self.is_repeating = self.is_repeating or batch.sequence <= self.last_judged_sequence
            if batch.sequence > self.counted_sequence:
                self.counted_sequence = batch.sequence
                self.tuples_in += batch.rows

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Raise the bounds."""
        self.cursor = max(self.cursor, heartbeat.sequence)
        bounds = {p.column: p.bound for p in heartbeat.punctuations}
        self.raise_bounds(bounds)
        self.raise_clock(bounds)

    def on_shed(self, gap: Shed) -> None:
        """Skip batches that the log has shed."""
        self.cursor = max(self.cursor, gap.sequence)
        self.forget({gap.sequence})

    def forget(self, sequences: Collection[int]) -> None:
        """Drop pending batches that were shed; their rows are never read."""
        self.pending = [batch for batch in self.pending if batch.sequence not in sequences]

    def on_end(self, sequence: int) -> None:
        """Note that the source has ended: from now on every bound is infinite."""
        self.cursor = max(self.cursor, sequence)
        self.has_ended = True

    def raise_bounds(self, bounds: Mapping[str, Bound]) -> None:
        """Raise each bound to the given one where that is higher."""
        for column, bound in bounds.items():
            self.bounds[column] = max(bound, self.bounds.get(column, NOTHING))

    def raise_clock(self, bounds: Mapping[str, Bound]) -> None:
        """Raise the clock to the finite ones of ``bounds``; this releases nothing."""
        for column, bound in bounds.items():
            if math.isfinite(bound):
                self.clock[column] = max(bound, self.clock.get(column, bound))

    def bound(self, expression: Expression) -> Bound:
        """Return the bound of a monotone expression over rows that have not arrived."""
        return ENDED if self.has_ended else bound_of(expression, bounds_by_name(self.bounds))

    def bound_unread(self, expression: Expression) -> Bound:
        """Return the bound of a monotone expression over all unread rows, arrived or not."""
        waiting = [batch.extents for batch in self.pending]
        if self.carried is not None:
            waiting.append(self.carried)
        leasts = (extents_span(extents, expression)[0] for extents in waiting)
        return min([self.bound(expression), *leasts])

    def new_batches(self) -> list[Batch]:
        """Return the pending batches that were not yet checked for late rows, newest first."""
        judged = self.last_judged_sequence
        return list(takewhile(lambda batch: batch.sequence > judged, reversed(self.pending)))

    def first_needed(self) -> int:
        """Return the sequence number of the oldest message that is still needed."""
        return self.pending[0].sequence if self.pending else self.cursor + 1


def batch_span(batch: Batch, expression: Expression) -> Span:
    """Return the least and the greatest value of an expression in a batch."""
    return extents_span(batch.extents, expression)


def extents_span(extents: Iterable[Extent], expression: Expression) -> Span:
    """Return the least and the greatest value of an expression over rows with these extents.

    A column without an extent (one that is not temporal) may hold any value.
    """
    spans: dict[str, Span] = {each.column: (each.least, each.greatest) for each in extents}
    return span_of(expression, spans_by_name(spans))
