"""What a stream carries: batches, heartbeats and the end.

After a heartbeat with bound b on column f, no later batch of the stream holds f < b. The promise of a
decreasing column is one of its negative. Order inside that promise is free.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from gscope.queries.catalog.types import Direction

if TYPE_CHECKING:
    from gscope.queries.catalog.schema import ColumnSchema


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


Message = Batch | Heartbeat | EndOfStream
