"""Windows in plain loops."""

from __future__ import annotations

from itertools import count, cycle
from typing import TYPE_CHECKING

from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

if TYPE_CHECKING:
    from collections.abc import Iterator


def windows_with(window: SlidingWindow | RepeatedSlices, time: int) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each window that holds ``time``, which is 0 or more."""
    if isinstance(window, SlidingWindow):
        for end in count(window.slide, window.slide):
            if end - window.range > time:
                return
            if time < end:
                yield end - window.range, end
    assert isinstance(window, RepeatedSlices)
    start = 0
    for length in cycle(window.lengths):
        if time < start + length:
            yield start, start + length
            return
        start += length
