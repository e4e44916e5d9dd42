"""What came of one stream that is an answer itself, and how far it was delivered."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.delivered import StreamPosition
from gscope.cli.reorder import Reorder

if TYPE_CHECKING:
    from gscope.queries.streams.messages import Batch


class Outlet:
    """Rows of one stream in the order of their time, from where an earlier process left off.

    Args:
        query: that the stream answers.
        column: that the rows are ordered by; None for none, then they go as they come.
        position: how far the rows were delivered before.

    Attributes:
        next: the sequence number of the next message to read.
        has_ended: no more messages will come.
    """

    def __init__(self, query: str, column: str | None, position: StreamPosition) -> None:
        self.query = query
        self.next = position.cursor
        self.has_ended = position.has_ended
        self._column = column
        self._before = position
        self._bound = position.bound
        self._reorder = Reorder(column)
        self._held: deque[tuple[int, int]] = deque()

    def add(self, batch: Batch, table: pa.Table) -> None:
        """Take the rows of a batch in, but those that were delivered before."""
        if self._column is not None:
            if batch.sequence < self._before.seen and self._before.bound is not None:
                values = pc.cast(table[self._column], pa.int64())
                # A row without a time went with the first that were let go.
                table = table.filter(
                    pc.fill_null(pc.greater_equal(values, self._before.bound), False)
                )
            self._held.append((batch.sequence, batch.extent(self._column).greatest))
        self._reorder.add(table)

    def raise_bound(self, bounds: dict[str, int]) -> None:
        """No row below the bound of the column will come any more."""
        bound = bounds.get(self._column) if self._column is not None else None
        if bound is not None:
            self._bound = bound if self._bound is None else max(bound, self._bound)

    def let_go(self) -> pa.Table | None:
        """The rows that may go now; all when the stream has ended or has no order to keep."""
        if self.has_ended or self._column is None:
            self._held.clear()
            return self._reorder.rest()
        if self._bound is None:
            return None
        while self._held and self._held[0][1] < self._bound:
            self._held.popleft()
        return self._reorder.release(self._bound)

    @property
    def held(self) -> tuple[int, ...]:
        """The batches of which rows were not let go."""
        return tuple(sequence for sequence, _ in self._held)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to read, when what ``let_go`` gave is delivered."""
        return self.has_ended and not self._held and self.next >= self._before.seen

    @property
    def position(self) -> StreamPosition:
        """How far the stream is delivered when what ``let_go`` gave is."""
        cursor = self._held[0][0] if self._held else self.next
        # Of messages that are read once more, those further on were seen before.
        seen = max(self.next, self._before.seen)
        return StreamPosition(cursor, seen, self._bound, self.has_ended)
