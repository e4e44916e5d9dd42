"""Rows of several results in one output, in an order that does not depend on timing.

Rows are ordered by round (see ``rounds.py``), and within a round by result. A row waits until no
other result can have rows of an earlier round, and no result before its own can have rows of the
same round; the first result of a round waits for none. Results that are streams come first, since
their rows arrive first.
"""

from __future__ import annotations

from collections import deque
from itertools import chain
from typing import TYPE_CHECKING

from gscope.cli.delivery.rounds import NEVER
from gscope.engine.watermarks.bounds import ENDED, NOTHING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    import pyarrow as pa

    from gscope.cli.delivery.order_column import OrderColumn
    from gscope.cli.delivery.rounds import Rounds
    from gscope.engine.watermarks.bounds import Bound


class Interleaving:
    """Puts the rows of several results into one order.

    Args:
        columns: the results in their order, each with the column by which its rows are ordered;
            None for a result whose rows all come at the end of the input.
        rounds: the rounds of their rows.

    Attributes:
        waits_for: the result that delays the next rows, since it may have earlier ones; None if
            there are no rows, or none were requested yet.
    """

    def __init__(self, columns: Mapping[str, OrderColumn | None], rounds: Rounds) -> None:
        self.waits_for: str | None = None
        self._queues = {query: _Queue(query, each, rounds) for query, each in columns.items()}

    def orders(self, query: str) -> bool:
        """Return whether the rows of ``query`` take part."""
        return query in self._queues

    def add(self, query: str, tables: Iterable[pa.Table]) -> None:
        """Add rows of ``query`` that are complete, in order and after those added before.

        The rows are read when they are due; only then may more be requested from their origin.
        """
        self._queues[query].add(tables)

    def raise_bound(self, query: str, bound: Bound) -> None:
        """Note that no more rows of ``query`` below ``bound`` will be added."""
        queue = self._queues[query]
        queue.bound = max(queue.bound, bound)

    def due(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield the rows that are due, in order, each table with its result."""
        while True:
            first = min(
                ((queue.round(), place) for place, queue in enumerate(self._live())),
                default=None,
            )
            self.waits_for = None
            if first is None:
                return
            number, place = first
            queue = self._live()[place]
            if queue.head is None:
                self.waits_for = queue.query
                return
            yield queue.query, queue.take(number)

    def is_delivered(self, query: str) -> bool:
        """Return whether all rows of ``query`` that were added have been taken."""
        return self._queues[query].find() is None

    def read(self, query: str) -> None:
        """Read the queued rows of ``query`` into memory, so that their origin can continue."""
        self._queues[query].read()

    def _live(self) -> list[_Queue]:
        """Return the results that have rows or may get some."""
        return [
            queue
            for queue in self._queues.values()
            if queue.find() is not None or queue.bound != ENDED
        ]


class _Queue:
    """Queued rows of one result, in order.

    Attributes:
        bound: the bound below which no more rows will come.
        head: the first rows; None if there are none.
    """

    def __init__(self, query: str, column: OrderColumn | None, rounds: Rounds) -> None:
        self.query = query
        self.bound: Bound = NOTHING
        self.head: pa.Table | None = None
        self._column = column
        self._rounds = rounds
        self._unread: deque[Iterator[pa.Table]] = deque()

    def add(self, tables: Iterable[pa.Table]) -> None:
        self._unread.append(iter(tables))

    def read(self) -> None:
        self._unread = deque([iter(list(chain.from_iterable(self._unread)))])

    def find(self) -> pa.Table | None:
        """Return the first rows; close the portions that have been read to their end."""
        while self.head is None and self._unread:
            self.head = next(self._unread[0], None)
            if self.head is None:
                self._unread.popleft()
            elif not self.head.num_rows:
                self.head = None
        return self.head

    def round(self) -> Bound:
        """Return the round of the first rows, or of the first row that can still come."""
        if self._column is None:
            return NEVER
        first = self.bound if self.find() is None else self._column.first(self.head)
        return self._rounds.of(self.query, self._column.promised, first)

    def take(self, number: Bound) -> pa.Table:
        """Remove and return the first rows, as far as they are of round ``number``."""
        assert self.head is not None
        count = self.head.num_rows
        if self._column is not None:
            bound = self._rounds.bound(self.query, self._column.promised, number)
            count = self._column.count_below(self.head, bound)
        taken, rest = self.head.slice(0, count), self.head.slice(count)
        self.head = rest if rest.num_rows else None
        return taken
