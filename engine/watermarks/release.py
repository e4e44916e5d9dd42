"""What an operator may read now (control plane, no tuples).

An operator that must see whole epochs takes rows below its watermark and no others; what is not released
stays where it is and costs no work. An operator with several inputs has a side for each, with an epoch
expression of its own; all sides are released up to the same value.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from gscope.engine.watermarks.bounds import (
    ANYTHING,
    ENDED,
    NOTHING,
    Bound,
    Span,
    bound_of,
    joined,
    named,
    turned,
)
from gscope.engine.watermarks.ports import Port, batch_span, extents_span
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.streams.messages import Batch, Extent

Fresh = dict[str, "tuple[Extent, ...]"]
"""Queries that give rows in this step, with the extents of their temporal columns."""


@dataclass(frozen=True, slots=True)
class Window:
    """The rows of one side that a step with the epochs [low, high) reads.

    Mostly they are the rows of these epochs. In an interval join a row of one side has its partners in
    a range of epochs of the other, so that side is read further, and what later steps read again stays.

    Attributes:
        home: value - epoch of a row that is answered with its epoch.
        back: how far below the home of ``low`` rows are read.
        ahead: how far beyond the home of ``high``.
    """

    home: int = 0
    back: int = 0
    ahead: int = 0

    @property
    def first(self) -> int:
        """The first value that is read, less the first epoch."""
        return self.home - self.back

    @property
    def last(self) -> int:
        """The end of the values that are read, less the end of the epochs."""
        return self.home + self.ahead

    @property
    def is_wide(self) -> bool:
        """Whether rows are read by more than one step."""
        return self.first < self.last


@dataclass(frozen=True, slots=True)
class Taken:
    """What one side of an operator reads in a step: its rows with low <= epoch < high, see ``Window``.

    Attributes:
        epoch: over the side's columns; None for a side that takes every row as it comes.
        batches: pending batches to read, each with the name of its port.
        begun: those of ``batches`` of which an earlier step read rows.
        straddles: whether rows outside [low, high) are among them.
        upstream: the queries whose rows of this very step are read as well.
        carries: the upstream queries that may give rows from ``high`` on, which must be kept.
        late: batches that came although rows of theirs are below ``low``: these rows are to be
            counted, nobody reads them.
        overdue: upstream queries of which the same is true.
        window: what rows of a step are, seen from its epochs.
        floors: batches some rows of which were late when they came, each with the value below which.
    """

    epoch: Expression | None = None
    batches: tuple[tuple[str, Batch], ...] = ()
    begun: tuple[tuple[str, Batch], ...] = ()
    straddles: bool = False
    upstream: tuple[str, ...] = ()
    carries: tuple[str, ...] = ()
    late: tuple[tuple[str, Batch], ...] = ()
    overdue: tuple[str, ...] = ()
    window: Window = Window()
    floors: tuple[tuple[tuple[str, Batch], Bound], ...] = ()

    @property
    def reads_rows(self) -> bool:
        """Whether there can be rows to evaluate."""
        return bool(self.batches or self.upstream)

    @property
    def rows(self) -> int:
        """Rows of the batches read, an upper bound of what is released from them."""
        return sum(batch.rows for _, batch in self.batches)

    def spans(self, fresh: Mapping[str, tuple[Extent, ...]]) -> dict[str, Span]:
        """The span of each temporal column over everything read."""
        read = [batch.extents for _, batch in self.batches]
        read += [fresh[query] for query in self.upstream]
        spans = [{e.column: (e.least, e.greatest) for e in extents} for extents in read]
        columns = {column for each in spans for column in each}
        return {c: joined([each.get(c, ANYTHING) for each in spans]) for c in columns}


@dataclass(slots=True)
class Side:
    """One input of an operator: rows of one schema, from one port or from several.

    Attributes:
        epoch: the expression whose value decides what is released; None to take all rows.
        ports: by name; streams of the log and upstream queries.
        window: what a step reads, seen from its epochs.
    """

    epoch: Expression | None = None
    ports: dict[str, Port] = field(default_factory=dict)
    window: Window = field(default_factory=Window)

    @property
    def bound(self) -> Bound:
        """The bound of the epochs whose rows have all come: the minimum over the ports."""
        return min((self.port_bound(port) for port in self.ports.values()), default=ENDED)

    def port_bound(self, port: Port) -> Bound:
        """The bound of the epochs whose rows have all come to one port."""
        assert self.epoch is not None
        return port.bound(self.epoch) - self.window.last

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will come."""
        return all(port.has_ended for port in self.ports.values())

    @property
    def pending(self) -> list[tuple[str, Batch]]:
        """The batches that wait, each with the name of its port."""
        return [(port.name, batch) for port in self.ports.values() for batch in port.pending]

    def bound_unread(self, expression: Expression) -> Bound:
        """The bound of an expression over this side's rows that are not read yet."""
        if self._is_falling(expression):
            return turned(self.bound_unread(call("neg_int", expression)))
        return min((port.bound_unread(expression) for port in self.ports.values()), default=ENDED)

    def _is_falling(self, expression: Expression) -> bool:
        """Whether it is a column that is promised by its negative."""
        return isinstance(expression, Column) and any(
            f"-{expression.name}" in port.bounds for port in self.ports.values()
        )

    def clock(self, expression: Expression) -> Bound:
        """The bound of an expression when the last port to be told of one was; see ``Port.clock``."""
        clocks = (bound_of(expression, named(port.clock)) for port in self.ports.values())
        return max(clocks, default=NOTHING)

    def release(self, low: Bound, high: Bound) -> Taken:
        """Return the input of a step for the epochs [low, high). Changes nothing; see ``discard``."""
        assert self.epoch is not None
        low, high = low + self.window.first, high + self.window.last
        chosen: list[tuple[str, Batch]] = []
        straddles = False
        for name, batch in self.pending:
            least, greatest = batch_span(batch, self.epoch)
            if least < high and greatest >= low:
                chosen.append((name, batch))
                straddles = straddles or least < low or greatest >= high
        begun = tuple((n, b) for n, b in chosen if b.sequence in self.ports[n].begun)
        floors = tuple(
            ((n, b), self.ports[n].floors[b.sequence])
            for n, b in chosen
            if b.sequence in self.ports[n].floors
        )
        straddles = straddles or bool(floors)
        return Taken(self.epoch, tuple(chosen), begun, straddles, window=self.window, floors=floors)

    def take_fresh(
        self, taken: Taken, fresh: Mapping[str, tuple[Extent, ...]], low: Bound, high: Bound
    ) -> Taken:
        """``taken`` and the rows that upstream queries give in this very step."""
        assert self.epoch is not None
        spans = {
            name: extents_span(fresh[name], self.epoch) for name in self.ports if name in fresh
        }
        first, last = self.window.first, self.window.last
        return replace(
            taken,
            upstream=tuple(name for name, span in spans.items() if span[0] < high + last),
            carries=tuple(name for name, span in spans.items() if span[1] >= high + first),
            overdue=tuple(name for name, span in spans.items() if span[0] < low + last),
        )

    def take_late(self, low: Bound) -> list[tuple[str, Batch]]:
        """The batches that came since the last time with rows for epochs below ``low`` that were complete.

        Where rows are read more than once, such a batch gets a floor.
        """
        assert self.epoch is not None
        low += self.window.last
        late: list[tuple[str, Batch]] = []
        for port in self.ports.values():
            come = port.come()
            below = [b for b in reversed(come) if batch_span(b, self.epoch)[0] < low]
            late += [(port.name, batch) for batch in below]
            if self.window.is_wide:
                port.floors.update((batch.sequence, low) for batch in below)
            port.told = max([port.told, *(batch.sequence for batch in come)])
        return late

    def has_come(self, high: Bound) -> bool:
        """Whether batches came since the last ``take_late`` with rows below ``high``."""
        assert self.epoch is not None
        return any(
            batch_span(batch, self.epoch)[0] < high
            for port in self.ports.values()
            for batch in port.come()
        )

    def forget_read(self, released: Bound) -> None:
        """Forget batches that came again, after a restart, although all of their rows were read before."""
        assert self.epoch is not None
        for port in self.ports.values():
            if not port.is_repeating:
                continue
            port.is_repeating = False
            port.pending = [
                batch
                for batch in port.pending
                if batch.sequence > port.told
                or batch.sequence in port.begun
                or batch_span(batch, self.epoch)[0] >= released
            ]

    def discard(self, high: Bound) -> None:
        """Forget the batches that no step from ``high`` on reads."""
        assert self.epoch is not None
        needed, read = high + self.window.first, high + self.window.last
        for port in self.ports.values():
            spans = [(batch, batch_span(batch, self.epoch)) for batch in port.pending]
            # what has no extent might hold anything until the end
            port.pending = [b for b, span in spans if span[1] >= needed and high != ENDED]
            port.begun = frozenset(
                b.sequence for b, span in spans if span[0] < read and span[1] >= needed
            )
            waiting = {batch.sequence for batch in port.pending}
            port.floors = {n: floor for n, floor in port.floors.items() if n in waiting}
