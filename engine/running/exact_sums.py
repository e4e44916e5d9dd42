"""Sums of integers over epochs, exact until they are answered.

The state of a group is its sum in two halves, the lower one below 2³², so it does not wrap however
long the group lives. An answer has 64 bits; one that exceeds them wraps and is counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.halves import LOW_32, as_integers
from gscope.engine.running.vectors import Vector
from gscope.engine.running.window import MovingWindow, valid_of, values_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Array = NDArray[Any]


class ExactRunningSum:
    """``running_sum`` of INT; see ``Accumulator``.

    Args:
        groups: the number of groups.
        parts: the sums of each row's epoch, whole or in halves.

    Attributes:
        wrapped: the number of answers that exceeded 64 bits.
    """

    def __init__(self, groups: int, parts: Sequence[Vector]) -> None:
        self.wrapped = 0
        self._parts = _halves(parts)
        self._low = np.zeros(groups, np.int64)
        self._high = np.zeros(groups, np.int64)
        self._has = np.zeros(groups, np.bool_)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        low, high = state
        self._has[places] = valid_of(low)
        self._low[places] = values_of(low, np.int64)
        self._high[places] = values_of(high, np.int64)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._low[places] = self._high[places] = 0
        self._has[places] = False

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        low, high = (part.take(rows) for part in self._parts)
        places = live[at][low.valid]
        sums = self._low[places] + low.values[low.valid]
        self._low[places] = sums & LOW_32
        self._high[places] += high.values[low.valid] + (sums >> 32)
        self._has[places] = True
        values, fits = as_integers(self._low[live], self._high[live])
        self.wrapped += _count(self._has[live] & ~fits)
        return Vector(values, self._has[live])

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        is_null = ~self._has[live]
        return [pa.array(half[live], mask=is_null) for half in (self._low, self._high)]


class ExactMovingSum:
    """``moving_sum`` of INT; see ``Accumulator``.

    Args:
        groups: the number of groups.
        length: the length of the window, in epochs.
        parts: the sums of each row's epoch, whole or in halves.

    Attributes:
        wrapped: the number of answers that exceeded 64 bits.
    """

    def __init__(self, groups: int, length: int, parts: Sequence[Vector]) -> None:
        self.wrapped = 0
        self._windows = [MovingWindow(groups, length, part) for part in _halves(parts)]

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        for window, saved in zip(self._windows, state, strict=True):
            window.restore(places, saved)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        for window in self._windows:
            window.begin(places)

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        for window in self._windows:
            window.push(live, at, rows)
        low, high = (window.total(live) for window in self._windows)
        values, fits = as_integers(low.values, high.values)
        self.wrapped += _count(low.valid & ~fits)
        return Vector(values, low.valid)

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [window.save(live) for window in self._windows]


def _halves(parts: Sequence[Vector]) -> tuple[Vector, Vector]:
    """Return sums in halves, the lower one below 2³²."""
    low, high = parts if len(parts) > 1 else (parts[0], None)
    upper = low.values >> 32
    if high is not None:
        upper = upper + high.values
    return Vector(low.values & LOW_32, low.valid), Vector(upper, low.valid)


def _count(flags: Array) -> int:
    return int(np.count_nonzero(flags))
