"""Rows ordered by ranges of partitions, so that a reader of some partitions skips most others.

Rows come from LFTAs with the partition of each in a column that segments do not store. A segment
has a few row groups for each range of partitions, not one for each partition: reading a row group
costs about as much as reading a thousand rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.capture.log.reordering import reordered
from gscope.queries.plan.partitioning.value_columns import partitions_of_rows
from gscope.queries.plan.program_partitioning import PARTITION_COLUMN
from gscope.queries.streams.messages import RowGroup
from gscope.queries.streams.portions import row_groups

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gscope.queries.plan.program_partitioning import StreamPartitioning

UNDIVIDED_ROWS = 1 << 16
"""Rows of a segment that stay in the order of their arrival; those beyond are divided.

So a small segment costs what it would without partitions, and a reader of one partition of it
computes the partitions of at most this number of rows in vain.
"""

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
    rows = sum(batch.num_rows for batch in batches)
    if partitioning is None or rows <= UNDIVIDED_ROWS:
        table = pa.Table.from_batches([without_partitions(batch) for batch in batches])
        yield from map(RowGroupTable, row_groups(table))
        return
    table = pa.Table.from_batches(batches).combine_chunks()
    if not has_partitions(table):
        found = partitions_of_rows(table, partitioning.members, partitioning.partitions)
        column = pa.field(PARTITION_COLUMN, pa.int16(), nullable=False)
        table = table.append_column(column, pa.array(found.astype(np.int16)))
    (batch,) = table.to_batches()
    ranges = Ranges(partitioning.partitions)
    for number, divided in ranges.divided(batch):
        for group in row_groups(pa.Table.from_batches([divided])):
            yield RowGroupTable(group, ranges.bounds(number))


class Ranges:
    """The ranges into which the partitions of a stream are divided.

    Args:
        partitions: the number of partitions.

    Attributes:
        count: the number of ranges.
        partitions: the number of partitions.
    """

    def __init__(self, partitions: int) -> None:
        self.partitions = partitions
        self.count = min(MOST_RANGES, partitions)
        numbers = np.arange(partitions)
        self._of_partition = (numbers * self.count // partitions).astype(np.uint8)
        self._begins = [int(n) for n in np.searchsorted(self._of_partition, range(self.count + 1))]

    @classmethod
    def of(cls, partitioning: StreamPartitioning | None) -> Ranges | None:
        """Return the ranges of a stream; None if its rows are not divided."""
        return None if partitioning is None else cls(partitioning.partitions)

    def bounds(self, number: int) -> tuple[int, int]:
        """Return the first partition of a range, and the one after its last."""
        return self._begins[number], self._begins[number + 1]

    def divided(self, batch: pa.RecordBatch) -> Iterator[tuple[int, pa.RecordBatch]]:
        """Yield the rows of each range that has some, without the column of their partitions.

        Rows of a range keep their order. The rows are copied.
        """
        partitions = batch[PARTITION_COLUMN].to_numpy()
        ranges = self._of_partition[partitions]
        order = np.argsort(ranges, kind="stable")
        whole = reordered(without_partitions(batch), order)
        end = 0
        for number, rows in enumerate(np.bincount(ranges, minlength=self.count).tolist()):
            begin, end = end, end + rows
            if rows:
                yield number, whole.slice(begin, rows)


def has_partitions(batch: pa.RecordBatch | pa.Table) -> bool:
    """Return whether the rows have their partitions beside them, in the last column."""
    return bool(batch.schema.names) and batch.schema.names[-1] == PARTITION_COLUMN


def without_partitions(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return rows as segments store them."""
    if not has_partitions(batch):
        return batch
    last = len(batch.schema) - 1
    return pa.RecordBatch.from_arrays(batch.columns[:last], schema=batch.schema.remove(last))
