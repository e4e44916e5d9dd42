"""Exact sums of integers in two 64-bit sums: the upper and the lower 32 bits of each value apart.

x = high·2³² + low with 0 ≤ low < 2³², so Σx = Σhigh·2³² + Σlow holds where neither sum wraps: for 2³¹ values,
however large.
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
    """The lower 32 bits of the first argument, 0 or more."""
    return call("bit_and", arguments[0], LOW_32)


def high_half(arguments: Sequence[Expression]) -> Expression:
    """The upper 32 bits of the first argument, with its sign."""
    return call("shr", arguments[0], _32)


def whole(low: int, high: int) -> int:
    """The sum of which these are the halves."""
    return (high << 32) + low


def is_narrow(argument: Expression) -> bool:
    """Return whether values are so small that 64 bits hold the sum of 2³¹ of them.

    Halves themselves are, so that one sum of each is exact for as many values as both together.
    """
    return magnitude(argument) <= _NARROW
