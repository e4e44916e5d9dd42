"""Rows of one stream that is an answer itself, and how far they were delivered.

Batches stay on disk until their rows may be delivered, and are then read one after the other:
however many packets have one time, memory holds only the batches whose times overlap.
"""

from __future__ import annotations

from collections import deque
from itertools import accumulate, chain
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.reorder import Reorder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gscope.cli.delivery.answer_order import AnswerOrder
    from gscope.queries.streams.messages import Batch


class _Waiting(NamedTuple):
    """An unread batch: the least time of its rows, its sequence number, and how to read it."""

    least: int
    sequence: int
    read: Callable[[], pa.Table]


class StreamDelivery:
    """Rows of one stream in the order of their time, from where an earlier process left off.

    Args:
        query: the query that the stream answers.
        column: the column that orders the rows; None to deliver them as they come.
        position: how far the rows were delivered before.
        is_nullable: whether the column may be NULL. Rows with NULL are outside the extent of their
            batch, so batches are then read at once.
        order: the order of rows that are answers of other hosts: those with the same time are
            sorted by all of their values, so that their order does not depend on which host came
            first. None for rows of packets, which keep their order.

    Attributes:
        next: the sequence number of the next message to read.
        has_ended: whether no more messages will come.
    """

    def __init__(
        self,
        query: str,
        column: str | None,
        position: StreamPosition,
        *,
        is_nullable: bool = False,
        order: AnswerOrder | None = None,
    ) -> None:
        self.query = query
        self.next = position.cursor
        self.has_ended = position.has_ended
        self._column = column
        self._before = position
        self._bound = position.bound
        self._reorder = Reorder(column, order)
        self._is_sorted = order is not None
        self._held: deque[tuple[int, int]] = deque()
        self._is_nullable = is_nullable
        self._waiting: list[_Waiting] = []

    def add(self, batch: Batch, read: Callable[[], pa.Table]) -> None:
        """Take the rows of a batch that were not delivered before; ``read`` yields all its rows."""
        if self._column is None:
            self._reorder.add(read(), batch.sequence)
            return
        extent = batch.extent(self._column)
        self._held.append((batch.sequence, extent.greatest))
        waiting = _Waiting(extent.least, batch.sequence, read)
        if self._is_nullable:
            self._read(waiting)
        else:
            self._waiting.append(waiting)

    def _read(self, batch: _Waiting) -> None:
        table = batch.read()
        if batch.sequence < self._before.seen and self._before.bound is not None:
            values = pc.cast(table[self._column], pa.int64())
            # Rows without a time were delivered with the first that were released.
            table = table.filter(pc.fill_null(pc.greater_equal(values, self._before.bound), False))
        self._reorder.add(table, batch.sequence)

    def raise_bound(self, bounds: dict[str, int]) -> None:
        """Note that no more rows below the bound of the column will come."""
        bound = bounds.get(self._column) if self._column is not None else None
        if bound is not None:
            self._bound = bound if self._bound is None else max(bound, self._bound)

    def let_go(self) -> Iterator[pa.Table] | None:
        """Return the rows that may be delivered now: all, if the stream has ended or has no order.

        Later tables are read when they are requested. All of them must be read before this object
        is used again. None if there are no rows.
        """
        bound = self._bound
        if self.has_ended or self._column is None:
            bound = None
            self._held.clear()
            ready, self._waiting = self._waiting, []
        elif bound is None:
            return None
        else:
            while self._held and self._held[0][1] < bound:
                self._held.popleft()
            ready = [batch for batch in self._waiting if batch.least < bound]
            self._waiting = [batch for batch in self._waiting if batch.least >= bound]
        tables = self._tables(sorted(ready), bound)
        first = next(tables, None)
        return None if first is None else chain([first], tables)

    def _tables(self, ready: Sequence[_Waiting], bound: int | None) -> Iterator[pa.Table]:
        """Yield the held rows and those of ``ready`` below ``bound`` (None: all), in order."""
        # The least sequence number from each place on: rows of one time keep their order.
        earliest = list(accumulate((batch.sequence for batch in reversed(ready)), min))[::-1]
        for batch, sequence in zip(ready, earliest, strict=True):
            is_behind = sequence > self._reorder.newest and not self._is_sorted
            table = self._reorder.release(batch.least + is_behind) if self._column else None
            if table is not None:
                yield table
            self._read(batch)
        table = self._reorder.rest() if bound is None else self._reorder.release(bound)
        if table is not None:
            yield table

    @property
    def held(self) -> tuple[int, ...]:
        """Return the batches with rows that were not released."""
        return tuple(sequence for sequence, _ in self._held)

    @property
    def is_done(self) -> bool:
        """Return whether nothing is left to read once the released rows are delivered."""
        return self.has_ended and not self._held and self.next >= self._before.seen

    @property
    def position(self) -> StreamPosition:
        """Return the position of the stream once the released rows are delivered."""
        cursor = self._held[0][0] if self._held else self.next
        # When messages are read again, those further on were seen before.
        seen = max(self.next, self._before.seen)
        return StreamPosition(cursor, seen, self._bound, self.has_ended)
