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


@given(st.integers(0, 1 << 59), st.integers(-(1 << 59), 1 << 59))
def test_a_guess_makes_the_search_as_long_as_it_is_wrong(first: int, error: int) -> None:
    looks = []

    def is_reached(n: int) -> bool:
        looks.append(n)
        return n >= first

    assert first_reached(is_reached, 0, first + error) == first
    assert len(looks) <= 2 * abs(error).bit_length() + 2


def test_what_never_comes_is_given_up() -> None:
    assert first_reached(lambda _: False, 0) is None
    assert first_reached(lambda _: False, 0, 1 << 60) is None


@given(st.integers(-1000, 1000), st.integers(-2000, 2000))
def test_nothing_is_looked_at_before_the_begin(begin: int, guess: int) -> None:
    def is_reached(n: int) -> bool:
        assert n >= begin
        return n >= 700

    assert first_reached(is_reached, begin, guess) == max(begin, 700)
