"""Axes of time: extents, units, zones, and labels that differ from each other."""

from __future__ import annotations

import itertools
import re
import time
from typing import TYPE_CHECKING

import numpy as np
import pytest

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.plot import NARROW, WIDE, PlotSize, svg_in_page
from gscope.cli.report.series import Line, Plot
from gscope.cli.report.time_axis import clock_axis

if TYPE_CHECKING:
    from collections.abc import Iterator

BEGAN_NS = 1_700_000_000_000_000_000
SECOND = 1_000_000_000
DAY = 86_400 * SECOND


def plot(span_ns: int, grain_ns: int | None = None, began_ns: int = BEGAN_NS) -> Plot:
    times = np.unique(np.linspace(began_ns, began_ns + span_ns, 5).astype(np.int64))
    line = Line("n", times, np.arange(len(times), dtype=np.float64) + 1, len(times))
    return Plot("q", "n", "", (line,), began_ns, began_ns + span_ns, grain_ns, False, ())


def labels(drawn: Plot, style: TimeStyle, size: PlotSize) -> list[str]:
    """The labels of the horizontal axis that are shown."""
    text = svg_in_page(drawn, style, size)
    axis = text[text.index("role-axis-label") :]
    axis = axis[: axis.index("</g>")]
    found = re.findall(r"<text([^>]*)>([^<]*)</text>", axis)
    return [label for attributes, label in found if 'opacity="0"' not in attributes]


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize(
    ("span_ns", "pattern"),
    [
        (700, r"[\d.]+"),
        (5_000_000, r"[\d,.]+"),
        (3 * SECOND, r"\d\d:\d\d:\d\d\.\d{3}"),
        (90 * SECOND, r"\d\d:\d\d:\d\d"),
        (3600 * SECOND, r"\d\d:\d\d"),
        (20 * 3600 * SECOND, r"\d\d:\d\d"),
        (4 * DAY, r"\d\d-\d\d \d\d:\d\d"),
        (60 * DAY, r"\d{4}-\d\d-\d\d"),
        (9000 * DAY, r"\d{4}-\d\d-\d\d"),
    ],
)
def test_labels_show_what_the_extent_needs(span_ns: int, pattern: str, size: PlotSize) -> None:
    shown = labels(plot(span_ns), TimeStyle.UTC, size)
    assert len(shown) >= 2
    assert len(set(shown)) == len(shown)
    assert all(re.fullmatch(pattern, each) for each in shown), shown


@pytest.mark.parametrize("span_ms", [50, 1000, 7_777, 123_456, 86_400_000])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_every_tick_has_its_label(span_ms: int, size: PlotSize) -> None:
    for began_ns in (BEGAN_NS + 40 * SECOND, 123_456_789):
        shown = labels(plot(span_ms * 1_000_000, began_ns=began_ns), TimeStyle.UTC, size)
        moments = [parsed(each) for each in shown]
        if len(shown) == 1 and size is NARROW and "." in shown[0]:
            continue  # a second label of twelve characters has no room
        steps = {(b - a) % 86_400_000 for a, b in itertools.pairwise(moments)}
        assert len(steps) == 1, shown
        (step,) = steps
        first_ms = -(-began_ns // (step * 1_000_000)) * step
        last_ms = (began_ns + span_ms * 1_000_000) // 1_000_000
        assert moments[0] == first_ms % 86_400_000, shown
        assert len(moments) == (last_ms - first_ms) // step + 1, shown


def parsed(label: str) -> int:
    """The milliseconds of a day that a label names."""
    hours, minutes, seconds = [*label.split(":"), "0"][:3]
    return round((int(hours) * 3600 + int(minutes) * 60 + float(seconds)) * 1000)


@pytest.mark.parametrize("grain_ns", [None, 1, SECOND, 60 * SECOND, 3600 * SECOND])
def test_a_single_time_is_in_the_middle(grain_ns: int | None) -> None:
    axis = clock_axis(plot(0, grain_ns), TimeStyle.UTC)
    assert axis.first_ns < BEGAN_NS < axis.last_ns
    assert BEGAN_NS - axis.first_ns == axis.last_ns - BEGAN_NS
    shown = labels(plot(0, grain_ns), TimeStyle.UTC, WIDE)
    assert len(set(shown)) == len(shown) >= 2


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.usefixtures("berlin")
def test_local_times_have_their_offset() -> None:
    for began, title in (
        (BEGAN_NS, "2023-11-14, UTC+01:00"),
        (BEGAN_NS - 150 * DAY, "2023-06-18, UTC+02:00"),
    ):
        drawn = plot(600 * SECOND, began_ns=began)
        axis = clock_axis(drawn, TimeStyle.LOCAL)
        assert axis.title == title
        shift = (2 if "+02" in title else 1) * 3600 * 1000
        assert axis.place(began) == began / 1e6 + shift
    assert clock_axis(drawn, TimeStyle.UTC).title.endswith(", UTC")


def test_seconds_since_1970_are_numbers() -> None:
    shown = labels(plot(600 * SECOND), TimeStyle.EPOCH, WIDE)
    assert len(shown) >= 3
    assert all(1_700_000_000 <= int(each) <= 1_700_000_600 for each in shown)
