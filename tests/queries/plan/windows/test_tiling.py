"""Which windows are ranges of whole slices, against edges that are listed one by one."""

from __future__ import annotations

from itertools import accumulate
from math import lcm

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.plan.windows.tiling import tiled_ranges, tiles
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow

lengths = st.lists(st.integers(1, 12), min_size=1, max_size=5).map(tuple)


def edges(slices: tuple[int, ...], until: int) -> set[int]:
    """The edges of ``slices`` from 0 on."""
    repeated = slices * (until // sum(slices) + 1)
    return {0, *accumulate(repeated)}


@given(lengths, st.integers(1, 60), st.integers(1, 60))
def test_a_window_is_tiled_if_it_begins_and_ends_at_edges(
    slices: tuple[int, ...], length: int, slide: int
) -> None:
    common = lcm(sum(slices), slide)
    # Windows far enough from 0 that none begins before it, over one period of both.
    ends = range(-(-length // slide) * slide, length + slide + common, slide)
    known = edges(slices, ends[-1])
    expected = all({end, end - length} <= known for end in ends)
    assert tiles(RepeatedSlices(slices), SlidingWindow(length, slide)) is expected


@given(lengths, st.integers(1, 200))
def test_lemma_1(slices: tuple[int, ...], length: int) -> None:
    """Slices whose period is the slide: some last slices sum up to the rest of the range."""
    slide = sum(slices)
    suffixes = {0, *accumulate(reversed(slices))}
    assert tiles(RepeatedSlices(slices), SlidingWindow(length, slide)) is (
        length % slide in suffixes
    )


@given(lengths, lengths)
def test_slices_of_slices(slices: tuple[int, ...], others: tuple[int, ...]) -> None:
    common = lcm(sum(slices), sum(others))
    expected = edges(others, common) <= edges(slices, common + sum(others))
    assert tiles(RepeatedSlices(slices), RepeatedSlices(others)) is expected


@given(lengths, st.integers(1, 100), st.integers(1, 60))
def test_the_next_ranges_that_are_tiled(slices: tuple[int, ...], length: int, slide: int) -> None:
    window = SlidingWindow(length, slide)
    if tiles(RepeatedSlices(slices), window):
        return
    tiled = [r for r in range(1, 250) if tiles(RepeatedSlices(slices), SlidingWindow(r, slide))]
    shorter, longer = [r for r in tiled if r < length], [r for r in tiled if r > length]
    assert tiled_ranges(RepeatedSlices(slices), window) == [*shorter[-1:], *longer[:1]]


def test_the_published_window_is_tiled_by_its_pair() -> None:
    assert tiles(RepeatedSlices((12, 3)), SlidingWindow(18, 15))
    assert not tiles(RepeatedSlices((3, 12)), SlidingWindow(18, 15))


def test_periods_in_nanoseconds_are_not_listed() -> None:
    assert not tiles(RepeatedSlices((10**17 + 1, 10**17)), SlidingWindow(10**12 + 7, 10**12 + 7))
