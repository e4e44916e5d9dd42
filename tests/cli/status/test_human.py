"""Counts, sizes, durations as people read them."""

from __future__ import annotations

import pytest

from gscope.cli.status import human

MS = 1_000_000
SECOND = 1_000 * MS


@pytest.mark.parametrize(
    ("nanoseconds", "text"),
    [
        (0, "0.0ms"),
        (240_000, "0.2ms"),
        (34 * MS, "34ms"),
        (999_400_000, "999ms"),
        (1_250 * MS, "1.25s"),
        (59 * SECOND, "59s"),
        (125 * SECOND, "2m5s"),
        (12_000 * SECOND, "3h20m"),
        (100 * 3600 * SECOND, "4d4h"),
        (None, "-"),
    ],
)
def test_durations(nanoseconds: int | None, text: str) -> None:
    assert human.duration(nanoseconds) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (999_999, "999,999"),
        (1_234_567, "1.23M"),
        (123_456_789, "123M"),
        (2e12, "2.00T"),
        (None, "-"),
    ],
)
def test_counts(value: float | None, text: str) -> None:
    assert human.count(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (1023, "1023"), (1536, "1.5K"), (8 << 30, "8.0G"), (None, "-")]
)
def test_sizes(value: int | None, text: str) -> None:
    assert human.size(value) == text


def test_moments() -> None:
    assert human.moment(0) == "1970-01-01 00:00:00"
    assert human.of_day(61 * SECOND) == "00:01:01"
    assert human.moment(2**80) == str(2**80)
    assert human.moment(None) == human.of_day(None) == "-"
