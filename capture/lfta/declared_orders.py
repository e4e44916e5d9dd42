"""Declared orders: which packets keep them, and what they promise.

An LFTA has a *floor* for each order: the least value that keeps the order; for a decreasing one,
the least negated value. It is the greatest value so far minus the band. A packet below a floor, or
without a value, is discarded and counted; so the floor is a punctuation of the column, independent
of time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.catalog.scalar.integers import wrap
from gscope.queries.catalog.scalar.orders import declared_ordering
from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MIN_INT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.expressions import Call, Value

NO_FLOOR = MIN_INT


def is_falling(call: Call) -> bool:
    """Return whether ``call`` declares that its values decrease."""
    ordering = declared_ordering(call)
    return ordering is not None and ordering.direction is Direction.DECREASING


def band_of(call: Call) -> int:
    """Return how far values may step against the order that ``call`` declares."""
    ordering = declared_ordering(call)
    return 0 if ordering is None else ordering.band


def signed(call: Call, value: int) -> int:
    """Return the value that is compared with the floor."""
    return wrap(-value) if is_falling(call) else value


def take(declared: Sequence[Call], floors: list[int], values: Sequence[Value]) -> bool:
    """Return whether the values of a packet keep all orders; raise the floors if they do."""
    if not all(isinstance(value, int) for value in values):
        return False
    numbers = [signed(c, int(v)) for c, v in zip(declared, values, strict=True) if v is not None]
    if any(number < floor for number, floor in zip(numbers, floors, strict=True)):
        return False
    for n, (call, number) in enumerate(zip(declared, numbers, strict=True)):
        least = number - band_of(call)
        if least >= NO_FLOOR:
            floors[n] = max(floors[n], least)
    return True
