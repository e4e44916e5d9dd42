"""Exact sums in two columns; see ``queries/catalog/aggregate/halves.py``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.queries.catalog.aggregate.halves import whole

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

LOW_32 = (1 << 32) - 1


def as_integers(low: Array, high: Array) -> tuple[Array, Array]:
    """Return each sum in 64 bits, which wraps, and which of them fit."""
    upper = high + (low >> 32)
    fits = (upper >= -(1 << 31)) & (upper < 1 << 31)
    return (upper << 32) + (low & LOW_32), fits


def joined_halves(low: pa.Array, high: pa.Array) -> tuple[pa.Array, int]:
    """Return the sums of two columns of halves, NULL where they are, and the number that wrap."""
    is_null = low.is_null().to_numpy(zero_copy_only=False)
    sums, fits = as_integers(low.fill_null(0).to_numpy(), high.fill_null(0).to_numpy())
    return pa.array(sums, mask=is_null), int(np.count_nonzero(~fits))


def as_floats(low: Array, high: Array) -> Array:
    """Return the double nearest to each sum; Python computes those that exceed 64 bits."""
    wrapped, fits = as_integers(low, high)
    sums: Array = wrapped.astype(np.float64)
    for place in np.flatnonzero(~fits):
        sums[place] = float(whole(int(low[place]), int(high[place])))
    return sums
