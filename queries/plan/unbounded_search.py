"""Search for the number from which a condition holds."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_FARTHEST = 1 << 61


def first_reached(
    is_reached: Callable[[int], bool], begin: int, guess: int | None = None
) -> int | None:
    """Return the least n >= ``begin`` with ``is_reached(n)``; None if it is too far away.

    ``is_reached`` stays true from there on. The search doubles its distance from ``guess``, upwards
    or downwards, and then bisects: it makes twice as many tests as the distance has binary digits
    (Bentley, Yao: An almost optimal algorithm for unbounded searching, 1976). Without a guess, or
    with one below it, it starts at ``begin``. 2**61 above the start it gives up.
    """
    start = begin if guess is None else max(begin, guess)
    reach = 1
    if is_reached(start):
        high = start
        while (low := max(start - reach, begin)) < high and is_reached(low):
            high = low
            reach *= 2
        return _first_in(range(min(low + 1, high), high), is_reached)
    while not is_reached(start + reach):
        reach *= 2
        if reach >= _FARTHEST:
            return None
    # False at start + reach // 2, true at start + reach.
    return _first_in(range(start + reach // 2 + 1, start + reach), is_reached)


def _first_in(between: range, is_reached: Callable[[int], bool]) -> int:
    """Return the first place of ``between`` that is reached, else its end."""
    return between.start + bisect_left(between, True, key=is_reached)
