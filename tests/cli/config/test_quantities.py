from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.cli.config.quantities import (
    parse_count,
    parse_duration,
    parse_positive_duration,
    parse_size,
    show_duration,
    show_size,
)


@pytest.mark.parametrize(
    ("text", "nanoseconds"),
    [
        ("500ms", 500_000_000),
        ("10 sec", 10_000_000_000),
        ("1.5 min", 90_000_000_000),
        ("2h", 7_200_000_000_000),
        ("2m", 120_000_000_000),
        ("1d", 86_400_000_000_000),
        ("1.5 days", 129_600_000_000_000),
        ("3", 3_000_000_000),
        ("7us", 7_000),
        ("0", 0),
    ],
)
def test_a_duration_is_read_in_its_unit(text: str, nanoseconds: int) -> None:
    assert parse_duration(text) == nanoseconds


@pytest.mark.parametrize("text", ["", "ten", "5 parsecs", "-1s", "1s2", "9" * 40, "10000000h"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|large"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "size"), [("4096", 4096), ("2G", 2 << 30), ("64 MiB", 64 << 20), ("1.5k", 1536)]
)
def test_a_size_is_read_in_its_unit(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize("text", ["", "G", "2X", "-1", "1e3"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="size"):
        parse_size(text)


@pytest.mark.parametrize("text", ["0", "-3", "1.5", "x", "", "9" * 24])
def test_what_is_no_count_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"number|large"):
        parse_count(text)


def test_no_time_at_all_is_no_positive_duration() -> None:
    assert parse_positive_duration("1ns") == 1
    with pytest.raises(ValueError, match="more than 0"):
        parse_positive_duration("0s")


@given(st.integers(0, 2**62))
def test_a_shown_duration_is_read_back(nanoseconds: int) -> None:
    assert parse_duration(show_duration(nanoseconds)) == nanoseconds


@given(st.integers(0, 2**62))
def test_a_shown_size_is_read_back(size: int) -> None:
    assert parse_size(show_size(size)) == size


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    for parse in (parse_duration, parse_size, parse_count):
        with suppress(ValueError):
            assert parse(text) >= 0
