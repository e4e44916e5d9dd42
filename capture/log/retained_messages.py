"""The ledger: the messages that a log retains, in memory and in its index, and their counters.

It is not safe for several threads; the log holds its lock around every call.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from heapq import merge
from itertools import chain
from typing import TYPE_CHECKING

from gscope.capture.log.consumers import Acknowledgements
from gscope.capture.log.counters import LogStats, StreamTotals, packets_of, summed
from gscope.capture.log.index import Index
from gscope.capture.log.os_errors import is_full
from gscope.capture.log.retained_stream import UNNUMBERED, HeldMessages, essential
from gscope.errors import StreamError
from gscope.queries.streams.messages import Base, Batch, Heartbeat, Merged, Message, Shed, Thinned

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.capture.log.batches import StreamSpec
    from gscope.capture.log.consumers import Consumer
    from gscope.capture.log.segments import SegmentFolder

THIN_MESSAGES = 1 << 16
"""Number of messages from which on superseded ones are released."""

REWRITE_RECORDS = 1 << 12
"""The index is rewritten when it has this many records more than twice the number needed."""


class Ledger:
    """The messages of the log in ``folder``.

    Args:
        folder: folder of the log.
        specs: streams that will be written.
        segments: segments of the log.
        consumers: readers that acknowledge.
        is_lossy: whether batches are shed when the disk is full; if not, that is an error.
        most_registered: how many further consumers may register themselves.
        served: names of the streams that these read; () for all.

    Attributes:
        held: retained messages by stream.
        begun: the number of the first message that this process writes, by stream.

    Raises:
        StreamError: the log is unusable, damaged or in use.
    """

    def __init__(
        self,
        folder: Path,
        specs: Mapping[str, StreamSpec],
        segments: SegmentFolder,
        consumers: Sequence[Consumer],
        *,
        is_lossy: bool,
        most_registered: int = 0,
        served: tuple[str, ...] = (),
    ) -> None:
        self.held = {name: HeldMessages() for name in specs}
        self.used_bytes = 0
        self.full_disk_total = 0
        self._folder = folder
        self._specs = specs
        self._segments = segments
        self._is_lossy = is_lossy
        self._totals = {name: StreamTotals() for name in specs}
        self._latest: dict[str, Heartbeat] = {}
        self._leases: dict[str, frozenset[tuple[str, int]]] = {}
        self._unwritten: list[Message] = []
        self._published = 0
        self._messages = 0
        self._thin_at = THIN_MESSAGES
        self._rewrite_at = 0
        self._index = Index(folder)
        try:
            self.acknowledged = Acknowledgements(folder, consumers, most_registered, served)
            self._recover()
            self.begun = {name: held.end for name, held in self.held.items()}
        except BaseException:
            self._index.close()
            raise

    @property
    def stats(self) -> LogStats:
        """The counters of all streams together."""
        stats = summed(self._totals.values())
        stats.used_bytes = self.used_bytes
        stats.index_bytes = self._index.size_bytes
        stats.full_disk_total = self.full_disk_total
        return stats

    @property
    def totals(self) -> Mapping[str, StreamTotals]:
        """The counters of each stream."""
        return self._totals

    @property
    def latest(self) -> Mapping[str, Heartbeat]:
        """The last heartbeat of each stream that has one, even if it is no longer retained."""
        return self._latest

    @property
    def held_batches(self) -> int:
        """Number of retained batches."""
        return sum(len(held.batches) for held in self.held.values())

    @property
    def held_messages(self) -> int:
        """Number of retained messages."""
        return self._messages

    def publish(self, messages: Iterable[Message]) -> bool:
        """Number and retain messages; return False if the disk is full.

        They then wait for the next call, except heartbeats, which later ones supersede.

        Raises:
            StreamError: the index cannot be written; no message is retained.
        """
        waiting = [*self._unwritten, *messages]
        numbered = self._numbered(waiting)
        try:
            self._index.append(numbered)
        except StreamError as error:
            if not self._is_lossy or not is_full(error):
                raise
            self.full_disk_total += 1
            self._unwritten = essential(waiting)
            return False
        self._unwritten = []
        for message in numbered:
            # A gap that has its number already has its place too.
            if message.sequence >= self.held[message.stream].end:
                self._hold(message)
        self._thin()
        return True

    def on_sealed(self, size_bytes: int) -> None:
        """Count a segment that was written and will be published."""
        self.used_bytes += size_bytes

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        """Record that ``consumer`` needs no message below ``cursors``; release what none needs.

        Raises:
            StreamError: a consumer or stream is unknown, a cursor is beyond the last message, or
                the acknowledgement cannot be written.
        """
        for stream, cursor in cursors.items():
            held = self.held.get(stream)
            if held is None or not 0 <= cursor <= held.end:
                problem = f"cannot acknowledge stream {stream!r} up to {cursor}"
                raise StreamError(problem)
        self.acknowledged.advance(consumer, cursors)
        for stream, cursor in cursors.items():
            self.held[stream].mark_visible(cursor)
        is_stored = self._store_acknowledged()
        self._drop(cursors)
        if not is_stored:
            # There may be room now. If not, no more is lost by a crash than that all is read again.
            self._store_acknowledged()

    def register(self, consumer: str) -> dict[str, int]:
        """Add a consumer; return what it has acknowledged, by stream.

        Raises:
            StreamError: the name is invalid, there are too many consumers, or it cannot be stored.
        """
        released = {stream: held.base for stream, held in self.held.items() if held.base}
        if self.acknowledged.register(consumer, released):
            try:
                self.acknowledged.store(is_durable=True)
            except StreamError:
                self.acknowledged.remove(consumer)
                raise
        return self.acknowledged.cursors[consumer]

    def deregister(self, consumer: str) -> None:
        """Forget a consumer that was registered; release what only it still needed.

        Raises:
            StreamError: the consumer is unknown, or that cannot be stored; it stays registered.
        """
        self.acknowledged.ensure_known(consumer)
        # Without its cursors the index alone says what was released.
        self._rewrite_index()
        self.acknowledged.deregister(consumer)
        self._leases.pop(consumer, None)
        self._drop(self.held)

    def _store_acknowledged(self) -> bool:
        try:
            self.acknowledged.store()
        except StreamError as error:
            if not self._is_lossy or not is_full(error):
                raise
            self.full_disk_total += 1
            return False
        return True

    def _drop(self, streams: Iterable[str]) -> None:
        """Release what all consumers have acknowledged of ``streams``, with its segments."""
        for stream in streams:
            held = self.held[stream]
            before = len(held)
            dropped = held.drop_below(self.acknowledged.done_below(stream, held.end))
            self._messages -= before - len(held)
            self._totals[stream].on_dropped(dropped)
            self.used_bytes -= sum(batch.size_bytes for batch in dropped)
            self._segments.remove(batch.path for batch in dropped)
        self._rewrite()

    def waiting_bytes(self, streams: Iterable[str]) -> int:
        """Return the bytes of all batches of ``streams``."""
        return sum(batch.size_bytes for each in streams for _, batch in self.held[each].batches)

    def unacknowledged(self) -> dict[str, dict[str, int]]:
        """Return what each reader that has registered itself has not acknowledged, of its streams.

        Messages, tuples and bytes.
        """
        known = self.acknowledged.cursors
        return {
            name: self._waiting(
                known[name], {s: self.held[s] for s in streams if s in self.held} or self.held
            )
            for name, streams in self.acknowledged.registered.items()
        }

    def _waiting(
        self, cursors: Mapping[str, int], streams: Mapping[str, HeldMessages]
    ) -> dict[str, int]:
        batches = [
            batch
            for stream, held in streams.items()
            for _, batch in held.batches
            if batch.sequence >= cursors.get(stream, 0)
        ]
        return {
            "waiting_messages": sum(
                held.end - max(held.base, cursors.get(stream, 0))
                for stream, held in streams.items()
            ),
            "waiting_tuples": sum(batch.rows for batch in batches),
            "waiting_bytes": sum(batch.size_bytes for batch in batches),
        }

    def lease(
        self, consumer: str, wanted: Mapping[str, Collection[int]]
    ) -> dict[str, tuple[int, ...]]:
        """Keep batches from being shed until the consumer leases others; return those already shed.

        Raises:
            StreamError: an unknown consumer or stream.
        """
        self.acknowledged.ensure_known(consumer)
        for stream in wanted:
            if stream not in self.held:
                problem = f"unknown stream {stream!r}; available: {sorted(self.held)}"
                raise StreamError(problem)
        there: set[tuple[str, int]] = set()
        gone: dict[str, list[int]] = {}
        for stream, sequences in wanted.items():
            for sequence in sequences:
                if self.held[stream].has_batch(sequence):
                    there.add((stream, sequence))
                    self.held[stream].mark_visible(sequence + 1)
                else:
                    gone.setdefault(stream, []).append(sequence)
        self._leases[consumer] = frozenset(there)
        return {stream: tuple(sequences) for stream, sequences in gone.items()}

    def sheddable(self, streams: Iterable[str] | None = None) -> Iterator[Batch]:
        """Return the batches that no consumer has leased, oldest first.

        They are those of all streams by default.
        """
        leased = frozenset().union(*self._leases.values())
        chosen = (self.held[stream].batches for stream in (streams or self.held))
        for _, batch in merge(*chosen, key=lambda b: b[0]):
            if (batch.stream, batch.sequence) not in leased:
                yield batch

    def shed(self, batch: Batch) -> None:
        """Replace a retained batch by a gap, and remove its segment.

        Raises:
            StreamError: the index cannot be written, or the segment cannot be removed.
        """
        stream = batch.stream
        spec = self._specs.get(stream)
        packets = packets_of(self._folder / batch.path, spec, batch.rows) if spec else None
        gap = Shed(stream, batch.sequence, batch.rows, packets, batch.extents)
        is_written = not self._unwritten and self._write_gap(gap)
        self.held[stream].shed(gap)
        self._totals[stream].on_shed(gap)
        self.used_bytes -= batch.size_bytes
        self._segments.remove([batch.path])
        # With the segment gone there may be room to say so.
        if not is_written and not self._write_gap(gap):
            self._unwritten.append(gap)

    def is_invisible(self, batches: Sequence[Batch]) -> bool:
        """Return whether batches of a stream, oldest first, are retained and seen by no reader."""
        held = self.held[batches[0].stream]
        is_first = batches[0].sequence >= held.visible_below
        return is_first and all(held.batch(batch.sequence) is batch for batch in batches)

    def merge(self, batch: Batch, parts: Sequence[Batch]) -> bool:
        """Retain ``batch`` in the place of its parts; return whether that was still possible.

        It is not once a reader has seen a part, or a part is released. Segments are not removed.

        Raises:
            StreamError: the index cannot be written; the parts are retained.
        """
        if not self.is_invisible(parts):
            return False
        sequences = tuple(part.sequence for part in parts)
        self._index.append([Merged(batch, sequences)])
        held = self.held[batch.stream]
        before = len(held)
        held.merge(batch, sequences)
        self._messages -= before - len(held)
        self._totals[batch.stream].on_merged(len(parts))
        self.used_bytes += batch.size_bytes - sum(part.size_bytes for part in parts)
        self._rewrite()
        return True

    def thin(self, batch: Batch, thinned: Thinned) -> bool:
        """Retain a batch without some of its rows; return whether that was still possible.

        It is not once a reader has leased the batch, or it is released. The segment that
        ``SegmentFolder.write_beside`` has written takes the place of that of the batch.

        Raises:
            StreamError: the index cannot be written, or the segment not renamed.
        """
        held = self.held[batch.stream]
        key = batch.stream, batch.sequence
        is_leased = any(key in leased for leased in self._leases.values())
        if is_leased or held.batch(batch.sequence) is not batch:
            return False
        self._index.append([thinned])
        held.replace(batch, thinned.batch)
        self._totals[batch.stream].on_thinned(thinned)
        self.used_bytes -= batch.size_bytes - thinned.batch.size_bytes
        self._segments.replace(batch.path)
        self._rewrite()
        return True

    def close(self) -> None:
        """Unlock the folder; a second call does nothing."""
        self._index.close()

    def _write_gap(self, gap: Shed) -> bool:
        try:
            self._index.append([gap])
        except StreamError as error:
            if not is_full(error):
                raise
            self.full_disk_total += 1
            return False
        return True

    def _numbered(self, messages: Iterable[Message]) -> list[Message]:
        ends = {name: held.end for name, held in self.held.items()}
        numbered: list[Message] = []
        for message in messages:
            if message.sequence == UNNUMBERED:
                numbered.append(replace(message, sequence=ends[message.stream]))
                ends[message.stream] += 1
            else:
                numbered.append(message)
        return numbered

    def _hold(self, message: Message) -> None:
        self.held[message.stream].add(self._published, message)
        self._totals[message.stream].on_message(message)
        if isinstance(message, Heartbeat):
            self._latest[message.stream] = message
        self._published += 1
        self._messages += 1

    def _recover(self) -> None:
        contents = self._index.recovered
        streams = [*contents.bases, *(message.stream for message in contents.messages)]
        for stream in dict.fromkeys(streams):
            self._totals.setdefault(stream, StreamTotals())
            self.held.setdefault(stream, HeldMessages())
        for stream, base in contents.bases.items():
            held = self.held[stream]
            held.base = held.end = base.sequence
            held.has_ended = base.has_ended
            if base.beat is not None:
                self._latest[stream] = base.beat
            self._totals[stream] = StreamTotals.from_counters(base.counters)
        for parts, batch in contents.merges:
            self._totals[batch.stream].on_recovered_merge(parts, batch)
        for thinned in contents.thinned:
            self._totals[thinned.stream].on_recovered_thinning(thinned)
        for message in contents.messages:
            self._hold(message)
            if isinstance(message, Batch):
                self.used_bytes += message.size_bytes
        contents.messages, contents.merges, contents.thinned = [], [], []
        for held in self.held.values():
            # A daemon before this one may have handed them out.
            held.mark_visible(held.end)
        self._drop(self.held)
        kept = [batch for held in self.held.values() for _, batch in held.batches]
        for batch in kept:
            self._ensure_there(batch)
        self._segments.remove_others(batch.path for batch in kept)

    def _ensure_there(self, batch: Batch) -> None:
        size = self._segments.size_bytes(batch.path)
        if size != batch.size_bytes and self._segments.size_beside(batch.path) == batch.size_bytes:
            # A crash came before the thinned segment had its name.
            self._segments.replace(batch.path)
            return
        if size == batch.size_bytes:
            return
        if size is None and self._is_lossy:
            # Shed on a full disk, with no room to say so before a crash.
            self.shed(batch)
            return
        found = "none: it is missing" if size is None else f"{size}"
        path = self._folder / batch.path
        problem = f"invalid segment {path}: expected {batch.size_bytes} bytes, got {found}"
        raise StreamError(problem)

    def _thin(self) -> None:
        """Release superseded messages when there are many, as when a consumer is away for days."""
        if self._messages < self._thin_at or not self.acknowledged.has_consumers:
            return
        for held in self.held.values():
            held.thin()
        self._messages = sum(map(len, self.held.values()))
        self._thin_at = max(THIN_MESSAGES, 2 * self._messages)
        self._rewrite()

    def _rewrite(self) -> None:
        """Rewrite the index when most of its messages have been released."""
        if self._index.records < max(2 * self._messages + REWRITE_RECORDS, self._rewrite_at):
            return
        try:
            self._rewrite_index()
        except StreamError as error:
            if not is_full(error):
                raise
            self.full_disk_total += 1
            self._rewrite_at = 2 * self._index.records

    def _rewrite_index(self) -> None:
        bases = (self._base(stream) for stream in self.held)
        self._index.rewrite(chain(bases, self._jumping()))
        self._rewrite_at = 0
        self._unwritten = [m for m in self._unwritten if m.sequence == UNNUMBERED]

    def _base(self, stream: str) -> Base:
        held = self.held[stream]
        before = self._totals[stream].without(message for _, message in held)
        counters = tuple((name, count) for name, count in asdict(before).items() if count)
        latest = self._latest.get(stream)
        is_gone = latest is not None and latest.sequence < held.base
        has_ended = held.has_ended and not len(held)
        return Base(stream, held.base, counters, has_ended, latest if is_gone else None)

    def _jumping(self) -> Iterator[Message | Base]:
        """Yield all messages in the order of writing, a ``Base`` wherever numbers are missing."""
        ends = {stream: held.base for stream, held in self.held.items()}
        for _, message in merge(*self.held.values(), key=lambda each: each[0]):
            if message.sequence != ends[message.stream]:
                yield Base(message.stream, message.sequence)
            yield message
            ends[message.stream] = message.sequence + 1
