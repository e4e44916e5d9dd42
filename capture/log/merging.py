"""Merging of small batches that wait for an absent reader, which bounds their number.

Only batches that no reader has seen are merged: none has received them, and no reader's cursor is
among or beyond them. The merged batch has the number of the last of its parts, and heartbeats
between them are released, as the next one after them says more; so every promise and every cursor
stays valid.

A thread merges, outside the log's lock but for the moment of the exchange. After a crash the index
decides: until its record is complete it lists the parts, afterwards the batch.
"""

from __future__ import annotations

import threading
from collections import Counter
from contextlib import suppress
from queue import SimpleQueue
from typing import TYPE_CHECKING

from gscope.capture.log.batches import combined
from gscope.capture.log.os_errors import is_full
from gscope.errors import StreamError
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gscope.capture.log.batches import StreamSpec
    from gscope.capture.log.budget import Budget, Usage
    from gscope.capture.log.retained_messages import Ledger
    from gscope.capture.log.segments import SegmentFolder
    from gscope.queries.streams.messages import Message

FEWEST_PARTS = 16
"""Fewer batches are not merged: even a job that keeps up has not received the last few."""


def worth_merging(batches: Sequence[Batch], small_bytes: int) -> list[Batch]:
    """Return which of ``batches``, oldest first, to merge; [] if merging does not pay.

    The newest that are smaller than ``small_bytes``, as many as it takes that the largest of them
    is at most half of all: so rows are written again only into a batch twice as large, which makes
    few times; and one merged batch has less than ``FEWEST_PARTS * small_bytes``.
    """
    parts: list[Batch] = []
    total = largest = 0
    for batch in reversed(batches):
        if batch.size_bytes < small_bytes:
            parts.append(batch)
            total += batch.size_bytes
            largest = max(largest, batch.size_bytes)
            if len(parts) >= FEWEST_PARTS and 2 * largest <= total:
                return parts[::-1]
    return []


class Merger:
    """Merges small waiting batches of a log.

    Args:
        specs: the streams by name.
        segments: of the log.
        ledger: of the log.
        budget: says which batches are small.
        usage: what the budget may know.
        lock: of the ledger.
    """

    def __init__(
        self,
        specs: Mapping[str, StreamSpec],
        segments: SegmentFolder,
        ledger: Ledger,
        budget: Budget,
        usage: Usage,
        lock: threading.Condition,
    ) -> None:
        self._specs = specs
        self._segments = segments
        self._ledger = ledger
        self._budget = budget
        self._usage = usage
        self._lock = lock
        self._come: Counter[str] = Counter()
        self._due: dict[str, None] = {}
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._is_stopped = False
        self._called: SimpleQueue[None] = SimpleQueue()

    def on_published(self, messages: Iterable[Message]) -> None:
        """Start merging if a stream has enough new batches; the lock is held."""
        if self._is_stopped or not self._usage.has_consumers or not self._budget.small_bytes:
            return
        for message in messages:
            if isinstance(message, Batch):
                self._come[message.stream] += 1
                if self._come[message.stream] >= FEWEST_PARTS:
                    del self._come[message.stream]
                    self._due[message.stream] = None
        if self._due and not self._is_busy and self._next_parts():
            self._is_busy = True
            self._called.put(None)
            if self._thread is None:
                self._thread = threading.Thread(target=self._work, name="log-merge", daemon=True)
                self._thread.start()

    def wait(self) -> None:
        """Block until no batches are left to merge; the lock is not held."""
        with self._lock:
            self._lock.wait_for(lambda: not self._is_busy)

    def stop(self) -> None:
        """Stop merging, and abandon a merge in progress; the lock is not held."""
        with self._lock:
            self._is_stopped = True
        self._called.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        # One thread for good, as each would leave memory of its own behind.
        while not self._is_stopped:
            self._called.get()
            while parts := self._taken():
                self._merge(parts)

    def _taken(self) -> list[Batch]:
        """Return the batches to merge next; [] if there are none until the next call."""
        with self._lock:
            parts = [] if self._is_stopped else self._next_parts()
            if not parts:
                self._is_busy = False
                self._lock.notify_all()
            return parts

    def _next_parts(self) -> list[Batch]:
        """Return the batches to merge next; the lock is held.

        Streams without any are no longer due.
        """
        for stream in tuple(self._due):
            unknown = self._ledger.held[stream].invisible_batches()
            if parts := worth_merging(unknown, self._budget.small_bytes):
                return parts
            del self._due[stream]
        return []

    def _merge(self, parts: Sequence[Batch]) -> None:
        """Write a segment with the rows of ``parts`` and retain it in their place."""
        stream = parts[0].stream
        paths = [part.path for part in parts]
        rows = sum(part.rows for part in parts)
        # For a moment both are there. The budget, which counts what is sealed, does not mind.
        size = sum(part.size_bytes for part in parts)
        if self._usage.free_bytes < size + self._budget.reserve_bytes:
            with self._lock:
                self._due.pop(stream, None)
            return
        try:
            path, size, row_groups = self._segments.merge(
                paths, rows, self._specs[stream].partitioning
            )
        except StreamError as error:
            with self._lock:
                self._on_failure(parts, error)
            return
        sequence = parts[-1].sequence
        batch = Batch(stream, sequence, path, rows, size, combined(parts), row_groups)
        with self._lock:
            try:
                is_merged = not self._is_stopped and self._ledger.merge(batch, parts)
            except StreamError as error:
                is_merged = False
                self._on_failure(parts, error)
        # A file that cannot be removed is in no index, and the next start removes it.
        with suppress(StreamError):
            self._segments.remove(paths if is_merged else [path])

    def _on_failure(self, parts: Sequence[Batch], error: StreamError) -> None:
        """Keep ``parts``: for now if the disk is full, permanently if they are unreadable."""
        stream = parts[0].stream
        if is_full(error):
            self._ledger.full_disk_total += 1
            self._due.pop(stream, None)
        elif self._ledger.is_invisible(parts):
            # They were not shed meanwhile: their reader will report what is wrong.
            self._ledger.held[stream].mark_visible(parts[-1].sequence + 1)
