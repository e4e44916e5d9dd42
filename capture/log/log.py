"""The stream log: the output of LFTAs, kept until every consumer has acknowledged it.

One thread at a time writes a stream, and several may ``append`` to streams of their own. While one
writes heartbeats or ends (``write_heartbeat``, ``end``), no other appends. A further thread may
write streams of answers (``write_answers``). Any number of threads read and acknowledge. Memory is
bounded by the open batches and the number of retained messages, disk by the budget.

Files: ``index`` and ``acknowledged.json`` (see ``index.py``), ``segments/*.parquet``. A segment is
    written completely before the index lists it, and is removed after the acknowledgement is
    stored. So after a crash at any moment the index is correct, and files that it does not list can
    be deleted.
"""

from __future__ import annotations

import functools
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from gscope.capture.log.answering_log import AnsweringLog
from gscope.capture.log.batches import BatchLimits, OpenBatch, StreamSpec
from gscope.capture.log.budget import Budget, WaitForRoom
from gscope.capture.log.identity import log_identity
from gscope.capture.log.index import read_index
from gscope.capture.log.merging import Merger
from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.resumed_bounds import ResumedBounds
from gscope.capture.log.retained_messages import Ledger
from gscope.capture.log.retained_stream import UNNUMBERED, StreamPosition
from gscope.capture.log.sealing import Sealer
from gscope.capture.log.segments import SegmentFolder
from gscope.errors import StreamError
from gscope.queries.streams.messages import (
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import BinaryIO

    import pyarrow as pa

    from gscope.capture.log.consumers import Consumer
    from gscope.capture.log.counters import LogStats, StreamTotals
    from gscope.capture.log.stream_heartbeat import StreamHeartbeat


class StreamLog(AnsweringLog):
    """The open log in ``folder``, locked against other processes.

    Args:
        folder: created, private, if it does not exist.
        streams: streams that will be written; they may include new ones.
        consumers: readers whose acknowledgements release segments; without any, nothing is removed.
        limits: limits of open batches.
        budget: policy for a disk budget that is used up.
        most_registered: how many further consumers may register themselves; see ``register``.
        served: names of the streams that these read; () for all.

    Raises:
        StreamError: the log is unusable, damaged or in use; one sentence.
    """

    def __init__(
        self,
        folder: Path,
        streams: Iterable[StreamSpec] = (),
        *,
        consumers: Sequence[Consumer] = (),
        limits: BatchLimits | None = None,
        budget: Budget | None = None,
        most_registered: int = 0,
        served: tuple[str, ...] = (),
    ) -> None:
        specs = {spec.name: spec for spec in streams}
        self._folder = folder
        self._limits = limits or BatchLimits()
        self._budget = budget or WaitForRoom(8 << 30)
        self._segments = SegmentFolder(folder)
        self._changed = threading.Condition()
        self._is_closed = False
        self._ledger = Ledger(
            folder,
            specs,
            self._segments,
            consumers,
            is_lossy=self._budget.is_lossy,
            most_registered=most_registered,
            served=served,
        )
        self._held = self._ledger.held
        self._resumed = {
            stream: ResumedBounds(heartbeat.punctuations)
            for stream, heartbeat in self._ledger.latest.items()
        }
        self._sealer = Sealer(
            specs, self._segments, self._budget, self._ledger, self, self._changed
        )
        self._merger = Merger(
            specs, self._segments, self._ledger, self._budget, self, self._changed
        )
        self._open = {
            name: OpenBatch(spec, functools.partial(self._sealer.write_now, name))
            for name, spec in specs.items()
        }
        # A thread that finds all open batches too large together seals one of another thread.
        self._appending = {name: threading.Lock() for name in specs}

    # -- writing ---------------------------------------------------------------------------------

    @property
    def is_empty(self) -> bool:
        """Whether no message was ever written."""
        return not any(held.end for held in self._held.values())

    @property
    def is_ended(self) -> bool:
        """Whether every stream has ended."""
        return all(held.has_ended for held in self._held.values())

    def append(self, stream: str, batch: pa.RecordBatch, extents: tuple[Extent, ...]) -> None:
        """Copy tuples to the open batch of ``stream``; may block until the disk budget has room.

        Args:
            stream: a stream given when the log was opened, not ended.
            batch: tuples in the schema of the stream.
            extents: extents of the stream's temporal columns, in schema order.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        if (resumed := self._resumed.get(stream)) is not None:
            batch, extents = resumed.kept(batch, extents)
        opened, limits = self._open[stream], self._limits
        with self._appending[stream]:
            opened.add(batch, extents)
            if opened.rows >= limits.rows or opened.size_bytes >= limits.size_bytes:
                self._seal_for_size(stream)
                return
        if sum(other.size_bytes for other in self._open.values()) >= limits.open_bytes:
            largest = max(self._open, key=lambda name: self._open[name].size_bytes)
            with self._appending[largest]:
                self._seal_for_size(largest)

    def write_heartbeat(
        self, identity: int, clock_ns: int, beats: Iterable[StreamHeartbeat]
    ) -> None:
        """Write a heartbeat to each stream of ``beats``, after the rows that its bounds pass.

        Rows that no bound passes may stay in the open batch: the promise holds for them.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        messages: list[Message] = []
        began_ns = time.time_ns()
        for beat in map(self._raised, beats):
            passed = self._open[beat.stream].take_passed(beat.punctuations)
            messages += self._sealer.seal(beat.stream, passed)
            messages.append(beat.through_log(began_ns).as_message(identity, clock_ns))
        self._publish(messages)

    def write_rows(
        self,
        rows: pa.Table,
        extents: tuple[Extent, ...],
        identity: int,
        clock_ns: int,
        beat: StreamHeartbeat,
    ) -> None:
        """Write rows that are complete as one batch, and the heartbeat that covers them.

        The batch is the first record of both, so the log has it if it has a message with the number
        that the stream's ``end`` had before.

        Args:
            rows: at least one row, in the schema of the stream of ``beat``.
            extents: extents of the stream's temporal columns, in schema order.
            identity: identity of the heartbeat.
            clock_ns: time of the heartbeat.
            beat: content of the heartbeat.

        Raises:
            StreamError: cannot be written; none of it is published.
        """
        began_ns = time.time_ns()
        batch = self._sealer.write_whole(beat.stream, rows, extents)
        heartbeat = self._raised(beat).through_log(began_ns)
        self._publish([batch, heartbeat.as_message(identity, clock_ns)])

    def end(
        self,
        streams: Iterable[str],
        identity: int = 0,
        clock_ns: int = 0,
        beats: Iterable[StreamHeartbeat] = (),
    ) -> None:
        """Seal the open batches of ``streams`` and end those that have not ended.

        A last heartbeat is published together with the end, so that it does not cause a step of its
        own.

        Args:
            streams: names of the streams that end.
            identity: identity of the last heartbeat.
            clock_ns: time of the last heartbeat.
            beats: content of the last heartbeat, for streams that have one.

        Raises:
            StreamError: cannot be written, or the budget refuses.
        """
        last = {beat.stream: self._raised(beat) for beat in beats}
        messages: list[Message] = []
        for stream in dict.fromkeys(streams):
            if self._held[stream].has_ended:
                continue
            messages += self._sealer.seal(stream, [self._open[stream].take_all()])
            if stream in last:
                messages.append(last[stream].as_message(identity, clock_ns))
            messages.append(EndOfStream(stream, UNNUMBERED))
        if not self._publish(messages):
            problem = f"cannot write to the stream log {self._folder}: the disk is full"
            raise StreamError(problem)

    def close(self) -> None:
        """End all waits and unlock the folder; discard open batches. May be called twice."""
        self._merger.stop()
        if self._thinning is not None:
            self._thinning.stop()
        with self._changed:
            self._is_closed = True
            self._sealer.abandon()
            self._ledger.close()
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
        """Return the next messages of the streams in ``cursors``, in the order of writing.

        Blocks until there is a message. Returns [] if there is none within ``timeout_s``, if all
        these streams have been read to their end, or if the log is closed.

        Raises:
            StreamError: a stream is unknown, or a cursor is below the messages still retained.
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
            messages = [message for _, message in found[:limit]]
            # From now on messages that were returned, or that the reader has read, must not change.
            seen = {**cursors, **{message.stream: message.sequence + 1 for message in messages}}
            for stream, cursor in seen.items():
                self._held[stream].mark_visible(cursor)
        return messages

    def is_read(self, cursors: Mapping[str, int]) -> bool:
        """Return whether the cursors are beyond the end of their streams."""
        with self._changed:
            return all(self._held[s].is_read(cursor) for s, cursor in cursors.items())

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Record that ``consumer`` needs no message below ``cursors``; a cursor never steps back.

        Raises:
            StreamError: a consumer or stream is unknown, a cursor is beyond the last message, or
                the acknowledgement cannot be written.
        """
        with self._changed:
            self._ledger.acknowledge(consumer, cursors)
            self._changed.notify_all()

    def register(self, consumer: str) -> dict[str, int]:
        """Add a consumer, permanently; return what it has acknowledged, by stream.

        From the first registration on, messages wait for the acknowledgements of this consumer.
        For a known consumer this changes nothing.

        Raises:
            StreamError: the name is invalid, there are too many consumers, or it cannot be stored.
        """
        with self._changed:
            return self._ledger.register(consumer)

    def deregister(self, consumer: str) -> None:
        """Forget a consumer that registered itself; what only it still needed is released.

        Raises:
            StreamError: the consumer is unknown or did not register itself, or that cannot be
                stored.
        """
        with self._changed:
            self._ledger.deregister(consumer)
            self._changed.notify_all()

    @property
    def acknowledged(self) -> dict[str, dict[str, int]]:
        """Return what each consumer has acknowledged, by stream."""
        with self._changed:
            return self._ledger.acknowledged.cursors

    def unacknowledged(self) -> dict[str, dict[str, int]]:
        """Return what each consumer has not acknowledged: messages, tuples and bytes."""
        with self._changed:
            return self._ledger.unacknowledged()

    def open_segment(self, stream: str, sequence: int) -> BinaryIO | None:
        """Return the segment of a batch, open for reading; None if the batch is not retained.

        The caller closes it. Its contents stay readable after the batch is released or shed.

        Raises:
            StreamError: the stream is unknown, or the segment cannot be opened.
        """
        with self._changed:
            held = self._held.get(stream)
            if held is None:
                raise self._unknown(stream)
            batch = held.batch(sequence)
            if batch is None:
                return None
            held.mark_visible(sequence + 1)
            path = self._folder / batch.path
            with plain_errors("open the segment", path):
                return path.open("rb")

    @property
    def positions(self) -> dict[str, StreamPosition]:
        """Return the messages that each stream retains."""
        with self._changed:
            return {
                name: StreamPosition(held.base, held.end, held.has_ended)
                for name, held in self._held.items()
            }

    @property
    def identity(self) -> str:
        """Return a name that no other log has, to which cursors refer; made at first use.

        Raises:
            StreamError: it cannot be read or stored.
        """
        with self._changed:
            return log_identity(self._folder)

    def wait_acknowledged(self, timeout_s: float | None = None) -> bool:
        """Block until all streams have ended and been acknowledged; return whether they have.

        What a consumer had acknowledged before it was deregistered counts. A log that no consumer
        may read returns at once. Returns False after the timeout or when the log is
        closed.
        """
        with self._changed:
            self._changed.wait_for(
                lambda: self._is_closed or self._is_all_acknowledged(), timeout_s
            )
            return self._is_all_acknowledged()

    # -- what there is ---------------------------------------------------------------------------

    @property
    def stats(self) -> LogStats:
        """Return the counters of all streams together."""
        with self._changed:
            return self._ledger.stats

    @property
    def totals(self) -> dict[str, StreamTotals]:
        """Return a copy of the counters of each stream."""
        with self._changed:
            return {name: replace(each) for name, each in self._ledger.totals.items()}

    def late_tuples(self, stream: str) -> int:
        """Return the number of rows discarded for promises made before the log was opened."""
        resumed = self._resumed.get(stream)
        return 0 if resumed is None else resumed.late_tuples

    @property
    def latest(self) -> dict[str, Heartbeat]:
        """Return the last heartbeat of each stream, from which a restarted daemon continues."""
        with self._changed:
            return dict(self._ledger.latest)

    def has_ended(self, stream: str) -> bool:
        """Return whether ``stream`` has ended."""
        return self._held[stream].has_ended

    def counters(self) -> dict[str, dict[str, int]]:
        """Return the counters of each stream as plain values."""
        return {name: each.counters() for name, each in self.totals.items()}

    @property
    def waiting_messages(self) -> int:
        """Messages that are retained until all consumers have acknowledged them."""
        return self._ledger.held_messages

    @property
    def open_tuples(self) -> int:
        """Tuples of open batches, which no reader can see yet."""
        return sum(opened.rows for opened in self._open.values())

    # -- private ---------------------------------------------------------------------------------

    def _seal_for_size(self, stream: str) -> None:
        self._publish(self._sealer.seal(stream, self._open[stream].take_for_size()))

    def _publish(self, messages: Sequence[Message]) -> bool:
        """Publish messages to readers; return False if the disk is full and they must wait."""
        if not messages:
            return True
        with self._changed:
            is_published = self._ledger.publish(messages)
            if not is_published and (oldest := next(self._ledger.sheddable(), None)):
                self._ledger.shed(oldest)
                is_published = self._ledger.publish(())
            self._merger.on_published(messages)
            if self._thinning is not None:
                self._thinning.on_published()
            self._changed.notify_all()
            return is_published

    def _raised(self, beat: StreamHeartbeat) -> StreamHeartbeat:
        """Return ``beat`` with no bound below one promised before the log was opened."""
        resumed = self._resumed.get(beat.stream)
        return (
            beat
            if resumed is None
            else replace(beat, punctuations=resumed.raised(beat.punctuations))
        )

    def _is_all_acknowledged(self) -> bool:
        return all(
            held.has_ended
            and (
                not self.has_consumers
                or held.base == held.end
                or self._ledger.acknowledged.done_below(stream, held.end) == held.end
            )
            for stream, held in self._held.items()
        )

    def _ensure_readable(self, stream: str, cursor: int) -> None:
        held = self._held.get(stream)
        if held is None:
            raise self._unknown(stream)
        if not held.base <= cursor <= held.end:
            problem = f"stream {stream!r} holds messages {held.base} to {held.end}, not {cursor}"
            raise StreamError(problem)

    def _unknown(self, stream: str) -> StreamError:
        return StreamError(f"unknown stream {stream!r}; available: {sorted(self._held)}")

    def _has_more(self, cursors: Mapping[str, int]) -> bool:
        held = [(self._held[stream], cursor) for stream, cursor in cursors.items()]
        return any(cursor < each.end for each, cursor in held) or all(
            each.is_read(cursor) for each, cursor in held
        )


def read_log(folder: Path) -> list[Message]:
    """Return all messages of the log in ``folder`` in the order of writing, without server or lock.

    Paths of batches are relative to ``folder``; acknowledged segments have been removed.

    Raises:
        StreamError: the index is unreadable or damaged.
    """
    return read_index(folder).messages
