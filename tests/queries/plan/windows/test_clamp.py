"""Values near the ends of 64 bits: no window around what replaces them leaves 64 bits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.expressions.expressions import Column, Expression
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.clamp import clamped, limits
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow, Window

MOST = 1 << 62
INT64 = range(-(1 << 63), 1 << 63)

near_ends = st.one_of(
    st.integers(0, 100).map(lambda n: INT64[n]),
    st.integers(1, 100).map(lambda n: INT64[-1] + 1 - n),
    st.integers(INT64[0], INT64[-1]),
)
lengths = st.one_of(st.integers(1, 50), st.integers(MOST - 50, MOST), st.integers(1, MOST))
windows: st.SearchStrategy[Window] = st.one_of(
    st.builds(SlidingWindow, lengths, lengths),
    st.lists(st.one_of(st.integers(1, 9), st.integers(1, MOST // 4)), min_size=1, max_size=4).map(
        lambda found: RepeatedSlices(tuple(found))
    ),
)
TIME = Column("t", GsqlType.INT, is_nullable=False)


def at(expression: Expression, time: int) -> int:
    found = evaluate(expression, lambda _: time)
    assert isinstance(found, int)
    return found


@given(windows, near_ends)
def test_all_windows_around_a_value_are_within_64_bits(window: Window, value: int) -> None:
    least, greatest = limits(window)
    time = at(clamped(TIME, window), value)
    assert time == sorted((least, value, greatest))[1]
    first = window.first_ending_after(time)
    last = max(first, window.last_starting_by(time))
    edges = [edge(at) for edge in (window.start, window.end) for at in (first, last)]
    assert all(edge in INT64 for edge in edges)


@given(windows, near_ends)
def test_the_number_of_the_slice_does_not_wrap(window: Window, value: int) -> None:
    slicing = Slicing.of([window])
    on = clamped(TIME, window)
    assert at(slicing.expression(on), value) == slicing.number(at(on, value))
