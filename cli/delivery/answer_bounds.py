"""Bounds of answers: which epochs are complete, although no row of a later one has come."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.stream_reader import order_column
from gscope.queries.plan.program import StreamInput

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gscope.cli.delivery.checkpoint import StreamPosition
    from gscope.queries.plan.program import Program

_EXACT = float(1 << 53)
"""Below it a float is the integer that it stands for."""


class AnswerBounds:
    """The bound of each answer: no later row of it has a lower value in its first temporal column.

    Bounds are those that are promised: negated for a decreasing column. They never fall. At the end
    of the input a bound is the value that the packets had reached, not infinite.

    Args:
        program: the program with the answers.
        positions: how far streams were delivered before.
    """

    def __init__(self, program: Program, positions: Mapping[str, StreamPosition]) -> None:
        orders = {query: AnswerOrder.of(program, query) for query, _ in program.results}
        self._columns = {query: each.temporal[0] for query, each in orders.items() if each.temporal}
        # Rows of a stream are delivered up to the bound of one column, which may be another one.
        self._streams = {
            query: program.lfta(source.lfta).streams
            for query, source in program.results
            if isinstance(source, StreamInput)
            and self._columns.get(query) == order_column(program.schema(query))
        }
        self._positions = dict(positions)
        self._bounds: dict[str, int] = {}
        self._raised: set[str] = set()

    def on_job(self, bounds: Mapping[str, Mapping[str, float]]) -> None:
        """Take the bounds, or the clocks, of answers of the HFTA job; infinite ones are ignored."""
        for query, column in self._columns.items():
            bound = whole_bound(bounds.get(query, {}).get(column, -math.inf))
            if bound is not None:
                self._raise(query, bound)

    def on_streams(self, positions: Mapping[str, StreamPosition]) -> None:
        """Take the positions of streams whose rows have been delivered."""
        self._positions |= positions
        for query, streams in self._streams.items():
            if positions.keys().isdisjoint(streams):
                continue
            bound = self._of_streams(streams)
            if bound is not None:
                self._raise(query, bound)

    def risen(self) -> Iterator[tuple[str, int]]:
        """Yield the answers whose bounds have risen since the last call, with these bounds."""
        raised, self._raised = self._raised, set()
        for query in self._columns:
            if query in raised:
                yield query, self._bounds[query]

    def _of_streams(self, streams: tuple[str, ...]) -> int | None:
        """Return the bound of rows of ``streams``; None if it is not known.

        It is the least of those that have not ended. If all have, it is the greatest: the time that
        the packets had reached.
        """
        found = [self._positions.get(stream) for stream in streams]
        live = [each for each in found if each is None or not each.has_ended]
        bounds = [None if each is None else each.bound for each in live or found]
        known = [bound for bound in bounds if bound is not None]
        if live:
            return min(known) if len(known) == len(bounds) else None
        return max(known, default=None)

    def _raise(self, query: str, bound: int) -> None:
        if query not in self._bounds or bound > self._bounds[query]:
            self._bounds[query] = bound
            self._raised.add(query)


def whole_bound(bound: float) -> int | None:
    """Return the bound of a column of integers.

    None if it is unknown or infinite, or a float that does not state an integer exactly.
    """
    if isinstance(bound, int):
        return bound
    return math.ceil(bound) if abs(bound) < _EXACT else None
