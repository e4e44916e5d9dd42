"""A segment to which rows are added as they arrive, divided by partition once there are many."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.capture.log.plain_segment import PlainSegment, is_number
from gscope.queries.streams.messages import RowGroup

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.divided_rows import Ranges

GROUP_ROWS = 1 << 14
"""Rows of a range of partitions that are collected in memory for a row group."""


class GrowingSegment:
    """A segment that grows.

    Its first rows are written immediately. Those after them are divided; those of a range of
    partitions are written when there are enough for a row group.

    Args:
        path: the file, which must not exist yet.
        schema: the schema of all batches, which are plain (``is_plain``).
        ranges: the ranges of partitions; None if rows have none.
        undivided_rows: the number of rows before the first that is divided.

    Attributes:
        path: the file.
        rows: rows so far.
        row_groups: the row groups if rows are divided by partition, else (); known when it is
            finished.
    """

    def __init__(
        self, path: Path, schema: pa.Schema, ranges: Ranges | None, undivided_rows: int
    ) -> None:
        self.path = path
        self.rows = 0
        self._segment = PlainSegment(path, schema)
        self._ranges = ranges
        self._undivided_rows = undivided_rows
        self._groups: list[RowGroup] = []
        self._held: dict[int, list[pa.RecordBatch]] = {}
        self._held_rows = 0
        self._row_bits: int = sum(field.type.bit_width for field in schema if is_number(field))

    @property
    def size_bytes(self) -> int:
        """Bytes of the file, and of rows that are not written yet."""
        return self._segment.size_bytes + self._held_rows * self._row_bits // 8

    @property
    def row_groups(self) -> tuple[RowGroup, ...]:
        """The row groups so far; () if none of them is of a range of partitions."""
        ranges = self._ranges
        if ranges is None or all(g.end - g.first == ranges.partitions for g in self._groups):
            return ()
        return tuple(self._groups)

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows, to whose memory nothing refers afterwards.

        Raises:
            OSError: the segment cannot be written, or there is no space; it is unusable.
        """
        ranges = self._ranges
        is_first = self.rows < self._undivided_rows
        self.rows += batch.num_rows
        if ranges is None or is_first:
            self._write((0, 0 if ranges is None else ranges.partitions), [batch])
            return
        self._held_rows += batch.num_rows
        for number, rows in ranges.divided(batch):
            held = self._held.setdefault(number, [])
            held.append(rows)
            if sum(each.num_rows for each in held) >= GROUP_ROWS:
                self._write_held(ranges, number)

    def finish(self) -> None:
        """Write the rows that are held, and the end of the file.

        Raises:
            OSError: the segment cannot be written, or there is no space; it is unusable.
        """
        for number in sorted(self._held):
            assert self._ranges is not None
            self._write_held(self._ranges, number)
        self._segment.finish()

    def _write_held(self, ranges: Ranges, number: int) -> None:
        held = self._held.pop(number)
        self._held_rows -= sum(each.num_rows for each in held)
        self._write(ranges.bounds(number), held)

    def _write(self, bounds: tuple[int, int], batches: list[pa.RecordBatch]) -> None:
        before = self._segment.size_bytes
        self._segment.add(batches)
        rows = sum(batch.num_rows for batch in batches)
        self._groups.append(RowGroup(*bounds, rows, self._segment.size_bytes - before))
