"""Slices against their definition: a plain set of edges, counted one by one.

Half of the theorems are those of On-the-Fly Sharing for Streamed Aggregation (SIGMOD 2006).
"""

from __future__ import annotations

from fractions import Fraction
from functools import reduce
from itertools import pairwise
from math import gcd, lcm
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.queries.plan.windows.window_plan import WindowPlan

if TYPE_CHECKING:
    from gscope.queries.plan.windows.window import Window

TIME = PacketField("time", GsqlType.INT, is_nullable=False)

lengths = st.integers(1, 12)
sliding = st.builds(SlidingWindow, st.integers(1, 40), lengths)
repeated = st.builds(RepeatedSlices, st.lists(lengths, min_size=1, max_size=4).map(tuple))
any_window = st.one_of(sliding, repeated)
classes = st.lists(any_window, min_size=1, max_size=4)
times = st.integers(-200, 200)


def edges(window: Window, low: int, high: int) -> set[int]:
    """Return the times in [low, high) at which ``window`` begins or ends a window, one by one."""
    found: set[int] = set()
    if isinstance(window, SlidingWindow):
        for time in range(low, high):
            if time % window.slide == 0 or (time + window.range) % window.slide == 0:
                found.add(time)
        return found
    time = low - low % sum(window.lengths)
    while time < high:
        for length in window.lengths:
            found |= {time} if low <= time < high else set()
            time += length
    return found


def united(windows: list[Window], low: int, high: int) -> set[int]:
    return {edge for window in windows for edge in edges(window, low, high)}


@given(classes, times, times)
def test_a_number_rises_exactly_at_the_edges(windows: list[Window], one: int, other: int) -> None:
    slicing = Slicing.of(windows)
    low, high = min(one, other), max(one, other)
    rises = {t for t in range(low, high) if slicing.number(t) > slicing.number(t - 1)}
    assert rises == united(windows, low, high)
    assert all(slicing.number(t) >= slicing.number(t - 1) for t in range(low, high))


@given(classes, times)
def test_a_window_is_a_range_of_whole_slices(windows: list[Window], time: int) -> None:
    slicing = Slicing.of(windows)
    for window in windows:
        w = window.first_ending_after(time)
        first, end = (slicing.number(t) for t in (window.start(w), window.end(w)))
        for t in range(window.start(w) - 30, window.end(w) + 30):
            assert (first <= slicing.number(t) < end) == (window.start(w) <= t < window.end(w))
        assert 0 < end - first <= slicing.most_within(window)


@given(any_window)
def test_the_bound_of_slices_in_a_window_is_reached_by_its_own(window: Window) -> None:
    slicing = Slicing.of([window])
    counts = [slicing.number(window.end(w)) - slicing.number(window.start(w)) for w in range(1, 60)]
    assert max(counts) == slicing.most_within(window)


@given(classes, times)
def test_the_expression_is_the_number(windows: list[Window], time: int) -> None:
    slicing = Slicing.of(windows)
    assert evaluate(slicing.expression(TIME), lambda _: time) == slicing.number(time)


@given(classes, times)
def test_the_last_time_before_a_number(windows: list[Window], time: int) -> None:
    slicing = Slicing.of(windows)
    number = slicing.number(time)
    last = slicing.last_time_before(number)
    assert slicing.number(last) < number <= slicing.number(last + 1)


@given(classes, st.integers(1, 4000))
def test_the_vector_of_a_period(windows: list[Window], most: int) -> None:
    slicing = Slicing.of(windows)
    period = slicing.period
    vector = slicing.vector(most)
    assert (vector is None) == (slicing.rate * period > most)
    if vector is None:
        return
    ends = sorted(united(windows, 0, period) | {0, period})
    assert vector == tuple(b - a for a, b in pairwise(ends))
    assert Fraction(len(vector), period) <= slicing.rate


@given(classes, st.integers(1, 1000))
def test_a_finer_unit_changes_nothing(windows: list[Window], factor: int) -> None:
    slicing = Slicing.of(windows)
    scaled = Slicing.of([window.scaled(factor) for window in windows])
    for time in range(-50, 50):
        assert scaled.number(time * factor + factor // 2) == slicing.number(time)


# The paper.


def test_published_examples() -> None:
    w = SlidingWindow(18, 15)
    assert Slicing.of([w]).vector(9) == (12, 3)
    assert Slicing.paned([w]).vector(9) == (3,)
    assert set(RepeatedSlices((12, 3)).edges) == set(w.edges)
    both = Slicing.of([RepeatedSlices((12, 3)), RepeatedSlices((6, 3))])
    assert both.period == 45
    assert both.vector(20) == (6, 3, 3, 3, 3, 6, 3, 3, 3, 3, 6, 3)


@given(st.lists(sliding, min_size=1, max_size=4))
def test_paired_slices_have_the_fewest_edges(windows: list[Window]) -> None:
    """Theorem 1: each of their edges is the beginning or the end of a window."""
    slicing = Slicing.of(windows)
    period = slicing.period
    if period > 2000:
        period = 2000
    needed = set()
    for window in windows:
        w = window.first_ending_after(-1)
        while min(window.start(w), window.end(w)) <= period:
            needed |= {window.start(w), window.end(w)}
            w += 1
    rises = {t for t in range(period) if slicing.number(t) > slicing.number(t - 1)}
    assert rises <= needed


@given(st.lists(sliding, min_size=1, max_size=4))
def test_paired_never_has_more_edges_than_paned(windows: list[SlidingWindow]) -> None:
    """And every edge of paired slices is one of paned slices."""
    paired, paned = Slicing.of(windows), Slicing.paned(windows)
    for time in range(300):
        if paired.number(time) > paired.number(time - 1):
            assert paned.number(time) > paned.number(time - 1)


@given(st.lists(sliding, min_size=1, max_size=5))
def test_the_rate_of_edges_has_the_bounds_of_the_paper(windows: list[SlidingWindow]) -> None:
    """At least that of the busiest window, at most the sum of all, less what coincides."""
    slicing = Slicing.of(windows)
    vector = slicing.vector(5000)
    rate = slicing.rate if vector is None else Fraction(len(vector), slicing.period)
    each = [Fraction(2 if w.range % w.slide else 1, w.slide) for w in windows]
    assert max(each) <= rate <= sum(each)


@given(st.integers(1, 30), st.lists(st.integers(1, 90), min_size=1, max_size=6))
def test_windows_with_one_slide_share_its_edge(slide: int, ranges: list[int]) -> None:
    """1/s (2/s unless all slide by whole ranges) <= β <= (n+1)/s."""
    slicing = Slicing.of([SlidingWindow(r, slide) for r in ranges])
    vector = slicing.vector(5000)
    assert vector is not None
    pairs = {r % slide for r in ranges} - {0}
    assert slicing.period == slide
    assert len(vector) == 1 + len(pairs) <= len(ranges) + 1


def test_the_edges_of_many_windows_need_no_common_period() -> None:
    """The paper stretches slices to the common period, here of 25 digits."""
    slides = [86_400 - n for n in (0, 1, 7, 13, 17)]
    slicing = Slicing.of([SlidingWindow(2 * s + 5, s) for s in slides])
    assert slicing.period == reduce(lcm, slides)
    assert slicing.vector(24) is None
    assert len(slicing.edges) == 2 * len(slides)
    now = 1_700_000_000
    assert slicing.number(now + 86_400) - slicing.number(now) in range(9, 12)


@pytest.mark.parametrize(("length", "slide"), [(18, 15), (7, 3), (60, 60), (10, 4)])
def test_panes_divide_range_and_slide(length: int, slide: int) -> None:
    assert Slicing.paned([SlidingWindow(length, slide)]).vector(9) == (gcd(length, slide),)


def test_panes_divide_all_slices() -> None:
    assert WindowPlan.PANED.slicing([RepeatedSlices((4, 6))]).vector(9) == (2,)
