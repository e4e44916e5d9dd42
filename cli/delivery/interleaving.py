"""Rows of several results on one output, in an order that does not depend on timing.

Rows go out by their rounds (see ``rounds.py``), those of one round result by result. A row waits until
no other result can have rows of an earlier round, nor those results before it any of its own; the
first result of a round waits for none. Results that are streams come first: they are there soonest.
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
        columns: the results in their order, each with the column that its rows are ordered by; None
            of one whose rows come at the end of the input, together.
        rounds: of their rows.

    Attributes:
        waits_for: the result that holds the next rows up, since it may have earlier ones; None where
            there are no rows, or none were asked for yet.
    """

    def __init__(self, columns: Mapping[str, OrderColumn | None], rounds: Rounds) -> None:
        self.waits_for: str | None = None
        self._queues = {query: _Queue(query, each, rounds) for query, each in columns.items()}

    def orders(self, query: str) -> bool:
        """Whether the rows of ``query`` take part."""
        return query in self._queues

    def add(self, query: str, tables: Iterable[pa.Table]) -> None:
        """Take rows of ``query`` that are complete, in order and behind those before.

        They are read when they are due; only then may further ones of their origin be asked for.
        """
        self._queues[query].add(tables)

    def raise_bound(self, query: str, bound: Bound) -> None:
        """Note that no rows of ``query`` below ``bound`` will be added any more."""
        queue = self._queues[query]
        queue.bound = max(queue.bound, bound)

    def due(self) -> Iterator[tuple[str, pa.Table]]:
        """Give the rows that may go out, in order, each table with its result."""
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
        """Whether all rows of ``query`` that were added went out."""
        return self._queues[query].find() is None

    def read(self, query: str) -> None:
        """Read rows of ``query`` that wait into memory, so that their origin can go on."""
        self._queues[query].read()

    def _live(self) -> list[_Queue]:
        """The results that have rows or may get some."""
        return [
            queue
            for queue in self._queues.values()
            if queue.find() is not None or queue.bound != ENDED
        ]


class _Queue:
    """Rows of one result that wait, in order.

    Attributes:
        bound: no rows below it will come.
        head: the first rows, None where there are none.
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
        """The first rows; portions that are read to their end are closed."""
        while self.head is None and self._unread:
            self.head = next(self._unread[0], None)
            if self.head is None:
                self._unread.popleft()
            elif not self.head.num_rows:
                self.head = None
        return self.head

    def round(self) -> Bound:
        """The round of the first rows, or of the first that can come."""
        if self._column is None:
            return NEVER
        first = self.bound if self.find() is None else self._column.first(self.head)
        return self._rounds.of(self.query, self._column.promised, first)

    def take(self, number: Bound) -> pa.Table:
        """Remove the first rows as far as they are of the round ``number``."""
        assert self.head is not None
        count = self.head.num_rows
        if self._column is not None:
            bound = self._rounds.bound(self.query, self._column.promised, number)
            count = self._column.count_below(self.head, bound)
        taken, rest = self.head.slice(0, count), self.head.slice(count)
        self.head = rest if rest.num_rows else None
        return taken
