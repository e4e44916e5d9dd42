"""Rows ordered by ranges of partitions, so that a reader of some partitions skips most others.

The partition of a row is computed only in a segment with enough rows to be divided. A segment has
a few row groups for each range of partitions, not one for each partition: reading a row group costs
about as much as reading a thousand rows.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.capture.log.reordering import reordered
from gscope.queries.plan.partitioning.value_columns import value_column
from gscope.queries.streams.messages import RowGroup
from gscope.queries.streams.portions import row_groups
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.plan.program_partitioning import StreamPartitioning

UNDIVIDED_ROWS = 1 << 18
"""Rows of a segment that stay in the order of their arrival; those beyond are divided.

So segments of usual size cost what they would without partitions. A reader of some partitions
computes those of at most this number of rows in vain.
"""

FIRST_DIVIDED_ROWS = 1 << 14
"""The same for a segment that follows one with divided rows in its stream."""

MOST_RANGES = 8
"""Ranges of partitions in a segment."""


@dataclass(frozen=True, slots=True)
class RowGroupTable:
    """The rows of a row group.

    Attributes:
        rows: the rows, without their partitions.
        bounds: the first partition and the one after the last, if the segment is divided.
    """

    rows: pa.Table
    bounds: tuple[int, int] | None = None

    def described(self, size_bytes: int) -> RowGroup:
        """Return the row group for the message of the batch."""
        assert self.bounds is not None
        return RowGroup(*self.bounds, self.rows.num_rows, size_bytes)


def row_group_tables(
    batches: Sequence[pa.RecordBatch], partitioning: StreamPartitioning | None
) -> Iterator[RowGroupTable]:
    """Yield rows in row groups, divided by partition if there are many.

    Args:
        batches: the rows, at least one batch, all of one schema.
        partitioning: what divides the rows; None to keep their order.
    """
    table = pa.Table.from_batches(batches)
    if partitioning is None or table.num_rows <= UNDIVIDED_ROWS:
        yield from map(RowGroupTable, row_groups(table))
        return
    ranges = Ranges(partitioning)
    (batch,) = table.combine_chunks().to_batches()
    for number, divided in ranges.divided(batch):
        for group in row_groups(pa.Table.from_batches([divided])):
            yield RowGroupTable(group, ranges.bounds(number))


class Ranges:
    """The ranges into which the partitions of a stream are divided.

    Args:
        partitioning: what divides its rows.

    Attributes:
        count: the number of ranges.
        partitions: the number of partitions.
    """

    def __init__(self, partitioning: StreamPartitioning) -> None:
        partitions = partitioning.partitions
        self.partitions = partitions
        self.count = min(MOST_RANGES, partitions)
        self._members = partitioning.members
        numbers = np.arange(partitions)
        self._of_partition = (numbers * self.count // partitions).astype(np.uint8)
        self._begins = [int(n) for n in np.searchsorted(self._of_partition, range(self.count + 1))]

    @classmethod
    def of(cls, partitioning: StreamPartitioning | None) -> Ranges | None:
        """Return the ranges of a stream; None if its rows are not divided."""
        return None if partitioning is None else cls(partitioning)

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first partition of a range, and the one after its last."""
        return self._begins[number], self._begins[number + 1]

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of each range that has some.

        Rows of a range keep their order. The rows are copied.
        """
        # Loads the compiler, which processes without large segments do not need.
        from gscope.capture.kernels.row_partitions import order_by_range

        table = pa.Table.from_batches([batch])
        members = [
            [value_column(value, table) for value in member.values] for member in self._members
        ]
        order, ends = order_by_range(members, self._of_partition, self.count)
        whole = reordered(batch, order)
        begin = 0
        for number, end in enumerate(ends.tolist()):
            if begin < end:
                yield number, whole.slice(begin, end - begin)
            begin = end
