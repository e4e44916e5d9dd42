"""Values of an ordering column so far from 0 that a window around them would leave 64 bits.

A clock is far from there until the year 2262. A column with a declared ordering may have any value,
such as one that a peer writes into a payload.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.plan.windows.window import Window


def limits(window: Window) -> tuple[int, int]:
    """Return the least and the greatest value around which all windows are within 64 bits.

    Both have the distance ``window.farthest`` from the ends of 64 bits, so that neither an edge of
    a window nor the sum of a value and the shift of an edge overflows.
    """
    return MIN_INT + window.farthest, MAX_INT - window.farthest


def clamped(on: Expression, window: Window) -> Expression:
    """Return an INT expression that is not NULL, with values beyond the limits replaced by them.

    It moves as ``on`` does, and is as safe in an LFTA.
    """
    least, greatest = (Literal(limit, GsqlType.INT) for limit in limits(window))
    return call("min_of", call("max_of", on, least), greatest)
