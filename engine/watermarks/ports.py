"""Ports: where rows of one source wait for one operator (control plane, no tuples)."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import (
    ENDED,
    NOTHING,
    Bound,
    Span,
    bound_of,
    named,
    named_spans,
    span_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Shed


@dataclass(slots=True)
class Port:
    """One source of rows of one operator, and what is waiting there.

    Attributes:
        name: of the stream or of the upstream query.
        pending: batches that are not wholly read, in order of arrival.
        bounds: the punctuation of each temporal column; never falls.
        clock: the highest finite bound of each: where time stood when the source ended.
        cursor: sequence number of the last message seen; -1 before the first.
        told: sequence number of the last batch whose lateness has been judged.
        begun: sequence numbers of the pending batches of which a step has read rows.
        floors: of pending batches that came late in part, by sequence number: rows below are in no answer.
        has_ended: no more batches will come.
        is_repeating: batches came again, after a restart, that had been judged before it.
    """

    name: str
    pending: list[Batch] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    clock: dict[str, Bound] = field(default_factory=dict)
    cursor: int = -1
    told: int = -1
    begun: frozenset[int] = frozenset()
    floors: dict[int, Bound] = field(default_factory=dict)
    has_ended: bool = False
    is_repeating: bool = False

    def on_batch(self, batch: Batch) -> None:
        """A batch waits from now on; one seen before (after a restart) is ignored."""
        if batch.sequence > self.cursor:
            self.cursor = batch.sequence
            self.pending.append(batch)
            self.is_repeating = self.is_repeating or batch.sequence <= self.told

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Raise the bounds."""
        self.cursor = max(self.cursor, heartbeat.sequence)
        self.raise_bounds({p.column: p.bound for p in heartbeat.punctuations})

    def on_shed(self, gap: Shed) -> None:
        """Batches were shed: nothing waits in their place."""
        self.cursor = max(self.cursor, gap.sequence)
        self.forget({gap.sequence})

    def forget(self, sequences: Collection[int]) -> None:
        """Batches that wait here were shed; their rows will never be read."""
        self.pending = [batch for batch in self.pending if batch.sequence not in sequences]

    def on_end(self, sequence: int) -> None:
        """Nothing more will come: every bound is infinite."""
        self.cursor = max(self.cursor, sequence)
        self.has_ended = True

    def raise_bounds(self, bounds: Mapping[str, Bound]) -> None:
        """Take over bounds that are higher than the present ones."""
        for column, bound in bounds.items():
            self.bounds[column] = max(bound, self.bounds.get(column, NOTHING))
        self.raise_clock(bounds)

    def raise_clock(self, bounds: Mapping[str, Bound]) -> None:
        """Take over finite bounds that are higher than the present ones; they release nothing."""
        for column, bound in bounds.items():
            if math.isfinite(bound):
                self.clock[column] = max(bound, self.clock.get(column, bound))

    def bound(self, expression: Expression) -> Bound:
        """The bound of a monotone expression over rows that are still to come."""
        return ENDED if self.has_ended else bound_of(expression, named(self.bounds))

    def bound_unread(self, expression: Expression) -> Bound:
        """The bound of a monotone expression over rows that wait here or are still to come."""
        waiting = (batch_span(batch, expression)[0] for batch in self.pending)
        return min([self.bound(expression), *waiting])

    def come(self) -> list[Batch]:
        """The batches whose lateness has not been judged yet: they are the last ones."""
        return list(takewhile(lambda batch: batch.sequence > self.told, reversed(self.pending)))

    def first_needed(self) -> int:
        """The sequence number of the oldest message that is still needed."""
        return self.pending[0].sequence if self.pending else self.cursor + 1


def batch_span(batch: Batch, expression: Expression) -> Span:
    """The least and greatest value of an expression in a batch."""
    return extents_span(batch.extents, expression)


def extents_span(extents: Iterable[Extent], expression: Expression) -> Span:
    """The least and greatest value of an expression over rows with these extents.

    A column whose extent is not known (a column that is not temporal) may hold anything.
    """
    spans: dict[str, Span] = {each.column: (each.least, each.greatest) for each in extents}
    return span_of(expression, named_spans(spans))
