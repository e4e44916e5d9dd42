"""Rounds: the second of packet time in which a row is complete, whatever step it came in.

A row of a result is complete when no earlier row can come. Round r holds the rows that are complete
once all interfaces have passed r seconds since 1970, and were not in round r - 1. The round follows
from the program and the row alone: heartbeats of that time, put through the operators, give the
bound of the result.
"""

from __future__ import annotations

import math
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
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import Program

NEVER = math.inf
"""The round of rows that only the end of the input completes."""

_LAST = (1 << 63) // NS_PER_SECOND - 1
_MAX_KNOWN = 10_000


class Rounds:
    """Finds the rounds of the rows of each result.

    Args:
        program: the program with the results.
    """

    def __init__(self, program: Program) -> None:
        self._parts = {query: _part_of(program, query) for query, _ in program.results}
        self._bounds: dict[tuple[str, int], dict[str, Bound]] = {}
        self._found: dict[tuple[str, str], tuple[Bound, Bound]] = {}
        self._latest = 0

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
        number = first_reached(
            lambda n: self.bound(query, promised, min(n, _LAST)) > value,
            begin,
            self._guess(query, promised, value),
        )
        if number is None:
            return NEVER
        self._latest = number
        self._found[query, promised] = value, number
        return number

    def _guess(self, query: str, promised: str, value: Bound) -> int:
        """Return a round near that of a row, as if its column were in proportion to the time."""
        last = self.bound(query, promised, _LAST)
        if 0 < value < last < math.inf:
            return int((value + 1) / last * _LAST)
        # Rows of all results are of about the same time.
        return self._latest

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
