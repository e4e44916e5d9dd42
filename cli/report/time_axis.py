"""The horizontal axis of a plot: its extent, unit and labels.

Labels are those of a clock of 24 hours. They show what the extent needs: days, minutes, seconds or
milliseconds. Below, where a calendar has no ticks, the axis counts microseconds from the first row.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.report.clock_text import clock_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from gscope.cli.report.series import Plot

_SECOND_NS = 1_000_000_000
_MS_NS = 1_000_000
_MICROSECOND_NS = 1_000
_HOUR_NS = 3600 * _SECOND_NS
_SHORTEST_CALENDAR_NS = 20 * _MS_NS

_FORMATS = (
    (8 * _SECOND_NS, "%H:%M:%S.%L", 12),
    (600 * _SECOND_NS, "%H:%M:%S", 8),
    (26 * _HOUR_NS, "%H:%M", 5),
    (14 * 24 * _HOUR_NS, "%m-%d %H:%M", 11),
)
"""Formats of labels: each for extents below a limit, with the length of a label."""

_STEPS_MS = tuple(
    unit_ms * count
    for unit_ms, counts in (
        (1, (1, 2, 5, 10, 20, 50, 100, 200, 250, 500)),
        (1000, (1, 2, 3, 5, 10, 15, 20, 30)),
        (60_000, (1, 2, 3, 5, 10, 15, 20, 30)),
        (3_600_000, (1, 2, 3, 4, 6, 8, 12)),
        (86_400_000, (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 50_000)),
    )
    for count in counts
)
"""Distances of ticks."""

_LONG_FORMAT = ("%Y-%m-%d", 10)


@dataclass(frozen=True, slots=True)
class ClockAxis:
    """How times become places on an axis.

    Attributes:
        origin_ns: the time that is 0 on it.
        unit_ns: the nanoseconds that 1 stands for.
        first_ns: the time at its left end.
        last_ns: the time at its right end, later than the first.
        label_format: the format of its labels.
        label_length: the most characters of a label.
        is_calendar: whether ticks are those of a calendar.
        title: its heading.
    """

    origin_ns: int
    unit_ns: int
    first_ns: int
    last_ns: int
    label_format: str
    label_length: int
    is_calendar: bool
    title: str

    def place(self, time_ns: int) -> float:
        """Return where a time is."""
        return (time_ns - self.origin_ns) / self.unit_ns

    def ticks_ms(self, most: float) -> list[int]:
        """Return the ticks of a calendar: multiples of the least step that fits ``most`` times."""
        first, last = self.place(self.first_ns), self.place(self.last_ns)
        step = next((s for s in _STEPS_MS if (last - first) / s <= most), _STEPS_MS[-1])
        return list(range(math.ceil(first / step) * step, math.floor(last) + 1, step))

    @property
    def encoding(self) -> dict[str, Any]:
        """The axis in Vega-Lite's terms, without its ticks."""
        domain = [self.place(self.first_ns), self.place(self.last_ns)]
        utc = {"type": "utc"} if self.is_calendar else {}
        return {
            "type": "temporal" if self.is_calendar else "quantitative",
            "title": self.title,
            "scale": {"domain": domain, "nice": False} | utc,
        }


def clock_axis(plot: Plot, style: TimeStyle) -> ClockAxis:
    """Return the axis of a plot.

    Local times have one offset from UTC on it: that of the first row.
    """
    first_ns, last_ns = plot.first_ns, plot.last_ns
    if first_ns == last_ns:
        around_ns = plot.grain_ns or _SECOND_NS
        around_ns = _SECOND_NS if around_ns < _MS_NS else around_ns
        first_ns, last_ns = first_ns - around_ns, last_ns + around_ns
    if last_ns - first_ns < _SHORTEST_CALENDAR_NS:
        title = f"microseconds after {clock_text(plot.first_ns, style)}"
        return ClockAxis(plot.first_ns, _MICROSECOND_NS, first_ns, last_ns, "~r", 7, False, title)
    if style is TimeStyle.EPOCH:
        title = "seconds since 1970-01-01 00:00:00 UTC"
        return ClockAxis(0, _SECOND_NS, first_ns, last_ns, "~f", 10, False, title)
    offset_s = _local_offset(plot.first_ns) if style is TimeStyle.LOCAL else 0
    days = [
        time.strftime("%Y-%m-%d", time.gmtime(each // _SECOND_NS + offset_s))
        for each in (plot.first_ns, plot.last_ns)
    ]
    zone = "UTC" if style is TimeStyle.UTC else _zone(offset_s)
    title = f"{' to '.join(dict.fromkeys(days))}, {zone}"
    span_ns = last_ns - first_ns
    label = next(((text, n) for most, text, n in _FORMATS if span_ns < most), _LONG_FORMAT)
    origin_ns = -offset_s * _SECOND_NS
    return ClockAxis(origin_ns, _MS_NS, first_ns, last_ns, *label, True, title)


def _local_offset(time_ns: int) -> int:
    return time.localtime(time_ns // _SECOND_NS).tm_gmtoff


def _zone(seconds: int) -> str:
    minutes = abs(seconds) // 60
    return f"UTC{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
