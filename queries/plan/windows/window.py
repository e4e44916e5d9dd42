"""Windows over an ordering column: their beginnings and ends, by number.

Times are integers in the unit of the ordering column (seconds or nanoseconds of the clock, the
column's own unit otherwise), with origin 0. A window holds the tuples of [start, end): half-open,
so that ``[RANGE 60 SLIDE 60]`` has the epochs of ``time/60``. Krishnamurthy, Wu, Franklin:
On-the-Fly Sharing for Streamed Aggregation (SIGMOD 2006), section 3, has [end - range, end].
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate
from typing import TypeAlias

from gscope.records import dataclass


@dataclass(frozen=True, slots=True)
class SlidingWindow:
    """``[RANGE range SLIDE slide]``: window w holds [w * slide - range, w * slide).

    It hops if ``range < slide``, tumbles if they are equal and overlaps otherwise.

    Attributes:
        range: the length of a window, at least 1.
        slide: the distance between the ends of consecutive windows, at least 1.
    """

    range: int
    slide: int

    def end(self, window: int) -> int:
        """Return the time before which all tuples of ``window`` are."""
        return window * self.slide

    def start(self, window: int) -> int:
        """Return the least time that a tuple of ``window`` can have."""
        return window * self.slide - self.range

    def first_ending_after(self, time: int) -> int:
        """Return the first window with ``time < end``."""
        return time // self.slide + 1

    def last_starting_by(self, time: int) -> int:
        """Return the last window with ``start <= time``."""
        return (time + self.range) // self.slide

    @property
    def longest(self) -> int:
        """The length of the longest window."""
        return self.range

    @property
    def farthest(self) -> int:
        """The farthest that an edge of the next window, or of one that holds it, is from a time."""
        return max(self.range, self.slide)

    @property
    def kept(self) -> int:
        """The longest time before the end of a window at which the next window may begin."""
        return max(0, self.range - self.slide)

    @property
    def overlap(self) -> int:
        """The most windows that hold the same tuple."""
        return -(-self.range // self.slide)

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The periodic edges, each as (period, shift).

        They are at the times t with (t + shift) % period = 0. These are the ends, and where
        ``slide`` does not divide ``range`` the starts: the paired slices of On-the-Fly Sharing,
        section 3.2.
        """
        rest = self.range % self.slide
        return ((self.slide, 0),) if rest == 0 else ((self.slide, 0), (self.slide, rest))

    def scaled(self, factor: int) -> SlidingWindow:
        """Return the same windows in a unit that is ``factor`` times as fine."""
        return SlidingWindow(self.range * factor, self.slide * factor)


@dataclass(frozen=True, slots=True)
class RepeatedSlices:
    """``[SLICES a, b, …]``: consecutive windows of these lengths, again and again from time 0.

    Attributes:
        lengths: the lengths in turn, each at least 1; at least one.
    """

    lengths: tuple[int, ...]

    @property
    def period(self) -> int:
        """The sum of the lengths."""
        return sum(self.lengths)

    @property
    def _ends(self) -> list[int]:
        return list(accumulate(self.lengths))

    def end(self, window: int) -> int:
        """Return the time before which all tuples of ``window`` are."""
        periods, place = divmod(window - 1, len(self.lengths))
        return periods * self.period + self._ends[place]

    def start(self, window: int) -> int:
        """Return the least time that a tuple of ``window`` can have."""
        return self.end(window - 1)

    def first_ending_after(self, time: int) -> int:
        """Return the first window with ``time < end``."""
        periods, rest = divmod(time, self.period)
        return periods * len(self.lengths) + bisect_right(self._ends, rest) + 1

    def last_starting_by(self, time: int) -> int:
        """Return the last window with ``start <= time``."""
        return self.first_ending_after(time)

    @property
    def longest(self) -> int:
        """The length of the longest window."""
        return max(self.lengths)

    @property
    def farthest(self) -> int:
        """The farthest that an edge of a window in the same turn is from a time."""
        return self.period

    @property
    def kept(self) -> int:
        """The longest time before the end of a window at which the next window may begin: 0."""
        return 0

    @property
    def overlap(self) -> int:
        """The most windows that hold the same tuple: 1."""
        return 1

    @property
    def edges(self) -> tuple[tuple[int, int], ...]:
        """The periodic edges, each as (period, shift).

        They are at the times t with (t + shift) % period = 0.
        """
        return tuple(
            (self.period, self.period - end if end < self.period else 0) for end in self._ends
        )

    def scaled(self, factor: int) -> RepeatedSlices:
        """Return the same windows in a unit that is ``factor`` times as fine."""
        return RepeatedSlices(tuple(length * factor for length in self.lengths))


Window: TypeAlias = SlidingWindow | RepeatedSlices
