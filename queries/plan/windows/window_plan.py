"""How windows are cut into slices, and which queries share them: a choice for experiments."""

from __future__ import annotations

from enum import Enum
from math import gcd
from typing import TYPE_CHECKING

from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.plan.windows.window import Window


class WindowPlan(Enum):
    """How windows are computed; the answers are the same.

    On-the-Fly Sharing for Streamed Aggregation (SIGMOD 2006) compares the first three and its
    "superquery".

    Attributes:
        PAIRED: the windows of a class share slices between their edges, the fewest possible.
        PANED: the windows of a class share slices of the greatest common divisor of range and
            slide.
        UNSHARED: each query has paired slices of its own.
        SUPERQUERY: no slices: each row is read again for each window that holds it.
    """

    PAIRED = "paired"
    PANED = "paned"
    UNSHARED = "unshared"
    SUPERQUERY = "superquery"

    @property
    def shares(self) -> bool:
        """Whether the queries of a class share slices."""
        return self in (WindowPlan.PAIRED, WindowPlan.PANED)

    def slicing(self, windows: Sequence[Window]) -> Slicing:
        """Return the slices from which ``windows`` are assembled, at least one."""
        if self is not WindowPlan.PANED:
            return Slicing.of(windows)
        return Slicing.paned([_panes(window) for window in windows])


def _panes(window: Window) -> SlidingWindow:
    """Return the windows, those of SLICES as windows of the greatest length that divides all."""
    if isinstance(window, RepeatedSlices):
        length = gcd(*window.lengths)
        return SlidingWindow(length, length)
    return window
