"""The messages of a stream: batches, heartbeats and the end.

After a heartbeat with bound b on column f, no later batch of the stream holds f < b. A decreasing
column is promised by its negative. Within that promise, tuples may come in any order.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from gscope.queries.expressions.types import Direction
from gscope.queries.int64 import MAX_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.streams.gaps import HostGap
    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.thresholds import ThresholdSchedule


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The promise "no later tuple of this stream has ``column`` < ``bound``".

    ``-f`` stands for the negative of the column ``f``, so that a bound never falls, whether the
    column increases or decreases.
    """

    column: str
    bound: int


def promised_name(column: ColumnSchema) -> str:
    """Return the name of ``column`` in punctuations."""
    is_falling = column.ordering.direction is Direction.DECREASING
    return f"-{column.name}" if is_falling else column.name


def punctuation(column: ColumnSchema, value: int) -> Punctuation:
    """Return the promise that a temporal ``column`` does not step back behind ``value``."""
    is_falling = column.ordering.direction is Direction.DECREASING
    return Punctuation(promised_name(column), -value if is_falling else value)


@dataclass(frozen=True, slots=True)
class Extent:
    """The least and the greatest value of a temporal column in a batch."""

    column: str
    least: int
    greatest: int


def enclosing_extents(extents: Sequence[tuple[Extent, ...]]) -> tuple[Extent, ...]:
    """Return the extents of several sets of rows together, in the columns that all of them have."""
    if not extents:
        return ()
    by_column = [{each.column: each for each in own} for own in extents]
    shared = [name for name in by_column[0] if all(name in own for own in by_column)]
    return tuple(
        Extent(
            name,
            min(own[name].least for own in by_column),
            max(own[name].greatest for own in by_column),
        )
        for name in shared
    )


@dataclass(frozen=True, slots=True)
class RowGroup:
    """A row group of a segment, and the partitions that its rows may be of.

    Attributes:
        first: the first of these partitions.
        end: the partition after the last of them; of rows that are not divided, the number of all.
        rows: number of tuples.
        size_bytes: size of the row group.
    """

    first: int
    end: int
    rows: int
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A sealed batch: a columnar segment file of the log.

    Attributes:
        stream: the name of the stream.
        sequence: the number of the message in its stream.
        path: path of the segment, relative to the log's folder.
        rows: number of tuples.
        size_bytes: size of the segment.
        extents: the extent of each temporal column.
        row_groups: all row groups of the segment, in order, if they are divided by partition; () if
            any row may be of any partition, as in a segment of a few rows: a reader of one
            partition reads all rows, and computes the partition of each.
    """

    stream: str
    sequence: int
    path: str
    rows: int
    size_bytes: int
    extents: tuple[Extent, ...]
    row_groups: tuple[RowGroup, ...] = ()

    def extent(self, column: str) -> Extent:
        """Return the extent of ``column``."""
        return next(extent for extent in self.extents if extent.column == column)


@dataclass(frozen=True, slots=True)
class Hop:
    """One node on a heartbeat's way.

    Attributes:
        node: the name of the node.
        arrived_ns: when the heartbeat arrived there, in nanoseconds since 1970.
        queued_ns: how long it was queued, in nanoseconds.
        worked_ns: how long the node worked on it, in nanoseconds.
        counters: counters of the node: tuples in and out, bytes, evictions, state.
    """

    node: str
    arrived_ns: int
    queued_ns: int
    worked_ns: int
    counters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The periodic message that carries punctuation, even if no tuple was emitted.

    Attributes:
        stream: the name of the stream.
        sequence: the number of the message in its stream.
        identity: the number of the heartbeat; the same on all streams that are served together.
        clock_ns: the trace's or the machine's clock when it was sent.
        punctuations: one for each temporal column of the stream.
        trace: the hops so far.
        schedule: the thresholds of the stream's sample, if they follow the load; else None. It is
            cumulative: the last heartbeat says all.
        gaps: what the stream lacks because it went on without a host; cumulative.
        losses: what is missing from the stream, as cumulative; None if nothing is.
    """

    stream: str
    sequence: int
    identity: int
    clock_ns: int
    punctuations: tuple[Punctuation, ...]
    trace: tuple[Hop, ...] = field(default=())
    schedule: ThresholdSchedule | None = None
    gaps: tuple[HostGap, ...] = ()
    losses: Losses | None = None


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """The last message of a stream: every open epoch may be closed."""

    stream: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Shed:
    """A gap: a batch that was dropped on purpose, because the log's budget was used up.

    Attributes:
        stream: the name of the stream.
        sequence: the number of the batch, or of the last of several that are reported together.
        tuples: number of tuples that it held.
        packets: number of packets that these stood for; None if it is unknown.
        extents: the extent of each temporal column.
    """

    stream: str
    sequence: int
    tuples: int
    packets: int | None
    extents: tuple[Extent, ...]

    def with_later(self, later: Shed) -> Shed:
        """Return this gap and a later one of the stream as one, numbered as the later one."""
        is_known = self.packets is not None and later.packets is not None
        return Shed(
            self.stream,
            later.sequence,
            min(MAX_INT, self.tuples + later.tuples),
            min(MAX_INT, (self.packets or 0) + (later.packets or 0)) if is_known else None,
            enclosing_extents((self.extents, later.extents)),
        )


Message = Batch | Heartbeat | EndOfStream | Shed


@dataclass(frozen=True, slots=True)
class Base:
    """In an index only: messages below ``sequence`` are deleted, but for those of earlier records.

    Attributes:
        stream: the name of the stream.
        sequence: messages with lower numbers are deleted.
        counters: counters of the stream over the deleted messages; () if they are not counted.
        has_ended: whether the end of the stream is among the deleted messages.
        beat: the last deleted heartbeat, from which a later writer continues; None: none.
    """

    stream: str
    sequence: int
    counters: tuple[tuple[str, int], ...] = ()
    has_ended: bool = False
    beat: Heartbeat | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """In an index only: ``batch`` holds the tuples of the batches ``parts``.

    It has the number of the last of them. The parts are deleted, and so are the heartbeats between
    them: the next heartbeat after them promises more.
    """

    batch: Batch
    parts: tuple[int, ...]

    @property
    def stream(self) -> str:
        """The stream of all parts."""
        return self.batch.stream

    @property
    def sequence(self) -> int:
        """The number of the merged batch."""
        return self.batch.sequence


@dataclass(frozen=True, slots=True)
class Thinned:
    """In an index only: ``batch`` has the place, the path and some rows of the batch of its number.

    The other rows were removed because the log was nearly full; their hashes are above the limits
    of the stream.

    Attributes:
        batch: the batch without them.
        tuples: the number of rows that were removed.
        packets: number of packets that these stood for; None if it is unknown.
        freed_bytes: the bytes by which the segment became smaller.
    """

    batch: Batch
    tuples: int
    packets: int | None
    freed_bytes: int

    @property
    def stream(self) -> str:
        """The stream of the batch."""
        return self.batch.stream

    @property
    def sequence(self) -> int:
        """The number of the batch."""
        return self.batch.sequence


Record = Message | Base | Merged | Thinned
"""A record of an index."""
