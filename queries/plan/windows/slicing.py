"""Slices: the parts of the time axis from which all windows of a class are assembled.

No edge of a window is inside a slice, so a window is a range of whole slices. A slice is one epoch
of an ordinary aggregation, whose epoch is the slice's number.

Slices of several windows are composed: each edge of any of them is an edge of the whole
(Krishnamurthy, Wu, Franklin: On-the-Fly Sharing for Streamed Aggregation, SIGMOD 2006, section 4).
The paper stretches all slice vectors to their common period, which may be long; a number needs no
common period:

    number(t) = sum of (t + shift) DIV period over all distinct edges (period, shift)

It is constant inside a slice and rises at every edge. So the window [a, b) is exactly the slices n
with number(a) <= n < number(b). Where edges of different periods coincide the number rises by two.
"""

from __future__ import annotations

from fractions import Fraction
from functools import lru_cache
from itertools import pairwise
from math import ceil, floor, gcd, lcm
from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.window import RepeatedSlices
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.windows.window import SlidingWindow, Window


@dataclass(frozen=True, slots=True)
class Slicing:
    """Slices between periodic edges.

    Attributes:
        edges: the distinct edges, each as (period, shift) with 0 <= shift < period: at the times t
            with (t + shift) % period = 0; at least one.
    """

    edges: tuple[tuple[int, int], ...]

    @classmethod
    def of(cls, windows: Iterable[Window]) -> Slicing:
        """Return the composition of the slices of ``windows``.

        It is paired, which has the fewest edges possible.
        """
        return cls(_without_repeated({edge for window in windows for edge in window.edges}))

    @classmethod
    def paned(cls, windows: Iterable[SlidingWindow]) -> Slicing:
        """Return slices of the greatest common divisor of range and slide, composed.

        Li, Maier et al.: No Pane, No Gain (SIGMOD Record 2005).
        """
        return cls(_without_repeated({(gcd(w.range, w.slide), 0) for w in windows}))

    def number(self, time: int) -> int:
        """Return the number of the slice that holds ``time``."""
        return sum((time + shift) // period for period, shift in self.edges)

    def expression(self, time: Expression) -> Expression:
        """Return ``number`` of an INT expression, of LFTA-safe monotone functions.

        Bounds of time are near the greatest INT, where ``t + shift`` would wrap. So the rest of the
        period is subtracted instead, and 1 is added to the quotient.
        """
        quotients = [_quotient(time, period, shift) for period, shift in self.edges]
        shifted = sum(shift != 0 for _, shift in self.edges)
        total = _sum(quotients)
        return call("add_int", total, Literal(shifted, GsqlType.INT)) if shifted else total

    def last_time_before(self, number: int) -> int:
        """Return the greatest time whose slice has a number below ``number``."""
        return _last_time_before(self, number)

    def most_within(self, window: Window) -> int:
        """Return a number of slices that no window exceeds.

        It is the greatest number if each period divides that of ``window``, as in its own slices.
        """
        if isinstance(window, RepeatedSlices):
            turn = window.period
            ends = range(1, len(window.lengths) + 1)
        else:
            turn = window.slide
            ends = range(1, 2)
        if any(turn % period for period, _ in self.edges):
            return sum(-(-window.longest // period) for period, _ in self.edges)
        return max(self.number(window.end(w)) - self.number(window.start(w)) for w in ends)

    def vector(self, most: int) -> tuple[int, ...] | None:
        """Return the lengths of the slices of one period from time 0, in turn.

        None if there may be more than ``most``: the period of many windows can be very long.
        """
        length = self.period
        if sum(length // period for period, _ in self.edges) > most:
            return None
        ends = {  # 0 is an edge of every window, so that the period is the greatest of them
            multiple * period - shift
            for period, shift in self.edges
            for multiple in range(1, length // period + 1)
        }
        return tuple(end - start for start, end in pairwise((0, *sorted(ends))))

    @property
    def rate(self) -> Fraction:
        """The edges per unit of time (β); edges of different periods that coincide count twice."""
        return sum((Fraction(1, period) for period, _ in self.edges), Fraction(0))

    @property
    def period(self) -> int:
        """The time after which the edges repeat."""
        return lcm(*(period for period, _ in self.edges))


EVERY_TIME = Slicing(((1, 0),))
"""Slices of one time each: the number of a slice is its time."""


@lru_cache(maxsize=1024)
def _last_time_before(slicing: Slicing, number: int) -> int:
    # The operators of all windows of a class ask for the same one.
    # number(t) differs from rate * t by at most the number of edges.
    rate, edges = slicing.rate, len(slicing.edges)
    low, high = floor((number - edges) / rate) - 1, ceil((number + edges) / rate)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if slicing.number(middle) < number else (low, middle)
    return low


def _without_repeated(edges: set[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """Return ``edges`` without those at whose times another one always is, too."""
    return tuple(
        (period, shift)
        for period, shift in sorted(edges)
        if not any(
            (other, other_shift) != (period, shift)
            and period % other == 0
            and (shift - other_shift) % other == 0
            for other, other_shift in edges
        )
    )


def _sum(terms: Sequence[Expression]) -> Expression:
    """Return the sum of ``terms`` as a tree of little depth, which is cheap to analyze."""
    if len(terms) == 1:
        return terms[0]
    half = (len(terms) + 1) // 2
    return call("add_int", _sum(terms[:half]), _sum(terms[half:]))


def _quotient(time: Expression, period: int, shift: int) -> Expression:
    offset = -shift % period
    shifted = call("sub_int", time, Literal(offset, GsqlType.INT)) if offset else time
    return call("floor_div", shifted, Literal(period, GsqlType.INT))
