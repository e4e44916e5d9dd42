"""The size of a release: how much a step reads at most, and which batches can be read apart.

Pure functions over what the sides of an operator release; see ``release.py``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from gscope.engine.watermarks.bounds import NOTHING, Bound
from gscope.engine.watermarks.ports import batch_span

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.streams.messages import Batch

_ROW_BYTES = 1024
_FRAME_BYTES = 64 * 1024
"""The most bytes of a file that describe its rows rather than hold them."""


class StoredRows(Protocol):
    """Rows in a file: a batch of the log, or a file that a task has written."""

    @property
    def rows(self) -> int:
        """The number of rows."""

    @property
    def size_bytes(self) -> int:
        """The size of their file."""


def weight(part: StoredRows) -> int:
    """Return the rows of ``part``, or its KiB if that is more.

    Limits are given in rows, as most tuples have some ten bytes; but a STRING value may have 256
    KiB.
    """
    return max(part.rows, (part.size_bytes - _FRAME_BYTES) // _ROW_BYTES)


MAX_STEP_ROWS = 500_000
"""A backlog is released in pieces of about this many rows, each of at least one epoch: the job
evaluates a piece while the one before is delivered, and the memory of a step is bounded."""


def affordable_bound(taken: Sequence[ReleasedInput], high: Bound, rows: int | None = None) -> Bound:
    """Return the bound below which a release has about ``rows`` rows: whole epochs, at least one.

    Long rows count as several; see ``weight``.

    Args:
        taken: what all sides could release.
        high: the bound up to which they could.
        rows: the most rows, about; None for ``MAX_STEP_ROWS``.
    """
    rows = MAX_STEP_ROWS if rows is None else rows
    if sum(weight(batch) for side in taken for _, batch in side.batches) <= rows:
        return high
    # A row that several steps read counts in the first of them.
    ends = sorted(
        (batch_span(batch, side.epoch)[1] - side.epoch_range.last, weight(batch))
        for side in taken
        if side.epoch is not None
        for port, batch in side.batches
        if not (side.epoch_range.is_wide and (port, batch) in side.partially_read)
    )
    total = 0
    bound = high
    for number, (greatest, count) in enumerate(ends):
        total += count
        if number and total > rows and bound < high:
            return bound
        bound = min(greatest + 1, high)
    return bound


def group_by_epochs(taken: Sequence[ReleasedInput]) -> list[tuple[list[Batch], ...]]:
    """Group the batches of all sides so that no two groups share an epoch, in order of epochs.

    A row belongs to all epochs that read it.

    Returns:
        For each group, the batches of each side.
    """
    spans = sorted(
        (least - side.epoch_range.last, greatest - side.epoch_range.first, place, number)
        for place, side in enumerate(taken)
        if side.epoch is not None
        for number, (_, batch) in enumerate(side.batches)
        for least, greatest in (batch_span(batch, side.epoch),)
    )
    groups: list[tuple[list[Batch], ...]] = []
    reached: Bound = NOTHING
    for least, greatest, place, number in spans:
        if not groups or least > reached:
            groups.append(tuple([] for _ in taken))
        groups[-1][place].append(taken[place].batches[number][1])
        reached = max(reached, greatest)
    return groups


def pack_groups(
    groups: Iterable[tuple[list[Batch], ...]], rows: int
) -> list[tuple[list[Batch], ...]]:
    """Join neighbouring ``groups`` while they have at most ``rows`` rows together.

    Their order stays. A group with more rows stays alone. Long rows count as several; see
    ``weight``.
    """
    joined_groups: list[tuple[list[Batch], ...]] = []
    reached = 0
    for group in groups:
        size = sum(weight(batch) for side in group for batch in side)
        if joined_groups and reached + size <= rows:
            for side, more in zip(joined_groups[-1], group, strict=True):
                side.extend(more)
            reached += size
        else:
            joined_groups.append(tuple(list(side) for side in group))
            reached = size
    return joined_groups
