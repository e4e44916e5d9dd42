"""Samples: what turns counts and sums into estimates, and the rate as a column.

GSQL has no names for these functions; the column ``sample_rate`` is a call of one of them.
"""

from __future__ import annotations

import math

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT


def _scaled_int(value: int, factor: float) -> int:
    """Return the nearest whole number to ``value * factor``, at most an end of 64 bits.

    Halves round up. As in Java, NaN gives 0.
    """
    scaled = value * factor + 0.5
    if math.isnan(scaled):
        return 0
    if not math.isfinite(scaled):
        return MAX_INT if scaled > 0 else MIN_INT
    return min(max(math.floor(scaled), MIN_INT), MAX_INT)


_FUNCTIONS = (
    FunctionEntry(
        "scaled_int",
        (Parameter(GsqlType.INT), Parameter(GsqlType.FLOAT)),
        GsqlType.INT,
        _scaled_int,
        cost=5,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "sample_rate",
        (),
        GsqlType.FLOAT,
        # The HFTA job puts the rate in its place where packets are sampled (``plan/scaling.py``).
        lambda: 1.0,
        is_pure=False,
        is_lfta_safe=False,
    ),
)
ESTIMATES = {entry.name: entry for entry in _FUNCTIONS}
