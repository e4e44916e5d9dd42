"""Exact sums of integers as two 64-bit sums, of the upper and of the lower 32 bits of the values.

x = high·2³² + low with 0 ≤ low < 2³², so Σx = Σhigh·2³² + Σlow holds if neither sum wraps, which is
sure for 2³¹ values of any size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.scalar.magnitudes import magnitude
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Expression

LOW_32 = Literal((1 << 32) - 1, GsqlType.INT)
_32 = Literal(32, GsqlType.INT)
_NARROW = 1 << 32


def low_half(arguments: Sequence[Expression]) -> Expression:
    """Return the lower 32 bits of the first argument, 0 or more."""
    return call("bit_and", arguments[0], LOW_32)


def high_half(arguments: Sequence[Expression]) -> Expression:
    """Return the upper 32 bits of the first argument, with its sign."""
    return call("shr", arguments[0], _32)


def whole(low: int, high: int) -> int:
    """Return the sum whose halves these are."""
    return (high << 32) + low


def is_narrow(argument: Expression) -> bool:
    """Return whether values are so small that 64 bits hold the sum of 2³¹ of them.

    Halves are, so that one sum of each half is exact for the same number of values.
    """
    return magnitude(argument) <= _NARROW
