"""Samples: what turns counts and sums into estimates, and the columns that describe a sample.

GSQL has no names for these functions: the columns ``sample_rate``, ``sample_groups``, ``x_low`` and
``x_high`` are calls of them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

from gscope.queries.catalog.scalar.entry import FunctionEntry, Parameter
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gscope.queries.expressions.expressions import Expression, Value

Ends: TypeAlias = tuple[FunctionEntry, FunctionEntry]

REST_BITS = 32
"""Bits of the fraction that ``scaled_rest`` returns."""

_REST_UNITS = float(1 << REST_BITS)


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


def _scaled_whole(value: int, factor: float) -> int:
    """Return the whole part of ``value * factor``; the value itself at the factor 1.

    As in Java, NaN gives 0.
    """
    scaled = value * factor
    if factor == 1 or math.isnan(scaled):
        return value if factor == 1 else 0
    return _whole(math.floor, scaled)


def _scaled_rest(value: int, factor: float) -> int:
    """Return what ``_scaled_whole`` leaves, from 0 to 1, in units of 2⁻³².

    It is 1 for products that are negative and so close to 0 that the difference is rounded.
    """
    scaled = value * factor
    if factor == 1 or not math.isfinite(scaled):
        return 0
    return math.floor((scaled - math.floor(scaled)) * _REST_UNITS)


def _margin(squared: float) -> float:
    """Return the half width of an interval, 0 if the square is not positive."""
    return math.sqrt(squared) if squared > 0 else 0.0


def _low_int(value: int | None, squared: float | None, least: int | None) -> int | None:
    if value is None or squared is None:
        return None
    if not squared > 0:
        return value
    low = _whole(math.floor, float(value) - _margin(squared))
    return least if least is not None and low < least else low


def _high_int(value: int, squared: float) -> int:
    return _whole(math.ceil, float(value) + _margin(squared)) if squared > 0 else value


def _low_float(value: float | None, squared: float | None, least: float | None) -> float | None:
    if value is None or squared is None:
        return None
    if not squared > 0:
        return value
    low = value - _margin(squared)
    return least if least is not None and low < least else low


def _high_float(value: float, squared: float) -> float:
    return value + _margin(squared) if squared > 0 else value


def _whole(rule: Callable[[float], int], value: float) -> int:
    """Return a rounded value, at most an end of 64 bits."""
    if not math.isfinite(value):
        return MAX_INT if value > 0 else MIN_INT
    return min(max(rule(value), MIN_INT), MAX_INT)


def _is_first_nullable(arguments: Sequence[Expression]) -> bool:
    """Return whether an end of an interval can be NULL: the least value may be NULL for none."""
    return any(argument.is_nullable for argument in arguments[:2])


def _ends(kind: GsqlType, low: Callable[..., Value], high: Callable[..., Value]) -> Ends:
    """Return the entries of both ends: (value, square of the half width[, least value])."""
    name = kind.value.lower()
    lower = FunctionEntry(
        f"estimate_low_{name}",
        (Parameter(kind), Parameter(GsqlType.FLOAT), Parameter(kind)),
        kind,
        low,
        is_strict=False,
        makes_null=_is_first_nullable,
        cost=20,
        is_lfta_safe=False,
    )
    upper = FunctionEntry(
        f"estimate_high_{name}",
        (Parameter(kind), Parameter(GsqlType.FLOAT)),
        kind,
        high,
        cost=20,
        is_lfta_safe=False,
    )
    return lower, upper


_FUNCTIONS = (
    FunctionEntry(
        "scaled_int",
        (Parameter(GsqlType.INT), Parameter(GsqlType.FLOAT)),
        GsqlType.INT,
        _scaled_int,
        cost=5,
        is_lfta_safe=False,
    ),
    # Both parts of a product of which sums are rounded once, whatever the order is that they are
    # added in.
    *(
        FunctionEntry(
            name,
            (Parameter(GsqlType.INT), Parameter(GsqlType.FLOAT)),
            GsqlType.INT,
            part,
            cost=5,
            is_lfta_safe=False,
        )
        for name, part in (("scaled_whole", _scaled_whole), ("scaled_rest", _scaled_rest))
    ),
    FunctionEntry(
        "sample_rate",
        (),
        GsqlType.FLOAT,
        # Where packets are sampled, ``queries/plan/sampling/scaling.py`` puts a rate in its place.
        lambda: 1.0,
        is_pure=False,
        is_lfta_safe=False,
    ),
    FunctionEntry(
        "sample_groups",
        (Parameter(GsqlType.INT),),
        GsqlType.INT,
        lambda groups: groups,
        is_pure=False,
        is_lfta_safe=False,
    ),
    *_ends(GsqlType.INT, _low_int, _high_int),
    *_ends(GsqlType.FLOAT, _low_float, _high_float),
)
ESTIMATES = {entry.name: entry for entry in _FUNCTIONS}
