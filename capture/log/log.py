"""The stream log: what LFTAs put out, kept until every consumer has acknowledged it.

One thread writes (``append``, ``beat``, ``end``); any number of threads read and acknowledge. Memory is bounded by
the open batches, disk by the budget.

Files: ``index`` and ``acknowledged.json`` (see ``index.py``), ``segments/*.parquet``. A segment is written as a
whole before the index tells of it and removed after the acknowledgement is stored, so at a crash at any moment the
index is right, and what it does not name can go.
"""

from __future__ import annotations

import functools
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gscope.capture.log.batches import OpenBatch, Part, Rows, StreamSpec, WrittenRows, combined
from gscope.capture.log.budget import Budget, WaitForRoom
from gscope.capture.log.consumers import Acknowledgements, Consumer
from gscope.capture.log.held import HeldMessages
from gscope.capture.log.index import Index, read_index
from gscope.capture.log.plain_segment import is_plain
from gscope.capture.log.segments import SegmentFolder
from gscope.errors import StreamError
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Hop,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.plain_segment import PlainSegment


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """When an open batch is sealed although no punctuation asks for it.

    Attributes:
        rows: of one batch.
        size_bytes: of one batch, in memory.
        open_bytes: of the open batches of all streams together; the largest is sealed then.
    """

    rows: int = 1 << 20
    size_bytes: int = 64 << 20
    open_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True)
class Beat:
    """What one heartbeat says on one stream."""

    stream: str
    punctuations: tuple[Punctuation, ...]
    trace: tuple[Hop, ...] = ()


@dataclass(slots=True)
class LogStats:
    """Counters of a log since it was opened; ``used_bytes`` are those of segments still held."""

    batches_total: int = 0
    tuples_total: int = 0
    written_bytes_total: int = 0
    shed_tuples_total: int = 0
    used_bytes: int = 0


class StreamLog:
    """The open log in ``folder``, exclusively ours.

    Args:
        folder: made, private, when it is not there.
        streams: those that will be written; more than the log holds already is fine.
        consumers: whose acknowledgements let segments go; with none of them nothing is ever removed.
        limits: of open batches.
        budget: what to do when the disk budget is used up.

    Raises:
        StreamError: unusable, damaged or in use; one sentence.
    """

    def __init__(
        self,
        folder: Path,
        streams: Iterable[StreamSpec] = (),
        *,
        consumers: Sequence[Consumer] = (),
        limits: BatchLimits | None = None,
        budget: Budget | None = None,
    ) -> None:
        self.stats = LogStats()
        self._folder = folder
        self._limits = limits or BatchLimits()
        self._budget = budget or WaitForRoom(8 << 30)
        self._segments = SegmentFolder(folder)
        self._index = Index(folder)
        self._changed = threading.Condition()
        self._is_closed = False
        self._open = {
            spec.name: OpenBatch(spec, functools.partial(self._write_now, spec.name))
            for spec in streams
        }
        self._growing: dict[tuple[str, tuple[Extent, ...]], PlainSegment] = {}
        self._held = {name: HeldMessages() for name in self._open}
        self._published = 0
        try:
            self._acknowledged = Acknowledgements(folder, consumers)
            self._recover()
        except BaseException:
            self._index.close()
            raise

    # -- writing ---------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether no message was ever written."""
        return not any(held.end for held in self._held.values())

    @property
    def is_ended(self) -> bool:
        """Whether every stream has ended."""
        return all(held.is_ended for held in self._held.values())

    def append(self, stream: str, batch: pa.RecordBatch, extents: tuple[Extent, ...]) -> None:
        """Add tuples to the open batch of ``stream``; they are copied. May block for the disk budget.

        Args:
            stream: one of those given at the beginning, not ended.
            batch: of the stream's one schema.
            extents: of the stream's temporal columns, in schema order.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        opened = self._open[stream]
        opened.add(batch, extents)
        if opened.rows >= self._limits.rows or opened.size_bytes >= self._limits.size_bytes:
            self._publish(self._seal(stream, opened.take_for_size()))
        elif sum(other.size_bytes for other in self._open.values()) >= self._limits.open_bytes:
            largest = max(self._open, key=lambda name: self._open[name].size_bytes)
            self._publish(self._seal(largest, self._open[largest].take_for_size()))

    def beat(self, identity: int, clock_ns: int, beats: Iterable[Beat]) -> None:
        """Write a heartbeat to each stream of ``beats``, behind the rows that its punctuation passes.

        Rows that no bound passes may stay in the open batch: the promise holds for them.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        messages: list[Message] = []
        for beat in beats:
            sealed = self._seal(beat.stream, self._open[beat.stream].take_passed(beat.punctuations))
            sequence = self._held[beat.stream].end + len(sealed)
            messages += sealed
            messages.append(
                Heartbeat(beat.stream, sequence, identity, clock_ns, beat.punctuations, beat.trace)
            )
        self._publish(messages)

    def end(
        self,
        streams: Iterable[str],
        identity: int = 0,
        clock_ns: int = 0,
        beats: Iterable[Beat] = (),
    ) -> None:
        """Seal what is open of ``streams`` and end them; one that has ended already stays as it is.

        A last heartbeat is published together with the end, so that no reader makes a step of its own of it.

        Args:
            streams: those that end.
            identity: of the last heartbeat.
            clock_ns: of the last heartbeat.
            beats: of the last heartbeat, for streams that have one.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        last = {beat.stream: beat for beat in beats}
        messages: list[Message] = []
        for stream in dict.fromkeys(streams):
            if self._held[stream].is_ended:
                continue
            messages += (sealed := self._seal(stream, [self._open[stream].take_all()]))
            sequence = self._held[stream].end + len(sealed)
            if stream in last:
                beat = last[stream]
                messages.append(
                    Heartbeat(stream, sequence, identity, clock_ns, beat.punctuations, beat.trace)
                )
                sequence += 1
            messages.append(EndOfStream(stream, sequence))
        self._publish(messages)

    def close(self) -> None:
        """End all waiting and give the folder up; what was not sealed is gone. Harmless when called twice."""
        with self._changed:
            self._is_closed = True
            for segment in self._growing.values():
                self._segments.abandon(segment)
            self._growing = {}
            self._index.close()
            self._changed.notify_all()

    @property
    def is_closed(self) -> bool:
        """Whether ``close`` was called."""
        return self._is_closed

    # -- reading ---------------------------------------------------------------------------------

    @property
    def streams(self) -> tuple[str, ...]:
        """The names of all streams."""
        return tuple(self._held)

    def read(
        self, cursors: Mapping[str, int], limit: int = 1024, timeout_s: float | None = None
    ) -> list[Message]:
        """The next messages of the streams in ``cursors``, in the order they were written.

        Blocks until there is one; [] after ``timeout_s`` without one, when all these streams are read to
        their end, or when the log was closed.

        Raises:
            StreamError: an unknown stream, or a cursor below what was acknowledged and removed.
        """
        with self._changed:
            for stream, cursor in cursors.items():
                self._ensure_readable(stream, cursor)
            self._changed.wait_for(lambda: self._is_closed or self._has_more(cursors), timeout_s)
            if self._is_closed:
                return []
            found = [
                numbered
                for stream, cursor in cursors.items()
                for numbered in self._held[stream].since(cursor, limit)
            ]
        found.sort(key=lambda numbered: numbered[0])
        return [message for _, message in found[:limit]]

    def is_read(self, cursors: Mapping[str, int]) -> bool:
        """Whether the cursors stand behind the end of their streams."""
        with self._changed:
            return all(self._held[s].is_read(cursor) for s, cursor in cursors.items())

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Note that ``consumer`` is done with all messages below ``cursors``; a cursor never steps back.

        Raises:
            StreamError: an unknown consumer or stream, a cursor beyond what was written, or not writable.
        """
        with self._changed:
            for stream, cursor in cursors.items():
                held = self._held.get(stream)
                if held is None or not 0 <= cursor <= held.end:
                    problem = f"cannot acknowledge stream {stream!r} up to {cursor}"
                    raise StreamError(problem)
            self._acknowledged.advance(consumer, cursors)
            self._drop(cursors)
            self._changed.notify_all()

    def wait_acknowledged(self, timeout_s: float | None = None) -> bool:
        """Block until every stream has ended and every consumer acknowledged all of it; whether that is so.

        Returns at once, True, when there is no consumer; False after the timeout or when closed.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._is_all_acknowledged(), timeout_s
            )
            return self._is_all_acknowledged()

    # -- for the budget --------------------------------------------------------------------------

    @property
    def used_bytes(self) -> int:
        """Bytes of all segments that are still held."""
        return self.stats.used_bytes

    @property
    def waiting_messages(self) -> int:
        """Messages that are held until all have acknowledged them."""
        return sum(len(held.messages) for held in self._held.values())

    @property
    def open_tuples(self) -> int:
        """Tuples of open batches, which no reader sees yet."""
        return sum(opened.rows for opened in self._open.values())

    @property
    def has_consumers(self) -> bool:
        """Whether segments are ever let go."""
        return self._acknowledged.has_consumers

    def wait_for_room(self, used_bytes: int, timeout_s: float) -> bool:
        """Block until less than ``used_bytes`` are used; False when that took longer than the timeout."""
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self.stats.used_bytes < used_bytes, timeout_s
            )
            return self.stats.used_bytes < used_bytes

    # -- private ---------------------------------------------------------------------------------

    def _write_now(self, stream: str, rows: Rows) -> WrittenRows | None:
        """Write rows into a segment that grows until it is sealed; None if that cannot be.

        As the open batches in memory, it is counted in the budget from then on.
        """
        segment = self._growing.get((stream, rows.extents))
        if segment is None:
            if not is_plain(rows.batch):
                return None
            label = self._label(stream, self._held[stream].end)
            segment = self._segments.begin(label, rows.batch.schema)
            self._growing[stream, rows.extents] = segment
        self._segments.add(segment, rows.batch)
        return WrittenRows(segment, rows.rows, rows.size_bytes, rows.extents)

    def _seal(self, stream: str, cuts: Iterable[list[Part]]) -> list[Message]:
        """Make each cut whole segments; the batches are the next messages of the stream, not yet published."""
        sealed: list[Message] = []
        for parts in cuts:
            rows = sum(part.rows for part in parts)
            if rows == 0:
                continue
            written = [part for part in parts if isinstance(part, WrittenRows)]
            grown = list(dict.fromkeys(part.segment for part in written))
            self._growing = {k: other for k, other in self._growing.items() if other not in grown}
            if not self._budget.admit(sum(part.size_bytes for part in parts), self):
                self.stats.shed_tuples_total += rows
                for segment in grown:
                    self._segments.abandon(segment)
                continue
            waiting = [part for part in parts if isinstance(part, Rows)]
            for segment in grown:
                inside: list[Part] = [part for part in written if part.segment == segment]
                # What waited in memory goes with the first.
                for part in waiting:
                    self._segments.add(segment, part.batch)
                place = self._segments.finish(segment)
                sealed.append(self._sealed(stream, len(sealed), place, [*inside, *waiting]))
                waiting = []
            if waiting:
                label = self._label(stream, self._held[stream].end + len(sealed))
                place = self._segments.write(label, [part.batch for part in waiting])
                sealed.append(self._sealed(stream, len(sealed), place, waiting))
        return sealed

    def _sealed(
        self, stream: str, ahead: int, place: tuple[str, int], parts: Sequence[Part]
    ) -> Batch:
        """The message of a whole segment, behind so many that are not published either."""
        path, size = place
        rows = sum(part.rows for part in parts)
        with self._changed:
            self.stats.used_bytes += size
        self.stats.batches_total += 1
        self.stats.tuples_total += rows
        self.stats.written_bytes_total += size
        return Batch(stream, self._held[stream].end + ahead, path, rows, size, combined(parts))

    def _label(self, stream: str, sequence: int) -> str:
        number = list(self._held).index(stream)
        return f"{number:04d}-{sequence:08d}"

    def _publish(self, messages: Sequence[Message]) -> None:
        if messages:
            with self._changed:
                self._index.append(messages)
                for message in messages:
                    self._hold(message)
                self._changed.notify_all()

    def _hold(self, message: Message) -> None:
        self._held[message.stream].add(self._published, message)
        self._published += 1

    def _recover(self) -> None:
        for message in self._index.recovered:
            self._held.setdefault(message.stream, HeldMessages())
            self._hold(message)
        self._index.recovered = []
        kept = self._drop(self._held)
        for batch in kept:
            size = self._segments.size_bytes(batch.path)
            if size != batch.size_bytes:
                found = "is missing" if size is None else f"has {size} bytes"
                problem = (
                    f"the segment {self._folder / batch.path} of {batch.size_bytes} bytes {found}"
                )
                raise StreamError(problem)
            self.stats.used_bytes += batch.size_bytes
        self._segments.remove_others(batch.path for batch in kept)

    def _drop(self, streams: Iterable[str]) -> list[Batch]:
        """Forget what all consumers acknowledged of ``streams`` and remove its segments; the batches kept."""
        kept: list[Batch] = []
        for stream in streams:
            held = self._held[stream]
            dropped = held.drop_below(self._acknowledged.floor(stream, held.end))
            # While the log is being recovered, these segments are not counted yet and may be gone.
            present = [b for b in dropped if self._segments.size_bytes(b.path) is not None]
            self._segments.remove(batch.path for batch in present)
            self.stats.used_bytes = max(
                0, self.stats.used_bytes - sum(batch.size_bytes for batch in present)
            )
            kept += held.batches
        return kept

    def _is_all_acknowledged(self) -> bool:
        return all(
            held.is_ended
            and (not self.has_consumers or self._acknowledged.floor(stream, held.end) == held.end)
            for stream, held in self._held.items()
        )

    def _ensure_readable(self, stream: str, cursor: int) -> None:
        held = self._held.get(stream)
        if held is None:
            problem = f"unknown stream {stream!r}; there are {sorted(self._held)}"
            raise StreamError(problem)
        if not held.base <= cursor <= held.end:
            problem = f"stream {stream!r} holds messages {held.base} to {held.end}, not {cursor}"
            raise StreamError(problem)

    def _has_more(self, cursors: Mapping[str, int]) -> bool:
        held = [(self._held[stream], cursor) for stream, cursor in cursors.items()]
        return any(cursor < each.end for each, cursor in held) or all(
            each.is_read(cursor) for each, cursor in held
        )


def read_log(folder: Path) -> list[Message]:
    """All messages of the log in ``folder`` in the order they were written; needs no server and no lock.

    Paths of batches are relative to ``folder``; segments that were acknowledged are gone.

    Raises:
        StreamError: unreadable or damaged.
    """
    return read_index(folder)[0]
