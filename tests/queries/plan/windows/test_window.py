"""Windows by number, against windows that are listed one by one."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

sliding = st.builds(SlidingWindow, st.integers(1, 40), st.integers(1, 15))
slices = st.builds(RepeatedSlices, st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple))
times = st.integers(-100, 100)


def listed(window: Window) -> list[tuple[int, int]]:
    """Return the start and the end of all windows between -300 and 300, in order."""
    if isinstance(window, SlidingWindow):
        ends = [t for t in range(-300, 300) if t % window.slide == 0]
        return [(end - window.range, end) for end in ends]
    edges = [-sum(window.lengths) * 300]
    while edges[-1] < 300:
        edges += [edges[-1] + sum(window.lengths[: n + 1]) for n in range(len(window.lengths))]
    return [(start, end) for start, end in pairwise(edges) if start >= -300]


@given(st.one_of(sliding, slices), times)
def test_windows_have_the_edges_of_the_definition(window: Window, time: int) -> None:
    known = listed(window)
    first, last = window.first_ending_after(time), window.last_starting_by(time)
    assert window.end(first) == min(end for _, end in known if end > time)
    assert window.start(last) == max(start for start, _ in known if start <= time)
    assert all((window.start(n), window.end(n)) in known for n in (first, last, first - 1))
    assert window.end(first - 1) <= time < window.start(last + 1)


@given(st.one_of(sliding, slices))
def test_lengths_are_the_greatest_of_any_window(window: Window) -> None:
    known = [each for each in listed(window) if -150 <= each[0] <= 150]
    assert window.longest == max(end - start for start, end in known)
    holding = [sum(start <= t < end for start, end in known) for t in range(-50, 50)]
    assert window.overlap == max(holding)
    back = [end - start for (_, end), (start, _) in pairwise(known)]
    assert window.kept == max(0, *back)
