"""Counts, sizes, durations and times as text for people; None is a dash."""

from __future__ import annotations

from datetime import UTC, datetime

NOTHING = "-"

_SECOND_NS = 1_000_000_000
_LARGE = ((86_400, "d", 3_600, "h"), (3_600, "h", 60, "m"), (60, "m", 1, "s"))


def count(value: float | None) -> str:
    """Return a count such as ``12,345``; from a million on ``1.23M``, ``12.3M``, ``123M``."""
    if value is None:
        return NOTHING
    for scale, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= scale:
            whole = value / scale
            return f"{whole:.{2 if whole < 10 else 1 if whole < 100 else 0}f}{unit}"
    return f"{value:,.0f}"


def rate(value: float | None) -> str:
    """Return a number of something a second, such as ``12,345``, ``3.2`` or ``0``."""
    if value is None or value >= 9.95:
        return count(value)
    if 0 < value < 0.05:
        return "<0.1"
    return f"{value:.1f}" if value else "0"


def cost(nanoseconds: float | None) -> str:
    """Return a time for each of many things, such as ``85ns``, ``1.2µs`` or ``34ms``."""
    if nanoseconds is None:
        return NOTHING
    for unit_ns, unit in ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1, "ns")):
        if nanoseconds >= unit_ns or unit == "ns":
            value = nanoseconds / unit_ns
            return f"{value:.1f}{unit}" if value < 9.95 and unit != "ns" else f"{value:.0f}{unit}"
    raise AssertionError


def ratio(value: float | None) -> str:
    """Return a ratio that may be small or above 1, such as ``12%``, ``0.03%`` or ``250%``."""
    if value is None:
        return NOTHING
    percent = 100 * value
    if percent >= 9.95 or percent == 0:
        return f"{percent:,.0f}%"
    return "<0.01%" if percent < 0.005 else f"{percent:.2g}%"


def size(value: int | None) -> str:
    """Return a size such as ``12.3M``, in powers of 1024."""
    if value is None:
        return NOTHING
    for scale, unit in ((1 << 40, "T"), (1 << 30, "G"), (1 << 20, "M"), (1 << 10, "K")):
        if value >= scale:
            return f"{value / scale:.1f}{unit}"
    return str(value)


def duration(nanoseconds: int | None) -> str:
    """Return a duration such as ``0.2ms``, ``34ms``, ``1.25s``, ``2m5s``, ``3h20m``, ``4d2h``."""
    if nanoseconds is None:
        return NOTHING
    seconds = nanoseconds / _SECOND_NS
    for large, large_unit, small, small_unit in _LARGE:
        if seconds >= large:
            whole, rest = divmod(int(seconds), large)
            return f"{whole}{large_unit}{rest // small}{small_unit}"
    if seconds >= 10:
        return f"{seconds:.0f}s"
    if seconds >= 0.9995:
        return f"{seconds:.2f}s"
    milliseconds = nanoseconds / 1e6
    return f"{milliseconds:.0f}ms" if milliseconds >= 10 else f"{milliseconds:.1f}ms"


def moment(nanoseconds: int | None) -> str:
    """Return a time such as ``2026-11-21 03:29:00``, UTC."""
    if nanoseconds is None:
        return NOTHING
    try:
        when = datetime.fromtimestamp(nanoseconds // _SECOND_NS, UTC)
    except (ValueError, OverflowError, OSError):
        return str(nanoseconds)
    return f"{when:%Y-%m-%d %H:%M:%S}"


def of_day(nanoseconds: int | None) -> str:
    """Return a time of day such as ``03:29:00``, UTC."""
    return moment(nanoseconds).rpartition(" ")[2]


def share(value: float | None) -> str:
    """Return a ratio as a percentage such as ``12%``."""
    return NOTHING if value is None else f"{100 * value:.0f}%"
