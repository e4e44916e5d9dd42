"""What an operator may read now: ports, bounds and releases (control plane, no tuples).

A port is one source of rows of one operator: a stream of the log or the result of another query. An
operator that must see whole epochs takes rows below its watermark and no others; what is not released
stays where it is and costs no work.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.plan.expressions import Column, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.queries.plan.expressions import Expression
    from gscope.queries.streams.messages import Batch, Heartbeat

Bound = int | float
"""A bound of a punctuation: an integer, or -inf (nothing promised) or +inf (ended)."""

NOTHING: Bound = -math.inf
ENDED: Bound = math.inf


def bound_of(expression: Expression, bounds: Mapping[str, Bound]) -> Bound:
    """The bound of a monotone ``expression`` given the bounds of its columns.

    f(bound) for finite bounds; ended when all columns have ended; nothing promised when any column
    promises nothing. A column missing in ``bounds`` promises nothing.
    """
    columns = {part.name for part in walk(expression) if isinstance(part, Column)}
    values = {name: bounds.get(name, NOTHING) for name in columns}
    if any(value == NOTHING for value in values.values()):
        return NOTHING
    if values and all(value == ENDED for value in values.values()):
        return ENDED
    if any(value == ENDED for value in values.values()):
        return NOTHING
    result = evaluate(expression, lambda leaf: int(values[leaf.name]))
    return NOTHING if result is None or isinstance(result, bytes) else int(result)


@dataclass(slots=True)
class Port:
    """One source of rows of one operator, and what is waiting there.

    Attributes:
        name: of the stream or of the upstream query.
        pending: batches that are not wholly read, in order of arrival.
        bounds: the punctuation of each temporal column; never falls.
        cursor: sequence number of the last message seen; -1 before the first.
        has_ended: no more batches will come.
    """

    name: str
    pending: list[Batch] = field(default_factory=list)
    bounds: dict[str, Bound] = field(default_factory=dict)
    cursor: int = -1
    has_ended: bool = False

    def on_batch(self, batch: Batch) -> None:
        """A batch waits from now on; one seen before (after a restart) is ignored."""
        if batch.sequence > self.cursor:
            self.cursor = batch.sequence
            self.pending.append(batch)

    def on_heartbeat(self, heartbeat: Heartbeat) -> None:
        """Raise the bounds."""
        self.cursor = max(self.cursor, heartbeat.sequence)
        self.raise_bounds({p.column: p.bound for p in heartbeat.punctuations})

    def on_end(self, sequence: int) -> None:
        """Nothing more will come: every bound is infinite."""
        self.cursor = max(self.cursor, sequence)
        self.has_ended = True

    def raise_bounds(self, bounds: Mapping[str, Bound]) -> None:
        """Take over bounds that are higher than the present ones."""
        for column, bound in bounds.items():
            self.bounds[column] = max(bound, self.bounds.get(column, NOTHING))

    def bound(self, expression: Expression) -> Bound:
        """The bound of a monotone expression over this port's columns."""
        return ENDED if self.has_ended else bound_of(expression, self.bounds)

    def first_needed(self) -> int:
        """The sequence number of the oldest message that is still needed."""
        return self.pending[0].sequence if self.pending else self.cursor + 1


@dataclass(frozen=True, slots=True)
class Release:
    """Rows an operator reads in a step: those with low <= epoch < high.

    Attributes:
        batches: those that hold such rows, for each port.
        straddles: whether some batch also holds rows outside, so that rows must be filtered.
    """

    low: Bound
    high: Bound
    batches: tuple[tuple[str, Batch], ...]
    straddles: bool


def release(ports: Iterable[Port], epoch: Expression, low: Bound, high: Bound) -> Release:
    """What lies in [low, high) at the ports. Changes nothing; see ``discard``."""
    chosen: list[tuple[str, Batch]] = []
    straddles = False
    for port in ports:
        for batch in port.pending:
            least, greatest = epoch_extent(batch, epoch)
            if least < high and greatest >= low:
                chosen.append((port.name, batch))
                straddles = straddles or least < low or greatest >= high
    return Release(low, high, tuple(chosen), straddles)


MAX_STEP_ROWS = 500_000
"""A backlog is released in pieces of about so many rows, at least one epoch each: while a piece is
delivered the next is evaluated, and the memory of a step is bounded."""


def affordable(whole: Release, epoch: Expression, rows: int | None = None) -> Bound:
    """The bound up to which about ``rows`` rows of a release lie, whole epochs and at least one.

    Without ``rows`` it is ``MAX_STEP_ROWS``.
    """
    rows = MAX_STEP_ROWS if rows is None else rows
    if sum(batch.rows for _, batch in whole.batches) <= rows:
        return whole.high
    ends = sorted((epoch_extent(batch, epoch)[1], batch.rows) for _, batch in whole.batches)
    total = 0
    bound = whole.high
    for number, (greatest, count) in enumerate(ends):
        total += count
        if number and total > rows and bound < whole.high:
            return bound
        bound = min(greatest + 1, whole.high)
    return bound


def by_epochs(batches: Sequence[tuple[str, Batch]], epoch: Expression) -> list[list[Batch]]:
    """Batches in groups that have no epoch in common, in the order of their epochs."""
    spans = sorted(
        ((*epoch_extent(batch, epoch), number) for number, (_, batch) in enumerate(batches))
    )
    groups: list[list[Batch]] = []
    reached: Bound = NOTHING
    for least, greatest, number in spans:
        if not groups or least > reached:
            groups.append([])
        groups[-1].append(batches[number][1])
        reached = max(reached, greatest)
    return groups


def discard(ports: Iterable[Port], epoch: Expression, high: Bound) -> None:
    """Forget the batches that lie wholly below ``high``."""
    for port in ports:
        port.pending = [b for b in port.pending if epoch_extent(b, epoch)[1] >= high]


def epoch_extent(batch: Batch, epoch: Expression) -> tuple[Bound, Bound]:
    """The least and greatest epoch of a batch.

    A column whose extent is not known (a column that is not temporal) may hold anything.
    """
    least = {extent.column: extent.least for extent in batch.extents}
    greatest = {extent.column: extent.greatest for extent in batch.extents}
    low = bound_of(epoch, least)
    high = bound_of(epoch, greatest)
    return low, (ENDED if high == NOTHING else high)
