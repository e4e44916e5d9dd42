"""Windows over slices: whether each window is a range of whole slices.

For slices whose period is the slide, these are the windows of lemma 1 of On-the-Fly Sharing for
Streamed Aggregation (SIGMOD 2006): W[r, s] is assembled from V(s1, …, sn) if and only if some last
slices sk + … + sn sum up to r mod s.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window


def tiles(slices: RepeatedSlices, window: Window) -> bool:
    """Return whether every start and end of a window is an edge of ``slices``, in the same unit."""
    return all(_has_edge(slices, period, shift) for period, shift in window.edges)


def tiled_ranges(slices: RepeatedSlices, window: SlidingWindow) -> list[int]:
    """Return the next shorter and the next longer range with which ``slices`` tile the window.

    One is missing if no shorter range does; both are if windows of this slide end inside slices.

    Args:
        slices: the slices.
        window: a window that they do not tile.
    """
    slide = window.slide
    if not _has_edge(slices, slide, 0):
        return []
    # The window that ends at 0 begins between these slices. Its neighbours end at most a period on.
    after = slices.first_ending_after(-window.range)
    ends = [slices.end(after + n) for n in range(-len(slices.lengths), len(slices.lengths))]
    fit = [-end for end in ends if end < 0 and _has_edge(slices, slide, -end % slide)]
    longer = [length for length in fit if length > window.range]
    shorter = [length for length in fit if length < window.range]
    return [*shorter[:1], *longer[-1:]]


def _has_edge(slices: RepeatedSlices, period: int, shift: int) -> bool:
    """Return whether ``slices`` have an edge at each time t with (t + shift) % period = 0."""
    edges = {-edge % slices.period for _, edge in slices.edges}
    step = gcd(period, slices.period)
    # The times of the edge, modulo the period of the slices, are one in each step.
    if slices.period // step > len(edges):
        return False
    return all(time % slices.period in edges for time in range(-shift, slices.period - shift, step))
