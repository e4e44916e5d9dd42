"""Search for the number from which a condition holds."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FARTHEST = 1 << 61


def first_reached(is_reached: Callable[[int], bool], begin: int) -> int | None:
    """Return the least n >= ``begin`` with ``is_reached(n)``; None if it is 2**61 or more away.

    ``is_reached`` stays true from there on. The search doubles its distance and then bisects: it
    makes twice as many tests as the distance has binary digits (Bentley, Yao: An almost optimal
    algorithm for unbounded searching, 1976).
    """
    if is_reached(begin):
        return begin
    reach = 1
    while not is_reached(begin + reach):
        reach *= 2
        if reach >= _FARTHEST:
            return None
    # False at begin + reach // 2, true at begin + reach.
    between = range(begin + reach // 2 + 1, begin + reach)
    return between.start + bisect_left(between, True, key=is_reached)
