"""Windows by the numbers of their slices, against a search through all windows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.plan.windows.numbered import NumberedWindows
from gscope.queries.plan.windows.slicing import EVERY_TIME, Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

sliding = st.builds(SlidingWindow, st.integers(1, 40), st.integers(1, 30))
slices = st.builds(RepeatedSlices, st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple))
windows = st.one_of(sliding, slices)


@given(windows, st.lists(windows, max_size=3), st.booleans(), st.integers(-90, 90))
def test_windows_are_found_by_the_slices_that_they_hold(
    window: Window, others: list[Window], is_by_time: bool, time: int
) -> None:
    slicing = EVERY_TIME if is_by_time else Slicing.of([window, *others])
    numbered = NumberedWindows(window, slicing)
    number = slicing.number(time)
    near = range(-150, 150)
    assert numbered.last_complete(number) == max(w for w in near if window.end(w) <= time)
    assert numbered.first_open(number) == min(w for w in near if time < window.end(w))
    assert numbered.last_holding(number) == max(w for w in near if window.start(w) <= time)
    for each in range(-5, 5):
        within = range(slicing.number(window.start(each)), numbered.end_slice(each))
        assert (number in within) == (window.start(each) <= time < window.end(each))
