"""Windows over slices: whether each window is a range of whole slices.

For slices whose period is the slide, these are the windows of lemma 1 of On-the-Fly Sharing for
Streamed Aggregation (SIGMOD 2006): W[r, s] is assembled from V(s1, …, sn) if and only if some last
slices sk + … + sn sum up to r mod s.
"""

from __future__ import annotations

from math import gcd
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gscope.queries.plan.windows.window import RepeatedSlices, Window


def tiles(slices: RepeatedSlices, window: Window) -> bool:
    """Return whether every start and end of a window is an edge of ``slices``, in the same unit."""
    return all(has_edge(slices, period, shift) for period, shift in window.edges)


def has_edge(slices: RepeatedSlices, period: int, shift: int) -> bool:
    """Return whether ``slices`` have an edge at each time t with (t + shift) % period = 0."""
    edges = {-edge % slices.period for _, edge in slices.edges}
    step = gcd(period, slices.period)
    # The times of the edge, modulo the period of the slices, are one in each step.
    if slices.period // step > len(edges):
        return False
    return all(time % slices.period in edges for time in range(-shift, slices.period - shift, step))
