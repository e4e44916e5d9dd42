"""The fate of the tuples that reached the log: tuples = released + waiting + shed."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING

import pyarrow.parquet as pq

from gscope.queries.streams.messages import Batch, Shed
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.batches import StreamSpec
    from gscope.queries.streams.messages import Message, Thinned


@dataclass(slots=True)
class StreamTotals:
    """The counters of one stream since its log was created, over restarts.

    Attributes:
        batches_total: batches written.
        tuples_total: tuples that reached the log: those of batches, and those shed before that.
        written_bytes_total: bytes of segments written.
        shed_batches_total: batches deleted because the budget was used up, and times that rows were
            shed before they became a batch.
        shed_tuples_total: tuples of these.
        shed_packets_total: packets that these tuples stood for, as far as that is known.
        waiting_tuples: tuples in batches that some reader has not acknowledged.
        merged_batches_total: small waiting batches that were merged into a neighbour.
        thinned_tuples_total: those of the shed tuples that were removed from batches by their hash.
    """

    batches_total: int = 0
    tuples_total: int = 0
    written_bytes_total: int = 0
    shed_batches_total: int = 0
    shed_tuples_total: int = 0
    shed_packets_total: int = 0
    waiting_tuples: int = 0
    merged_batches_total: int = 0
    thinned_tuples_total: int = 0

    @classmethod
    def from_counters(cls, counters: Iterable[tuple[str, int]]) -> StreamTotals:
        """Return the counters of a ``Base``, but names that only another version knows."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: count for name, count in counters if name in known})

    @property
    def released_tuples_total(self) -> int:
        """Tuples that all their readers have acknowledged."""
        return self.tuples_total - self.shed_tuples_total - self.waiting_tuples

    def counters(self) -> dict[str, int]:
        """Return all counters by name."""
        return {**asdict(self), "released_tuples_total": self.released_tuples_total}

    def on_message(self, message: Message) -> None:
        """Count a message that is now retained."""
        if isinstance(message, Batch):
            self.batches_total += 1
            self.tuples_total += message.rows
            self.written_bytes_total += message.size_bytes
            self.waiting_tuples += message.rows
        elif isinstance(message, Shed):
            self.tuples_total += message.tuples
            self._on_gap(message)

    def on_shed(self, gap: Shed) -> None:
        """Count a retained batch that has become a gap."""
        self.waiting_tuples -= gap.tuples
        self._on_gap(gap)

    def on_merged(self, parts: int) -> None:
        """Count ``parts`` retained batches that have become one."""
        self.merged_batches_total += parts - 1

    def on_recovered_merge(self, parts: Sequence[Batch], batch: Batch) -> None:
        """Correct the counters of a merged batch: not ``batch`` was written, but its parts."""
        self.on_merged(len(parts))
        self.batches_total += len(parts) - 1
        self.written_bytes_total += sum(part.size_bytes for part in parts) - batch.size_bytes

    def on_thinned(self, thinned: Thinned) -> None:
        """Count the rows that were removed from a retained batch."""
        self.waiting_tuples -= thinned.tuples
        self.shed_tuples_total += thinned.tuples
        self.shed_packets_total += thinned.packets or 0
        self.thinned_tuples_total += thinned.tuples

    def on_recovered_thinning(self, thinned: Thinned) -> None:
        """Correct the counters of a thinned batch: it was written with all of its rows."""
        self.tuples_total += thinned.tuples
        self.written_bytes_total += thinned.freed_bytes
        self.waiting_tuples += thinned.tuples
        self.on_thinned(thinned)

    def on_dropped(self, batches: Iterable[Batch]) -> None:
        """Count batches that all readers have acknowledged."""
        self.waiting_tuples -= sum(batch.rows for batch in batches)

    def without(self, messages: Iterable[Message]) -> StreamTotals:
        """Return the counters from before ``messages`` were retained, but no waiting tuples."""
        held = StreamTotals()
        for message in messages:
            held.on_message(message)
        mine, theirs = asdict(self), asdict(held)
        return StreamTotals(**{n: mine[n] - theirs[n] for n in mine if n != "waiting_tuples"})

    def _on_gap(self, gap: Shed) -> None:
        self.shed_batches_total += 1
        self.shed_tuples_total += gap.tuples
        self.shed_packets_total += gap.packets or 0


@dataclass(slots=True)
class LogStats:
    """Counters of a log since it was created, over all streams and restarts.

    Attributes:
        used_bytes: bytes of retained segments.
        index_bytes: bytes of the index.
        full_disk_total: number of writes that failed because the disk was full.
    """

    batches_total: int = 0
    tuples_total: int = 0
    written_bytes_total: int = 0
    released_tuples_total: int = 0
    waiting_tuples: int = 0
    shed_batches_total: int = 0
    shed_tuples_total: int = 0
    shed_packets_total: int = 0
    merged_batches_total: int = 0
    thinned_tuples_total: int = 0
    used_bytes: int = 0
    index_bytes: int = 0
    full_disk_total: int = 0


_SUMMED = (*(f.name for f in fields(StreamTotals)), "released_tuples_total")


def summed(totals: Iterable[StreamTotals]) -> LogStats:
    """Return the counters of all streams together."""
    stats = LogStats()
    for each in totals:
        for name in _SUMMED:
            setattr(stats, name, getattr(stats, name) + getattr(each, name))
    return stats


def packets_in(rows: pa.RecordBatch | pa.Table, spec: StreamSpec) -> int | None:
    """Return the number of packets that rows of a stream stand for; None if it is unknown."""
    if spec.epoch is None:
        return int(rows.num_rows)
    if spec.packets is None:
        return None
    import pyarrow.compute as pc

    return int(pc.sum(rows[spec.packets]).as_py() or 0)


def packets_of(segment: Path, spec: StreamSpec, rows: int) -> int | None:
    """Return the number of packets that the rows of a segment stand for; None if it is unknown.

    The segment is deleted afterwards, so it is not an error if it cannot be read.
    """
    if spec.epoch is None:
        return rows
    if spec.packets is None:
        return None
    try:
        return packets_in(pq.read_table(segment, columns=[spec.packets]), spec)
    except (OSError, ValueError):
        return None
