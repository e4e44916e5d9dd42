"""Times in tables: as many decimals as a column needs, in UTC, local time, or seconds since 1970.

TIMESTAMP columns are times, and so are INT columns that count time, such as ``time`` and
``time/60 AS tb``; those are shown as the time at which the second or the minute begins. The text
never stands for another instant than the value.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.config.time_style import TimeStyle
from gscope.queries.expressions.schema import ClockUnit
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.queries.expressions.schema import ColumnSchema

    Seconds = NDArray[np.int64]

_SECOND_NS = 1_000_000_000
_NANOSECONDS = 9
_MICROSECONDS = 6


def time_formatter(column: ColumnSchema, style: TimeStyle) -> TimeFormatter | None:
    """Return what formats a column, None if it is not a time or is shown as it is computed."""
    if column.type is GsqlType.TIMESTAMP:
        return TimeFormatter(column.clock or ClockUnit(1, 1), style)
    if column.type is GsqlType.INT and column.clock is not None and style is not TimeStyle.EPOCH:
        return TimeFormatter(column.clock, style, is_integer=True)
    return None


class TimeFormatter:
    """The text of one column of times, delivery after delivery.

    Args:
        clock: how its values count time.
        style: how to show them.
        is_integer: whether the column is an INT, whose values may be no times after all: those
            below 0 and those beyond the year 2262 are shown as numbers.

    Attributes:
        decimals: the digits after the second: 0 if the unit of the column is known to be whole
            seconds, 3 for milliseconds, otherwise 6, and 9 from the first value that needs them.
        is_number: whether the text is a number.
    """

    def __init__(self, clock: ClockUnit, style: TimeStyle, *, is_integer: bool = False) -> None:
        self._unit_ns = clock.unit_ns
        self._style = style
        self._is_integer = is_integer
        self.decimals = _least_decimals(clock.grain_ns)
        self.is_number = style is TimeStyle.EPOCH

    def __call__(self, column: pa.Array) -> pa.Array:
        """Return the text of each value; NULL stays NULL."""
        numbers = pc.cast(column, pa.int64())
        text = self._text(np.asarray(pc.fill_null(numbers, 0)))
        return pc.if_else(pc.is_valid(numbers), text, pa.scalar(None, pa.string()))

    def _text(self, numbers: NDArray[np.int64]) -> pa.Array:
        if not self._is_integer:
            return self._times(numbers)
        is_time = (numbers >= 0) & (numbers <= MAX_INT // self._unit_ns)
        text = self._times(np.where(is_time, numbers, 0) * self._unit_ns)
        if is_time.all():
            return text
        return pc.if_else(pa.array(is_time), text, pc.cast(pa.array(numbers), pa.string()))

    def _times(self, times_ns: NDArray[np.int64]) -> pa.Array:
        """Return the text of nanoseconds since 1970."""
        if self.decimals == _MICROSECONDS and (times_ns % 1000).any():
            self.decimals = _NANOSECONDS
        if self._style is TimeStyle.EPOCH:
            sign, magnitudes = _signs(times_ns)
            whole, rest = np.divmod(magnitudes, np.uint64(_SECOND_NS))
            text = pc.cast(pa.array(whole), pa.string())
            return _joined(sign, text, *self._fraction(rest))
        whole, rest = np.divmod(times_ns, _SECOND_NS)
        if self._style is TimeStyle.LOCAL:
            offsets, names = _local_offsets(whole)
            return _joined(_calendar(whole + offsets), *self._fraction(rest), names)
        return _joined(_calendar(whole), *self._fraction(rest), "Z")

    def _fraction(self, rest_ns: NDArray[np.integer]) -> tuple[str | pa.Array, ...]:
        """Return the text of fractions of a second, with the decimals of the column."""
        if not self.decimals:
            return ()
        digits = pa.array(rest_ns // 10 ** (_NANOSECONDS - self.decimals))
        return ".", pc.utf8_lpad(pc.cast(digits, pa.string()), self.decimals, "0")


def _least_decimals(grain_ns: int) -> int:
    if grain_ns % _SECOND_NS == 0:
        return 0
    return 3 if grain_ns % 1_000_000 == 0 else _MICROSECONDS


def _signs(times_ns: NDArray[np.int64]) -> tuple[pa.Array, NDArray[np.uint64]]:
    """Return ``-`` for times before 1970 and nothing for others, and all magnitudes."""
    is_before = times_ns < 0
    bits = times_ns.view(np.uint64)
    return (
        pc.if_else(pa.array(is_before), "-", ""),
        np.where(is_before, np.uint64(0) - bits, bits),
    )


def _calendar(seconds: Seconds) -> pa.Array:
    return pc.cast(pa.array(seconds, pa.timestamp("s")), pa.string())


def _local_offsets(seconds: Seconds) -> tuple[Seconds, pa.Array]:
    """Return the offset of local time from UTC at each time, in seconds and as text."""
    distinct, places = np.unique(seconds, return_inverse=True)
    offsets = np.array([time.localtime(int(each)).tm_gmtoff for each in distinct], np.int64)
    names = pa.array([_offset(int(each)) for each in offsets], pa.string())
    return offsets[places], names.take(pa.array(places))


def _offset(seconds: int) -> str:
    """Return ``+01:00``; historic offsets of local mean time have seconds."""
    minutes, rest = divmod(abs(seconds), 60)
    text = f"{'-' if seconds < 0 else '+'}{minutes // 60:02}:{minutes % 60:02}"
    return f"{text}:{rest:02}" if rest else text


def _joined(*parts: str | pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(*parts, "")
