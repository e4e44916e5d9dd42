"""Windows by the numbers of their slices: which are complete, and which hold a slice.

The ends of windows rise strictly, and each is an edge of the slicing, so that windows and the
numbers of the slices at their ends correspond one to one: a window is complete when all slices
below the number at its end are.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.queries.plan.windows.slicing import Slicing
    from gscope.queries.plan.windows.window import Window


@dataclass(frozen=True, slots=True)
class NumberedWindows:
    """Windows and the slices that they consist of."""

    window: Window
    slicing: Slicing

    def end_slice(self, window: int) -> int:
        """Return the number of the first slice after ``window``: its own are all below."""
        return self.slicing.number(self.window.end(window))

    def last_complete(self, bound: int) -> int:
        """Return the last window whose slices are all below ``bound``."""
        return _last_complete(self, bound)

    def first_open(self, slice_number: int) -> int:
        """Return the first window that ends after the slice."""
        return self.last_complete(slice_number) + 1

    def last_holding(self, slice_number: int) -> int:
        """Return the last window that begins before or with the slice.

        It holds the slice unless the slice is in a gap between windows.
        """
        return self.window.last_starting_by(self.slicing.last_time_before(slice_number + 1))


@lru_cache(maxsize=4096)
def _last_complete(windows: NumberedWindows, bound: int) -> int:
    # An operator asks for the same one whenever a message arrives.
    return windows.window.first_ending_after(windows.slicing.last_time_before(bound) + 1) - 1
