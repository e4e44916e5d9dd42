"""Gaps of a stream: what it lacks because it went on without one of the hosts that it is made of.

Heartbeats carry them from the process that merges hosts to the readers of its streams. They are
cumulative: the last heartbeat says all, in order, and those of one host do not touch each other.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

MOST_GAPS = 64
"""The most gaps of one host in a stream; the oldest ones are then joined, with what is between."""


@dataclass(frozen=True, slots=True)
class HostGap:
    """Tuples of a host with ``column`` from ``least`` up to ``end`` may be missing.

    Attributes:
        host: the name of the host.
        column: the name of the promise, see ``Punctuation``.
        least: the first value that may lack tuples.
        end: the first value after it that does not.
    """

    host: str
    column: str
    least: int
    end: int


def with_gap(gaps: Iterable[HostGap], added: HostGap) -> tuple[HostGap, ...]:
    """Return ``gaps`` and one more, joined with those of its host that it touches."""
    own: list[HostGap] = []
    others: list[HostGap] = []
    for each in gaps:
        is_same = (each.host, each.column) == (added.host, added.column)
        (own if is_same else others).append(each)
    joined: list[HostGap] = []
    for each in sorted([*own, added], key=lambda gap: (gap.least, gap.end)):
        if joined and each.least <= joined[-1].end:
            each = _joined(joined.pop(), each)
        joined.append(each)
    while len(joined) > MOST_GAPS:
        joined[:2] = [_joined(joined[0], joined[1])]
    return tuple(sorted((*others, *joined), key=lambda gap: (gap.host, gap.column, gap.least)))


def _joined(first: HostGap, second: HostGap) -> HostGap:
    return HostGap(first.host, first.column, first.least, max(first.end, second.end))
