"""Which rows to remove next from a nearly full log: a pure function of its waiting batches.

A cut lowers the limit of a component to half of the greatest hash that any of its batches may have,
and further if that frees too little. So batches with the highest rate are thinned first, and the
epochs that wait come to have the same rate::

    before    1     1     1     0.5   0.25        rates of the batches
    after     0.5   0.5   0.5   0.5   0.25        one cut
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.streams.messages import Batch


@dataclass(frozen=True, slots=True)
class WaitingBatch:
    """A batch that no reader has leased.

    Attributes:
        batch: the batch.
        first_ns: no row is of an earlier packet time.
        end_ns: all rows are of earlier packet times.
        highest: no row has a greater hash.
    """

    batch: Batch
    first_ns: int
    end_ns: int
    highest: int

    def freed_bytes(self, threshold: int) -> int:
        """Return about how much smaller the batch becomes without rows above a threshold."""
        if self.highest <= threshold:
            return 0
        return self.batch.size_bytes * (self.highest - threshold) // (self.highest + 1)


@dataclass(frozen=True, slots=True)
class Cut:
    """What to remove.

    Attributes:
        threshold: the new limit.
        from_ns: the first time for which it holds.
        until_ns: the first time for which it does not.
        batches: the batches to write again, oldest first.
        freed_bytes: about how many bytes this frees.
    """

    threshold: int
    from_ns: int
    until_ns: int
    batches: tuple[WaitingBatch, ...]
    freed_bytes: int


def next_cut(
    waiting: Sequence[WaitingBatch], from_ns: int, floor: int, wanted_bytes: int
) -> Cut | None:
    """Return the next cut of a component; None if no batch can be thinned.

    Args:
        waiting: its batches, oldest first.
        from_ns: thresholds of earlier times are final.
        floor: the least threshold.
        wanted_bytes: how many bytes to free, if the floor allows it.
    """
    free = [each for each in waiting if each.first_ns >= from_ns and each.highest > floor]
    if not free:
        return None
    threshold = max(each.highest for each in free)
    freed = 0
    while freed < wanted_bytes and threshold > floor:
        threshold = max(threshold // 2, floor)
        freed = sum(each.freed_bytes(threshold) for each in free)
    batches = tuple(each for each in free if each.highest > threshold)
    return Cut(threshold, from_ns, max(each.end_ns for each in batches), batches, freed)
