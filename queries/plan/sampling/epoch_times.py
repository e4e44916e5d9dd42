"""Epochs of packet times, and the first time of an epoch."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gscope.queries.catalog.evaluate import evaluate

if TYPE_CHECKING:
    from gscope.queries.expressions.expressions import Expression, PacketField

_NS_PER_SECOND = 1_000_000_000
_LATEST_NS = 1 << 62
"""A time in 2116: later than packets, and early enough for sums in 64 bits."""

_CACHED = 1024
"""The most borders of epochs whose times are kept."""


def epoch_at(clock: Expression, time_ns: int) -> int:
    """Return the epoch of a packet time; ``clock`` is over the fields of a packet's time."""

    def leaf(part: Any) -> int:
        field: PacketField = part
        return time_ns // _NS_PER_SECOND if field.name == "time" else time_ns

    value = evaluate(clock, leaf)
    assert isinstance(value, int), (clock, value)
    return value


@lru_cache(_CACHED)
def epoch_begin(clock: Expression, epoch: int) -> int | None:
    """Return the first time of an epoch or a later one; None if there is none before 2116.

    0 stands for all times before 1970 as well.
    """
    times = range(_LATEST_NS)
    found = bisect_left(times, epoch, key=lambda time_ns: epoch_at(clock, time_ns))
    return None if found == _LATEST_NS else found
