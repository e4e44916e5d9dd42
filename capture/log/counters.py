"""What became of the tuples that reached the log: tuples = released + waiting + shed."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pyarrow.parquet as pq

from gscope.queries.streams.messages import Batch, Shed

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    import pyarrow as pa

    from gscope.capture.log.batches import StreamSpec
    from gscope.queries.streams.messages import Message


@dataclass(slots=True)
class StreamTotals:
    """The counters of one stream since its log was made, over restarts.

    Attributes:
        batches_total: written.
        tuples_total: that were to be logged: those of batches, and those shed before they made one.
        written_bytes_total: of segments.
        shed_batches_total: dropped because the budget was used up, and times that rows made no batch.
        shed_tuples_total: those of them.
        shed_packets_total: that these stood for, where that is known.
        waiting_tuples: in batches that somebody has not acknowledged.
        merged_batches_total: that went into a neighbour, because many small ones waited.
    """

    batches_total: int = 0
    tuples_total: int = 0
    written_bytes_total: int = 0
    shed_batches_total: int = 0
    shed_tuples_total: int = 0
    shed_packets_total: int = 0
    waiting_tuples: int = 0
    merged_batches_total: int = 0

    @classmethod
    def from_counters(cls, counters: Iterable[tuple[str, int]]) -> StreamTotals:
        """Those of a ``Base``; unknown ones are of another version, and left out."""
        known = {f.name for f in fields(cls)}
        return cls(**{name: count for name, count in counters if name in known})

    @property
    def released_tuples_total(self) -> int:
        """Acknowledged by everybody who reads them."""
        return self.tuples_total - self.shed_tuples_total - self.waiting_tuples

    def counters(self) -> dict[str, int]:
        """All of them by name."""
        return {**asdict(self), "released_tuples_total": self.released_tuples_total}

    def on_message(self, message: Message) -> None:
        """A message is held from now on."""
        if isinstance(message, Batch):
            self.batches_total += 1
            self.tuples_total += message.rows
            self.written_bytes_total += message.size_bytes
            self.waiting_tuples += message.rows
        elif isinstance(message, Shed):
            self.tuples_total += message.tuples
            self._on_gap(message)

    def on_shed(self, gap: Shed) -> None:
        """A batch that was held has become a gap."""
        self.waiting_tuples -= gap.tuples
        self._on_gap(gap)

    def on_merged(self, parts: int) -> None:
        """So many batches that were held have become one."""
        self.merged_batches_total += parts - 1

    def on_recovered_merge(self, parts: Sequence[Batch], batch: Batch) -> None:
        """``batch`` is held, and counted as written: it was not, its parts were."""
        self.on_merged(len(parts))
        self.batches_total += len(parts) - 1
        self.written_bytes_total += sum(part.size_bytes for part in parts) - batch.size_bytes

    def on_dropped(self, batches: Iterable[Batch]) -> None:
        """Everybody has acknowledged these."""
        self.waiting_tuples -= sum(batch.rows for batch in batches)

    def without(self, messages: Iterable[Message]) -> StreamTotals:
        """What it was before ``messages`` were held; waiting aside."""
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
    """Counters of a log since it was made, over all streams and restarts.

    Attributes:
        used_bytes: of segments still held.
        index_bytes: of the index.
        full_disk_total: times that the disk was found full.
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
    used_bytes: int = 0
    index_bytes: int = 0
    full_disk_total: int = 0


_SUMMED = (*(f.name for f in fields(StreamTotals)), "released_tuples_total")


def summed(totals: Iterable[StreamTotals]) -> LogStats:
    """The counters of all streams together."""
    stats = LogStats()
    for each in totals:
        for name in _SUMMED:
            setattr(stats, name, getattr(stats, name) + getattr(each, name))
    return stats


def packets_in(rows: pa.RecordBatch | pa.Table, spec: StreamSpec) -> int | None:
    """How many packets rows of a stream stand for, None if nothing in them tells."""
    if spec.epoch is None:
        return int(rows.num_rows)
    if spec.packets is None:
        return None
    return int(pc.sum(rows[spec.packets]).as_py() or 0)


def packets_of(segment: Path, spec: StreamSpec, rows: int) -> int | None:
    """How many packets the rows of a segment stand for, None if nothing in it tells.

    It is read only to be dropped then, so a segment that cannot be read is no failure.
    """
    if spec.epoch is None:
        return rows
    if spec.packets is None:
        return None
    try:
        return packets_in(pq.read_table(segment, columns=[spec.packets]), spec)
    except (OSError, ValueError):
        return None
