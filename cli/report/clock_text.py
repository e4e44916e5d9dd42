"""Times of a report as text: in UTC, in local time, or in seconds since 1970."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.cli.sinks.table_times import TimeFormatter
from gscope.queries.expressions.schema import ClockUnit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.config.time_style import TimeStyle


def clock_text(time_ns: int, style: TimeStyle, grain_ns: int | None = None) -> str:
    """Return the text of a time, with as many decimals as it needs."""
    return clock_texts([time_ns], style, grain_ns)[0]


def clock_texts(
    times_ns: Sequence[int], style: TimeStyle, grain_ns: int | None = None
) -> list[str]:
    """Return the texts of times, all with the same number of decimals."""
    formatter = TimeFormatter(ClockUnit(1, grain_ns or 1), style)
    found: list[str] = formatter(pa.array(times_ns, pa.timestamp("ns"))).to_pylist()
    return found
