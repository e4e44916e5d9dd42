"""Rounds: the second of packet time in which a row is complete, whatever step it came in.

A row of a result is complete when no earlier row can come. Round r holds the rows that are complete
once all interfaces have passed r seconds since 1970, and were not in round r - 1. The round follows
from the program and the row alone: heartbeats of that time, put through the operators, give the
bound of the result.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.lfta.declared_orders import NO_FLOOR
from gscope.capture.lfta.punctuation import NS_PER_SECOND, punctuations
from gscope.engine.steps.steps import Steps
from gscope.engine.watermarks.bounds import NOTHING
from gscope.queries.plan.program import QueryInput, StreamInput
from gscope.queries.plan.program_parts import read_lftas, with_inputs
from gscope.queries.plan.unbounded_search import first_reached
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import Program

NEVER = math.inf
"""The round of rows that only the end of the input completes."""

_LAST = (1 << 63) // NS_PER_SECOND - 1
_MAX_KNOWN = 10_000

_MAX_TRIED, _NEAR_S = 64, 3_600
"""How many of the rounds found last are tried for other rows, and how much later than expected."""


class Rounds:
    """Finds the rounds of the rows of each result.

    Args:
        program: the program with the results.
    """

    def __init__(self, program: Program) -> None:
        self._parts = {query: _part_of(program, query) for query, _ in program.results}
        self._bounds: dict[tuple[str, int], dict[str, Bound]] = {}
        self._found: dict[tuple[str, str], tuple[Bound, Bound]] = {}
        self._known: dict[int, None] = {}

    def is_timed(self, query: str, promised: str) -> bool:
        """Return whether time completes rows of ``query``, by the column that orders them."""
        return self.bound(query, promised, _LAST) != NOTHING

    def of(self, query: str, promised: str, value: Bound) -> Bound:
        """Return the round of a row.

        Args:
            query: a result.
            promised: the column by which its rows are ordered, as it is promised.
            value: the value of that column in the row, as it is promised; for a bound, this
                returns the round of the first row that can still come.
        """
        if value == math.inf or self.bound(query, promised, _LAST) <= value:
            return NEVER
        before = self._found.get((query, promised))
        if before is not None and before[0] == value:
            return before[1]
        begin = int(before[1]) if before is not None and before[0] < value else 0

        def is_reached(number: int) -> bool:
            return self.bound(query, promised, min(number, _LAST)) > value

        number = first_reached(is_reached, begin, self._guess(query, promised, value, is_reached))
        if number is None:
            return NEVER
        # The last one found is the last to be forgotten.
        self._known.pop(number, None)
        self._known[number] = None
        if len(self._known) > _MAX_TRIED:
            del self._known[next(iter(self._known))]
        self._found[query, promised] = value, number
        return number

    def _guess(
        self, query: str, promised: str, value: Bound, is_reached: Callable[[int], bool]
    ) -> int:
        """Return a round near that of a row.

        Rows of all results are of about the same time, and in the same round if their epochs end
        together, so rounds found for others are tried.
        """
        last = self.bound(query, promised, _LAST)
        if not 0 < value < last < math.inf:
            return max(self._known, default=0)
        # As if the column counted equal spans of time. The last bound is cut off, so that a span of
        # whole seconds is a little shorter than this.
        span_s = _LAST / last
        near = int((value + 1) * (round(span_s) if span_s > 1 else span_s))
        tried = sorted(n for n in self._known if near < n < near + _NEAR_S)
        if is_reached(near) or not tried:
            return near
        return tried[min(bisect_left(tried, True, key=is_reached), len(tried) - 1)]

    def bound(self, query: str, promised: str, number: Bound) -> Bound:
        """Return the bound below which the rows of a result are in a round up to ``number``."""
        if number == NEVER:
            return math.inf
        place = query, int(number)
        bounds = self._bounds.get(place)
        if bounds is None:
            if len(self._bounds) >= _MAX_KNOWN:
                self._bounds.clear()
            bounds = self._bounds[place] = _bounds_at(self._parts[query], query, int(number))
        return bounds.get(promised, NOTHING)


def _part_of(program: Program, query: str) -> Program:
    """Return the part of ``program`` that the result ``query`` needs."""
    source = dict(program.results)[query]
    below = with_inputs(program, (source.query,) if isinstance(source, QueryInput) else ())
    nodes = tuple(node for node in program.nodes if node.query in below)
    lftas = read_lftas(program, nodes, (source,))
    return replace(program, lftas=lftas, nodes=nodes, results=((query, source),))


def _bounds_at(program: Program, query: str, number: int) -> dict[str, Bound]:
    """Return the bounds of the only result of ``program`` at the end of round ``number``."""
    time_ns = number * NS_PER_SECOND
    promises = {
        lfta.name: punctuations(lfta, time_ns, [NO_FLOOR] * len(lfta.declared))
        for lfta in program.lftas
    }
    ((_, source),) = program.results
    if isinstance(source, StreamInput):
        return {each.column: each.bound for each in promises[source.lfta]}
    steps = Steps(program)
    steps.on_messages(
        Heartbeat(stream, 0, 0, 0, promises[lfta.name])
        for lfta in program.lftas
        for stream in lfta.streams
    )
    steps.next()
    return steps.output_bounds().get(query, {})
