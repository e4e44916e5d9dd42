"""Windows by the numbers of slices: which slices a window holds, and which windows a step ends.

A composed slicing has more edges than one window needs. Slices between two neighbouring edges of
the window itself always come and leave together; they are one piece, labelled by the first number
that a slice of it can have.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.windows.slicing import Slicing
    from gscope.queries.plan.windows.window import Window

    Array = NDArray[Any]

_BLOCK = 1024
"""Bounds of windows are computed for at most this many at once."""

_FAR = 256
"""Numbers of slices that differ by more are labelled apart, so that a gap costs nothing."""

_SPAN = 1 << 16
"""Numbers are labelled in portions of this span, in each of which all edges are in memory."""

_NARROW = 1 << 61
"""Times beyond it are computed with Python's integers."""


@dataclass(frozen=True, slots=True)
class Timeline:
    """The windows of one node on the time axis of its slices.

    Attributes:
        window: the windows.
        slicing: the slices; every start and end of a window is an edge of it.
    """

    window: Window
    slicing: Slicing

    def labels(self, numbers: Array) -> Array:
        """Return the label of the piece that holds each slice, given ascending numbers."""
        made = np.empty(len(numbers), np.int64)
        is_cut = (np.diff(numbers) > _FAR) | (np.diff(numbers // _SPAN) > 0)
        cuts = np.flatnonzero(is_cut) + 1
        firsts, ends = [0, *cuts.tolist()], [*cuts.tolist(), len(numbers)]
        for first, end in zip(firsts, ends, strict=True):
            near = numbers[first:end]
            if len(near):
                edges = self._edges(int(near[0]), int(near[-1]))
                made[first:end] = edges[np.searchsorted(edges, near, "right") - 1]
        return made

    def first_holding(self, number: int) -> int:
        """Return the first window that ends behind the slice ``number``."""
        return self.window.first_ending_after(self.slicing.last_time_before(number + 1))

    def after_last(self, high: Bound) -> Bound:
        """Return the first window that is incomplete while slices from ``high`` on may grow."""
        return self.first_holding(int(high)) if math.isfinite(high) else high

    def bounds(self, first: int, end: Bound) -> Iterator[tuple[int, int, int]]:
        """Yield windows from ``first`` below ``end``, each with its first slice and that behind."""
        size = 8
        while first < end:
            block = int(min(size, end - first))
            size = min(2 * size, _BLOCK)
            starts, ends = (self._numbers(times).tolist() for times in self._times(first, block))
            yield from zip(range(first, first + block), starts, ends, strict=True)
            first += block

    def _edges(self, least: int, greatest: int) -> Array:
        """Return the numbers at the edges of windows up to ``greatest``, ascending.

        The first is not above ``least``.
        """
        since = self.slicing.last_time_before(least + 1)
        until = self.slicing.last_time_before(greatest + 1)
        kind = _kind(since, until)
        numbers = []
        for period, shift in self.window.edges:
            first, last = (since + shift) // period, (until + shift) // period
            turns = np.arange(last - first + 1).astype(kind)
            numbers.append(self._numbers((turns + first) * period - shift))
        # The log of another host may hold any number, even one that is not a time.
        edges: Array = np.clip(np.unique(np.concatenate(numbers)), MIN_INT, MAX_INT)
        return edges.astype(np.int64)

    def _numbers(self, times: Array) -> Array:
        """Return the numbers of the slices that hold ``times``."""
        numbers = np.zeros_like(times)
        for period, shift in self.slicing.edges:
            numbers += (times + shift) // period
        return numbers

    def _times(self, first: int, count: int) -> tuple[Array, Array]:
        """Return the starts and the ends of ``count`` windows."""
        window = self.window
        kind = _kind(window.start(first), window.end(first + count))
        if isinstance(window, SlidingWindow):
            ends = (np.arange(count).astype(kind) + first) * window.slide
            return ends - window.range, ends
        ends = np.array([window.end(first - 1 + each) for each in range(count + 1)], kind)
        return ends[:-1], ends[1:]


def _kind(*times: int) -> Any:
    """Return the type of an array of times between these."""
    return np.int64 if max(map(abs, times)) < _NARROW else np.object_
