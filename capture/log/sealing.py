"""Sealing: rows of open batches become segments, or gaps if there is no room for them."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from gscope.capture.log.batches import Part, TupleRows, WrittenRows, combined
from gscope.capture.log.counters import packets_in
from gscope.capture.log.divided_rows import FIRST_DIVIDED_ROWS, UNDIVIDED_ROWS, Ranges
from gscope.capture.log.os_errors import is_full
from gscope.capture.log.plain_segment import is_plain
from gscope.capture.log.retained_stream import UNNUMBERED
from gscope.errors import StreamError
from gscope.queries.streams.messages import Batch, Extent, Message, Shed

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterable, Mapping, Sequence

    import pyarrow as pa

    from gscope.capture.log.batches import StreamSpec
    from gscope.capture.log.budget import Budget, Usage
    from gscope.capture.log.growing_segment import GrowingSegment
    from gscope.capture.log.retained_messages import Ledger
    from gscope.capture.log.segments import SegmentFolder, WrittenSegment

WRITTEN_AT_ONCE_ROWS = 1024
"""Rows that justify a growing segment; fewer are collected in memory until there is one."""


class Sealer:
    """Makes segments, on the threads that write the log, of which one at a time works for a stream.

    Args:
        specs: the streams by name.
        segments: folder that segments are written to.
        budget: policy that decides what is written.
        ledger: retained messages and counters.
        usage: what the budget can see and do.
        lock: lock of the ledger.
    """

    def __init__(
        self,
        specs: Mapping[str, StreamSpec],
        segments: SegmentFolder,
        budget: Budget,
        ledger: Ledger,
        usage: Usage,
        lock: threading.Condition,
    ) -> None:
        self._specs = specs
        self._segments = segments
        self._budget = budget
        self._ledger = ledger
        self._usage = usage
        self._lock = lock
        self._growing: dict[str, dict[tuple[Extent, ...], GrowingSegment]] = {s: {} for s in specs}
        self._broken: set[GrowingSegment] = set()
        self._large: set[str] = set()

    def write_now(self, stream: str, rows: TupleRows) -> WrittenRows | None:
        """Write rows to a growing segment; return None if they must wait in memory.

        Few rows do not start a segment; a growing one gets them at the latest when it is sealed.
        Only a sealed segment counts against the budget, like open batches in memory.
        """
        growing = self._growing[stream]
        segment = growing.get(rows.extents)
        try:
            if segment is None:
                if rows.rows < WRITTEN_AT_ONCE_ROWS:
                    return None
                if not is_plain(rows.batch):
                    return None
                segment = self._begin(stream, rows.batch.schema)
                growing[rows.extents] = segment
            before = segment.size_bytes
            self._segments.add(segment, rows.batch)
        except StreamError as error:
            if not self._budget.is_lossy or not is_full(error):
                raise
            self._note_full_disk()
            if segment is not None:
                # Its rows are lost; they are counted when it is sealed.
                del growing[rows.extents]
                self._broken.add(segment)
            return None
        # The rows cannot be counted later if they are shed.
        packets = packets_in(rows.batch, self._specs[stream]) if self._budget.is_lossy else None
        size = segment.size_bytes - before
        return WrittenRows(segment, rows.rows, size, rows.extents, packets)

    def _begin(self, stream: str, schema: pa.Schema) -> GrowingSegment:
        ranges = Ranges.of(self._specs[stream].partitioning)
        undivided = FIRST_DIVIDED_ROWS if stream in self._large else UNDIVIDED_ROWS
        return self._segments.begin(self._label(stream), schema, ranges, undivided)

    def seal(self, stream: str, cuts: Iterable[list[Part]]) -> list[Message]:
        """Make segments or a gap of each cut; the messages are not yet published."""
        sealed: list[Message] = []
        for parts in cuts:
            if not sum(part.rows for part in parts):
                continue
            written = [part for part in parts if isinstance(part, WrittenRows)]
            grown = list(dict.fromkeys(part.segment for part in written))
            for extents in [k for k, each in self._growing[stream].items() if each in grown]:
                del self._growing[stream][extents]
            lost = [part for part in written if part.segment in self._broken]
            if lost:
                self._broken.difference_update(part.segment for part in lost)
                sealed.append(self._gap(stream, lost))
            gone = {id(part) for part in lost}
            whole = [part for part in parts if id(part) not in gone]
            if not whole:
                continue
            if self._budget.admit(sum(part.size_bytes for part in whole), self._usage):
                sealed += self._written(stream, whole)
            else:
                for segment in grown:
                    self._segments.abandon(segment)
                sealed.append(self._gap(stream, whole))
        return sealed

    def write_whole(self, stream: str, rows: pa.Table, extents: tuple[Extent, ...]) -> Batch:
        """Write rows that are complete to a segment of their own; the message is not published.

        Raises:
            StreamError: the segment cannot be written.
        """
        divided_by = self._specs[stream].partitioning
        written = self._segments.write(self._label(stream), rows.to_batches(), divided_by)
        with self._lock:
            self._ledger.on_sealed(written.size_bytes)
        return _batch(stream, rows.num_rows, extents, written)

    def write_answers(
        self, stream: str, rows: pa.Table, extents: tuple[Extent, ...]
    ) -> Batch | Shed:
        """Write rows that are complete, unless they are shed; the message is not published.

        Raises:
            StreamError: the segment cannot be written.
        """
        if not self._budget.is_lossy:
            return self.write_whole(stream, rows, extents)
        if self._budget.admit(rows.nbytes, self._usage):
            try:
                return self.write_whole(stream, rows, extents)
            except StreamError as error:
                if not is_full(error):
                    raise
                self._note_full_disk()
        return Shed(stream, UNNUMBERED, rows.num_rows, None, extents)

    def abandon(self) -> None:
        """Delete unfinished segments."""
        for growing in self._growing.values():
            for segment in growing.values():
                self._segments.abandon(segment)
            growing.clear()

    def _written(self, stream: str, parts: Sequence[Part]) -> list[Message]:
        """Make segments of parts, and a gap of those for which the disk has no room."""
        waiting = [part for part in parts if isinstance(part, TupleRows)]
        grown: dict[GrowingSegment, list[Part]] = {}
        for part in parts:
            if isinstance(part, WrittenRows):
                grown.setdefault(part.segment, []).append(part)
        messages: list[Message] = []
        for segment, inside in grown.items():
            # What waited in memory goes with the first.
            messages.append(
                self._segment_of(
                    stream, [*inside, *waiting], functools.partial(self._finish, segment, waiting)
                )
            )
            waiting = []
        if waiting:
            batches = [part.batch for part in waiting]
            divided_by = self._specs[stream].partitioning
            write = functools.partial(
                self._segments.write, self._label(stream), batches, divided_by
            )
            messages.append(self._segment_of(stream, waiting, write))
        return messages

    def _finish(self, segment: GrowingSegment, waiting: Sequence[TupleRows]) -> WrittenSegment:
        for part in waiting:
            self._segments.add(segment, part.batch)
        return self._segments.finish(segment)

    def _segment_of(
        self, stream: str, parts: Sequence[Part], write: Callable[[], WrittenSegment]
    ) -> Batch | Shed:
        try:
            written = write()
        except StreamError as error:
            if not self._budget.is_lossy or not is_full(error):
                raise
            self._note_full_disk()
            return self._gap(stream, parts)
        with self._lock:
            self._ledger.on_sealed(written.size_bytes)
        rows = sum(part.rows for part in parts)
        if rows > UNDIVIDED_ROWS:
            self._large.add(stream)
        elif rows > FIRST_DIVIDED_ROWS:
            self._large.discard(stream)
        return _batch(stream, rows, combined(parts), written)

    def _note_full_disk(self) -> None:
        with self._lock:
            self._ledger.full_disk_total += 1

    def _gap(self, stream: str, parts: Sequence[Part]) -> Shed:
        """Return the gap for rows that are shed before they become a batch."""
        counts = [
            part.packets
            if isinstance(part, WrittenRows)
            else packets_in(part.batch, self._specs[stream])
            for part in parts
        ]
        packets = None if None in counts else sum(count or 0 for count in counts)
        rows = sum(part.rows for part in parts)
        return Shed(stream, UNNUMBERED, rows, packets, combined(parts))

    def _label(self, stream: str) -> str:
        number = list(self._ledger.held).index(stream)
        return f"{number:04d}-{self._ledger.held[stream].end:08d}"


def _batch(stream: str, rows: int, extents: tuple[Extent, ...], written: WrittenSegment) -> Batch:
    """Return the message of a segment, not yet numbered."""
    path, size, row_groups = written
    return Batch(stream, UNNUMBERED, path, rows, size, extents, row_groups)
