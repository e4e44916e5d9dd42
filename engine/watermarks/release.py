"""Release: which rows an operator may read now (control plane, no tuples).

An operator that works on whole epochs reads only rows below its watermark. Other rows stay where
they are and cost no work. An operator with several inputs has a side for each, with an epoch
expression of its own; all sides are released up to the same value.
"""

from __future__ import annotations

from dataclasses import field, replace
from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NOTHING,
    Bound,
    Span,
    bound_of,
    bounds_by_name,
    enclosing_span,
    negated_bound,
)
from gscope.engine.watermarks.ports import Port, batch_span, extents_span
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from gscope.engine.watermarks.trim import Trim
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.streams.messages import Batch, Extent

Fresh = dict[str, "tuple[Extent, ...]"]
"""The queries that produce rows in this step, with the extents of their temporal columns."""


@dataclass(frozen=True, slots=True)
class EpochRange:
    """Which rows of one side a step reads, relative to its epochs [low, high).

    By default, the rows of exactly these epochs. In an interval join, a row of one side has its
    partners in a range of epochs of the other. A step then reads that side over a wider range, and
    rows that later steps read again are kept.

    Attributes:
        home: the side's value minus the epoch that answers it; 0 if the two are the same.
        back: how far below ``low + home`` the step reads.
        ahead: how far above ``high + home`` the step reads.
    """

    home: int = 0
    back: int = 0
    ahead: int = 0

    @property
    def first(self) -> int:
        """The first value that a step reads, minus its first epoch."""
        return self.home - self.back

    @property
    def last(self) -> int:
        """The end of the values that a step reads, minus the end of its epochs."""
        return self.home + self.ahead

    @property
    def is_wide(self) -> bool:
        """Whether several steps read the same row."""
        return self.first < self.last


@dataclass(frozen=True, slots=True)
class ReleasedInput:
    """What one side of an operator reads in a step: its rows with low <= epoch < high.

    ``EpochRange`` widens these bounds.

    Attributes:
        epoch: the epoch over the side's columns; None for a side that reads each row as it arrives.
        batches: the pending batches to read, each with the name of its port.
        partially_read: those of ``batches`` of which an earlier step has read some rows.
        straddles: whether ``batches`` also hold rows outside [low, high), rows that are late, or
            rows that an earlier step has read, which may be within: ``low`` is the watermark, and
            lags behind what was read if order is allowed to vary.
        upstream: the upstream queries whose rows of this step are read too.
        carries: the upstream queries that may produce rows at or above ``high``, to be kept.
        late: batches that arrived with rows below ``low``; these rows are counted, not read.
        overdue: upstream queries whose rows of this step may include such late rows.
        epoch_range: the range of rows that a step reads, relative to its epochs.
        late_below: batches that arrived with late rows, each with the value below which its rows
            are late.
        trim: the rows to leave out because a sample's threshold fell; None for none.
    """

    epoch: Expression | None = None
    batches: tuple[tuple[str, Batch], ...] = ()
    partially_read: tuple[tuple[str, Batch], ...] = ()
    straddles: bool = False
    upstream: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    late: tuple[tuple[str, Batch], ...] = ()
    overdue: tuple[str, ...] = ()
    epoch_range: EpochRange = EpochRange()
    late_below: tuple[tuple[tuple[str, Batch], Bound], ...] = ()
    trim: Trim | None = None

    @property
    def reads_rows(self) -> bool:
        """Whether there may be rows to evaluate."""
        return bool(self.batches or self.upstream)

    @property
    def rows(self) -> int:
        """The rows of all batches read: an upper bound of the rows released from them."""
        return sum(batch.rows for _, batch in self.batches)

    def spans(self, fresh: Mapping[str, tuple[Extent, ...]]) -> dict[str, Span]:
        """Return the span of each temporal column over all rows read."""
        read = [batch.extents for _, batch in self.batches]
        read += [fresh[query] for query in self.upstream]
        spans = [{e.column: (e.least, e.greatest) for e in extents} for extents in read]
        columns = {column for each in spans for column in each}
        return {c: enclosing_span([each.get(c, ANYTHING) for each in spans]) for c in columns}


@dataclass(slots=True)
class Side:
    """One input of an operator: rows of one schema, from one port or from several.

    Attributes:
        epoch: the expression whose value decides which rows are released; None to release all.
        ports: the ports of its streams and upstream queries, by name.
        epoch_range: the range of rows that a step reads, relative to its epochs.
    """

    epoch: Expression | None = None
    ports: dict[str, Port] = field(default_factory=dict)
    epoch_range: EpochRange = field(default_factory=EpochRange)

    @property
    def bound(self) -> Bound:
        """The bound below which epochs are complete at all ports: the least of theirs."""
        return min((self.port_bound(port) for port in self.ports.values()), default=ENDED)

    def port_bound(self, port: Port) -> Bound:
        """Return the bound below which epochs are complete at one port."""
        assert self.epoch is not None
        return port.bound(self.epoch) - self.epoch_range.last

    @property
    def has_ended(self) -> bool:
        """Whether all ports have ended."""
        return all(port.has_ended for port in self.ports.values())

    @property
    def pending(self) -> list[tuple[str, Batch]]:
        """The batches that wait to be read, each with the name of its port."""
        return [(port.name, batch) for port in self.ports.values() for batch in port.pending]

    def bound_unread(self, expression: Expression) -> Bound:
        """Return the bound of an expression over the unread rows of this side."""
        if self._is_falling(expression):
            return negated_bound(self.bound_unread(call("neg_int", expression)))
        return min((port.bound_unread(expression) for port in self.ports.values()), default=ENDED)

    def _is_falling(self, expression: Expression) -> bool:
        """Return whether ``expression`` is a column whose punctuation bounds its negative."""
        return isinstance(expression, Column) and any(
            f"-{expression.name}" in promised
            for port in self.ports.values()
            for promised in (port.bounds, port.clock)
        )

    def clock(self, expression: Expression) -> Bound:
        """Return the highest bound of an expression by any port's clock; see ``Port.clock``.

        Of a falling column it is the lowest.
        """
        if self._is_falling(expression):
            return negated_bound(self.clock(call("neg_int", expression)))
        clocks = (bound_of(expression, bounds_by_name(port.clock)) for port in self.ports.values())
        return max(clocks, default=NOTHING)

    def release(self, low: Bound, high: Bound) -> ReleasedInput:
        """Return what a step for the epochs [low, high) reads.

        Does not change the ports; ``discard`` does.
        """
        assert self.epoch is not None
        low, high = low + self.epoch_range.first, high + self.epoch_range.last
        chosen: list[tuple[str, Batch]] = []
        straddles = False
        for name, batch in self.pending:
            least, greatest = batch_span(batch, self.epoch)
            if least < high and greatest >= low:
                chosen.append((name, batch))
                straddles = straddles or least < low or greatest >= high
        partially_read = tuple(
            (n, b) for n, b in chosen if b.sequence in self.ports[n].partially_read
        )
        late_below = tuple(
            ((n, b), self.ports[n].late_below[b.sequence])
            for n, b in chosen
            if b.sequence in self.ports[n].late_below
        )
        return ReleasedInput(
            self.epoch,
            tuple(chosen),
            partially_read,
            straddles or bool(late_below) or bool(partially_read),
            epoch_range=self.epoch_range,
            late_below=late_below,
        )

    def take_fresh(
        self, taken: ReleasedInput, fresh: Mapping[str, tuple[Extent, ...]], low: Bound, high: Bound
    ) -> ReleasedInput:
        """Return ``taken`` with the rows that upstream queries produce in the same step."""
        assert self.epoch is not None
        spans = {
            name: extents_span(fresh[name], self.epoch) for name in self.ports if name in fresh
        }
        first, last = self.epoch_range.first, self.epoch_range.last
        return replace(
            taken,
            upstream=tuple(name for name, span in spans.items() if span[0] < high + last),
            carries=tuple(name for name, span in spans.items() if span[1] >= high + first),
            overdue=tuple(name for name, span in spans.items() if span[0] < low + last),
        )

    def note_carried(
        self, carries: Collection[str], fresh: Mapping[str, tuple[Extent, ...]]
    ) -> None:
        """Note which upstream queries give rows in this step that wait for a later one.

        Until the step is evaluated, the extents of these rows are all that is known of them.
        """
        for name, port in self.ports.items():
            port.carried = fresh[name] if name in carries else None

    def take_late(self, low: Bound) -> list[tuple[str, Batch]]:
        """Return the batches, new since the last call, with rows of epochs below ``low``.

        Those epochs were complete, so the rows are late. Where several steps read the same row,
        ``Port.late_below`` remembers the bound.
        """
        assert self.epoch is not None
        low += self.epoch_range.last
        late: list[tuple[str, Batch]] = []
        for port in self.ports.values():
            new = port.new_batches()
            below = [b for b in reversed(new) if batch_span(b, self.epoch)[0] < low]
            late += [(port.name, batch) for batch in below]
            if self.epoch_range.is_wide:
                port.late_below.update((batch.sequence, low) for batch in below)
            port.last_judged_sequence = max(
                [port.last_judged_sequence, *(batch.sequence for batch in new)]
            )
        return late

    def has_new_below(self, high: Bound) -> bool:
        """Return whether a batch, new since the last ``take_late``, has rows below ``high``."""
        assert self.epoch is not None
        return any(
            batch_span(batch, self.epoch)[0] < high
            for port in self.ports.values()
            for batch in port.new_batches()
        )

    def forget_read(self, released: Bound) -> None:
        """Drop redelivered batches whose rows were all read before a restart."""
        assert self.epoch is not None
        for port in self.ports.values():
            if not port.is_repeating:
                continue
            port.is_repeating = False
            port.pending = [
                batch
                for batch in port.pending
                if batch.sequence > port.last_judged_sequence
                or batch.sequence in port.partially_read
                or batch_span(batch, self.epoch)[0] >= released
            ]

    def discard(self, high: Bound) -> None:
        """Drop the batches that no step from ``high`` on reads."""
        assert self.epoch is not None
        needed, read = high + self.epoch_range.first, high + self.epoch_range.last
        for port in self.ports.values():
            spans = [(batch, batch_span(batch, self.epoch)) for batch in port.pending]
            # a batch without an extent may hold any value, so it is kept until the end
            port.pending = [b for b, span in spans if span[1] >= needed and high != ENDED]
            port.partially_read = frozenset(
                b.sequence for b, span in spans if span[0] < read and span[1] >= needed
            )
            waiting = {batch.sequence for batch in port.pending}
            port.late_below = {n: low for n, low in port.late_below.items() if n in waiting}
