"""Searching for where something becomes true."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.plan.unbounded_search import first_reached


@given(st.integers(-(1 << 60), 1 << 60), st.integers(0, 1 << 59))
def test_the_first_place_is_found_with_few_looks(begin: int, distance: int) -> None:
    looks = []

    def is_reached(n: int) -> bool:
        looks.append(n)
        return n >= begin + distance

    assert first_reached(is_reached, begin) == begin + distance
    assert len(looks) <= 2 * distance.bit_length() + 2


def test_what_never_comes_is_given_up() -> None:
    assert first_reached(lambda _: False, 0) is None


@given(st.integers(-1000, 1000))
def test_nothing_is_looked_at_before_the_begin(begin: int) -> None:
    def is_reached(n: int) -> bool:
        assert n >= begin
        return n >= 700

    assert first_reached(is_reached, begin) == max(begin, 700)
