"""What a stream carries: batches, heartbeats and the end.

After a heartbeat with bound b on column f, no later batch of the stream holds f < b. The promise of a
decreasing column is one of its negative. Order inside that promise is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.queries.expressions.types import Direction

if TYPE_CHECKING:
    from gscope.queries.expressions.schema import ColumnSchema


@dataclass(frozen=True, slots=True)
class Punctuation:
    """The promise "no later tuple of this stream has ``column`` < ``bound``".

    ``-f`` stands for the negative of the column ``f``: so a bound never falls, whichever way a column moves.
    """

    column: str
    bound: int


def promised_name(column: ColumnSchema) -> str:
    """The name under which ``column`` is promised."""
    is_falling = column.ordering.direction is Direction.DECREASING
    return f"-{column.name}" if is_falling else column.name


def punctuation(column: ColumnSchema, value: int) -> Punctuation:
    """The promise that a temporal ``column`` does not step back behind ``value`` any more."""
    is_falling = column.ordering.direction is Direction.DECREASING
    return Punctuation(promised_name(column), -value if is_falling else value)


@dataclass(frozen=True, slots=True)
class Extent:
    """The least and the greatest value of a temporal column in a batch."""

    column: str
    least: int
    greatest: int


@dataclass(frozen=True, slots=True)
class Batch:
    """A sealed batch: a columnar segment file of the log.

    Attributes:
        path: of the segment, relative to the log's folder.
        extents: of each temporal column.
    """

    stream: str
    sequence: int
    path: str
    rows: int
    size_bytes: int
    extents: tuple[Extent, ...]

    def extent(self, column: str) -> Extent:
        """The extent of ``column``."""
        return next(extent for extent in self.extents if extent.column == column)


@dataclass(frozen=True, slots=True)
class Hop:
    """One node on a heartbeat's way: who, when it arrived, how long it queued and worked there.

    Times are nanoseconds; ``arrived_ns`` is wall-clock time since 1970. ``counters`` ride along:
    tuples in and out, bytes, evictions, state.
    """

    node: str
    arrived_ns: int
    queued_ns: int
    worked_ns: int
    counters: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """The periodic message that carries punctuation, also when nothing happened.

    Attributes:
        identity: of the heartbeat; the same on all streams that beat together.
        clock_ns: the trace's or the machine's clock when it was made.
        punctuations: one for each temporal column of the stream.
        trace: the hops so far.
    """

    stream: str
    sequence: int
    identity: int
    clock_ns: int
    punctuations: tuple[Punctuation, ...]
    trace: tuple[Hop, ...] = field(default=())


@dataclass(frozen=True, slots=True)
class EndOfStream:
    """No more messages at all; every open epoch may be closed."""

    stream: str
    sequence: int


@dataclass(frozen=True, slots=True)
class Shed:
    """A gap: the batch that stood here was dropped on purpose, because the log's budget was used up.

    Attributes:
        sequence: of the batch, or of the last of several that are told together.
        tuples: that it held.
        packets: that these stood for, None where that is not known.
        extents: of its temporal columns.
    """

    stream: str
    sequence: int
    tuples: int
    packets: int | None
    extents: tuple[Extent, ...]

    def with_later(self, later: Shed) -> Shed:
        """This gap and a later one of the stream as one, in the later one's place."""
        is_known = self.packets is not None and later.packets is not None
        return Shed(
            self.stream,
            later.sequence,
            self.tuples + later.tuples,
            (self.packets or 0) + (later.packets or 0) if is_known else None,
            tuple(
                Extent(a.column, min(a.least, b.least), max(a.greatest, b.greatest))
                for a, b in zip(self.extents, later.extents, strict=True)
            ),
        )


Message = Batch | Heartbeat | EndOfStream | Shed


@dataclass(frozen=True, slots=True)
class Base:
    """In an index only: the messages of the stream below ``sequence`` that do not stand before are gone.

    Attributes:
        counters: of the stream, over the messages that are gone; () if nothing of them is to be known.
        has_ended: whether its end is among them.
        beat: the last heartbeat among them, from which a writer that comes later goes on; None for none.
    """

    stream: str
    sequence: int
    counters: tuple[tuple[str, int], ...] = ()
    has_ended: bool = False
    beat: Heartbeat | None = None


@dataclass(frozen=True, slots=True)
class Merged:
    """In an index only: ``batch`` holds the rows of those numbered ``parts``, and has the number of the last.

    The parts are gone, and so are the heartbeats between them: the next one behind them says more.
    """

    batch: Batch
    parts: tuple[int, ...]

    @property
    def stream(self) -> str:
        """That of all parts."""
        return self.batch.stream

    @property
    def sequence(self) -> int:
        """Of the batch."""
        return self.batch.sequence


Record = Message | Base | Merged
"""What an index consists of."""
