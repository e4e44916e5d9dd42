"""Exact sums that stand in two columns, see ``queries/catalog/aggregate/halves.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.queries.catalog.aggregate.halves import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_LOW_32 = (1 << 32) - 1


def as_floats(low: Array, high: Array) -> Array:
    """The nearest double to each sum; 64 bits hold most of them, Python adds up the others."""
    upper = high + (low >> 32)
    fits = (upper >= -(1 << 31)) & (upper < 1 << 31)
    sums: Array = ((upper << 32) + (low & _LOW_32)).astype(np.float64)
    for place in np.flatnonzero(~fits):
        sums[place] = float(whole(int(low[place]), int(high[place])))
    return sums
