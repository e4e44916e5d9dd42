"""The thread that thins a nearly full log.

When three quarters of the budget are in use, a limit falls for the epochs that wait, and batches
are written again without the rows above it. The limit is stored first; a reader that leases
afterwards gets it, and leaves out the rows above it that are still there: in batches that it has
leased, in later ones, in other streams of the component. So kept groups are whole, however far the
rewriting has come.

Times that a reader has answered keep their limit; it states them when it leases.
"""

from __future__ import annotations

import threading
from dataclasses import replace
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.capture.log.counters import packets_in
from gscope.capture.log.os_errors import plain_errors
from gscope.capture.log.thinning.cuts import Cut, WaitingBatch, next_cut
from gscope.errors import StreamError
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.plan.partitioning.row_hashes import row_hashes
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, rate_of, threshold_of
from gscope.queries.streams.messages import Thinned
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from gscope.capture.log.batches import StreamSpec
    from gscope.capture.log.thinnable_log import ThinnableLog
    from gscope.capture.log.thinning.limits import StreamLimits
    from gscope.queries.plan.sampling.keyed_hash import HashKey
    from gscope.queries.plan.sampling.thinnable import ThinnableRows, ThinnableSample
    from gscope.queries.streams.leases import AnsweredTimes
    from gscope.queries.streams.messages import Batch
    from gscope.queries.streams.thresholds import ThresholdSchedule

NEARLY_FULL = 0.75
"""Part of the budget in use from which on the log is thinned."""

WANTED = 1 / 8
"""Part of the budget that a cut frees if its floor allows it."""

WORTHWHILE = 1 / 64
"""Part of the budget that a cut has to free, or it is left for later."""

MOST_SPARED = 0.5
"""Part of the budget up to which the batches of thinned streams are shed after all others."""


@dataclass(frozen=True, slots=True)
class ThinningRules:
    """What is thinned, and how far.

    Attributes:
        samples: the streams of each component.
        specs: the streams by name.
        key: the constants of the hash.
        min_rate: the least rate of any component.
        budget_bytes: the log's limit.
        reserve_bytes: bytes of the disk that stay free.
        reader: the only reader of these streams, which states what it has answered.
    """

    samples: tuple[ThinnableSample, ...]
    specs: Mapping[str, StreamSpec]
    key: HashKey
    min_rate: float
    budget_bytes: int
    reserve_bytes: int
    reader: str

    def floor(self, sample: ThinnableSample) -> int:
        """Return the least threshold of a component."""
        return threshold_of(max(self.min_rate, sample.min_rate))


class Thinner:
    """Thins a log; see ``Thinning``.

    Args:
        log: the log.
        rules: what is thinned, and how far.
        limits: those that an earlier writer of the log has left.
        is_new: whether no reader can have answered anything.

    Attributes:
        failures: how often a batch could not be written again; it is kept as it is.
    """

    def __init__(
        self, log: ThinnableLog, rules: ThinningRules, limits: StreamLimits, *, is_new: bool
    ) -> None:
        self._log = log
        self._rules = rules
        self._limits = limits
        self._is_new = is_new
        self._rows: dict[str, ThinnableRows] = {}
        for sample in rules.samples:
            self._rows |= sample.rows
        self._spared: frozenset[str] = frozenset(self._rows)
        self._thinned_to: dict[str, int] = {}
        self._retry_bytes = 0
        self._thread: threading.Thread | None = None
        self._is_busy = False
        self._is_stopped = False
        self._called: SimpleQueue[None] = SimpleQueue()
        self.failures = 0

    @property
    def least_rate(self) -> float:
        """The least rate that a time of a stream in the log has."""
        return rate_of(self._limits.least)

    @property
    def spared_streams(self) -> Collection[str]:
        """Streams whose batches are shed only when no other batches can be shed."""
        return self._spared

    def on_published(self) -> None:
        """Begin to thin if the log is nearly full; the log's lock is held."""
        used = self._log.used_bytes
        if used <= NEARLY_FULL * self._rules.budget_bytes:
            self._retry_bytes = 0
            return
        if self._is_busy or self._is_stopped or used < self._retry_bytes:
            return
        self._is_busy = True
        self._called.put(None)
        if self._thread is None:
            self._thread = threading.Thread(target=self._work, name="log-thin", daemon=True)
            self._thread.start()

    def on_lease(self, consumer: str, answered: Mapping[str, AnsweredTimes]) -> None:
        """Take note of the times that a reader has answered; the log's lock is held."""
        if consumer == self._rules.reader:
            self._retry_bytes = 0
            for stream, times in answered.items():
                self._limits.on_answered(stream, times)

    def limits(self) -> Mapping[str, ThresholdSchedule]:
        """Return the limits of the streams that have some; the log's lock is held."""
        return self._limits.of_stream

    def wait(self) -> None:
        """Block until nothing is left to thin; the log's lock is not held."""
        with self._log.lock:
            self._log.lock.wait_for(lambda: not self._is_busy)

    def stop(self) -> None:
        """Stop, and abandon the segment in progress; the log's lock is not held."""
        with self._log.lock:
            self._is_stopped = True
        self._called.put(None)
        if self._thread is not None:
            self._thread.join()

    def _work(self) -> None:
        while not self._is_stopped:
            self._called.get()
            while self._thin_once():
                pass
            with self._log.lock:
                self._is_busy = False
                self._log.lock.notify_all()

    def _thin_once(self) -> bool:
        """Make one cut; return whether another may be worthwhile."""
        budget = self._rules.budget_bytes
        if self._is_stopped or self._log.used_bytes <= NEARLY_FULL * budget:
            return False
        chosen = self._chosen()
        if chosen is None or chosen[1].freed_bytes < WORTHWHILE * budget:
            # The floor is reached: until there are more rows, there is nothing to gain.
            with self._log.lock:
                self._retry_bytes = self._log.used_bytes + int(WORTHWHILE * budget)
            return False
        sample, cut = chosen
        if not self._lowered(sample, cut):
            return False
        for waiting in cut.batches:
            self._thin(waiting.batch, cut.threshold)
        return True

    def _chosen(self) -> tuple[ThinnableSample, Cut] | None:
        """Return the cut that frees most, and its component; None if nothing can be thinned."""
        rules = self._rules
        waiting = self._log.unleased(self._rows)
        paths = {batch.path for batch in waiting}
        self._thinned_to = {p: t for p, t in self._thinned_to.items() if p in paths}
        is_small = sum(each.size_bytes for each in waiting) <= MOST_SPARED * rules.budget_bytes
        self._spared = frozenset(self._rows) if is_small else frozenset()
        beats = self._log.heartbeats(self._rows)
        found = []
        for sample in rules.samples:
            from_ns = self._final_ns(sample)
            if from_ns is None:
                continue
            placed = []
            for batch in waiting:
                if batch.stream in sample.rows and (times := self._times(batch)) is not None:
                    beat = beats.get(batch.stream)
                    schedule = None if beat is None else beat.schedule
                    highest = self._highest(batch, schedule, times)
                    placed.append(WaitingBatch(batch, *times, highest))
            wanted = int(WANTED * rules.budget_bytes)
            cut = next_cut(placed, from_ns, rules.floor(sample), wanted)
            if cut is not None:
                found.append((sample, cut))
        return max(found, key=lambda each: each[1].freed_bytes, default=None)

    def _final_ns(self, sample: ThinnableSample) -> int | None:
        """Return the time before which thresholds are final; None if that is unknown."""
        with self._log.lock:
            known = [self._limits.answered.get(stream) for stream in sample.rows]
        if not self._is_new and None in known:
            return None
        return max([MIN_TIME_NS, *(times.by_any_ns for times in known if times is not None)])

    def _times(self, batch: Batch) -> tuple[int, int] | None:
        extents = {each.column: (each.least, each.greatest) for each in batch.extents}
        return self._rows[batch.stream].times(extents)

    def _highest(
        self, batch: Batch, schedule: ThresholdSchedule | None, times: tuple[int, int]
    ) -> int:
        """Return a hash that no row of a batch exceeds."""
        first_ns, end_ns = times
        ceiling = (
            FULL_THRESHOLD if schedule is None else schedule.within(first_ns, end_ns - 1).ceiling
        )
        return min(ceiling, self._thinned_to.get(batch.path, FULL_THRESHOLD))

    def _lowered(self, sample: ThinnableSample, cut: Cut) -> bool:
        """Lower the limits of a component by a cut; return whether that was possible."""
        with self._log.lock:
            # A reader may have leased since; what it answers stays as it is.
            from_ns = max(cut.from_ns, self._final_ns(sample) or cut.from_ns)
            if from_ns > cut.from_ns:
                return from_ns < cut.until_ns and self._lower(sample, replace(cut, from_ns=from_ns))
            return self._lower(sample, cut)

    def _lower(self, sample: ThinnableSample, cut: Cut) -> bool:
        try:
            return self._limits.lower(sample.rows, cut.threshold, cut.from_ns, cut.until_ns)
        except StreamError:
            self.failures += 1
            return False

    def _thin(self, batch: Batch, threshold: int) -> None:
        """Write a batch again without the rows above a threshold.

        It does so if all times of the batch have that limit.
        """
        times = self._times(batch)
        assert times is not None, batch
        first_ns, end_ns = times
        with self._log.lock:
            limit = self._limits.of(batch.stream).greatest(first_ns, end_ns - 1)
        if self._is_stopped or limit > threshold or self._is_disk_short(batch):
            return
        try:
            made = self._rewritten(batch, limit)
            if made is not None and not self._log.thin(batch, made):
                return
        except StreamError:
            # It was released or shed meanwhile, or the disk is full: it stays as it is.
            self.failures += 1
        self._thinned_to[batch.path] = limit

    def _is_disk_short(self, batch: Batch) -> bool:
        return self._log.free_bytes < batch.size_bytes + self._rules.reserve_bytes

    def _rewritten(self, batch: Batch, limit: int) -> Thinned | None:
        """Write the rows of a batch up to a limit beside it; return None if these are all.

        Raises:
            StreamError: the segment is unreadable, or the new one cannot be written.
        """
        terms = self._rows[batch.stream].terms
        spec = self._rules.specs[batch.stream]
        removed: list[pa.Table] = []
        rows: list[int] = []

        def kept(file: pq.ParquetFile) -> Iterator[pa.Table]:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, use_threads=False)
                is_kept = pa.array(row_hashes(table, terms, self._rules.key) <= np.uint64(limit))
                left = table.filter(is_kept)
                rows.append(left.num_rows)
                removed.append(_counted(table.filter(pc.invert(is_kept)), spec))
                yield left

        path = self._log.segment_path(batch)
        try:
            with plain_errors("read the segment", path), pq.ParquetFile(path) as file:
                size = self._log.write_beside(batch, file.schema_arrow, kept(file))
        except pa.ArrowException as error:
            message = f"cannot read the segment {path}: {error}"
            raise StreamError(message) from error
        if sum(rows) == batch.rows:
            self._log.abandon_beside(batch)
            return None
        tuples = sum(table.num_rows for table in removed)
        counts = [packets_in(table, spec) for table in removed]
        packets = None if None in counts else sum(count or 0 for count in counts)
        # Row groups keep their places, also empty ones: readers may know them already.
        groups = tuple(
            replace(group, rows=left, size_bytes=group.size_bytes * left // max(1, group.rows))
            for group, left in zip(batch.row_groups, rows, strict=False)
        )
        left = replace(batch, rows=sum(rows), size_bytes=size, row_groups=groups)
        return Thinned(left, tuples, packets, batch.size_bytes - size)


def _counted(rows: pa.Table, spec: StreamSpec) -> pa.Table:
    """Return what is needed of removed rows to count them."""
    return rows.select([spec.packets] if spec.packets is not None else [])
