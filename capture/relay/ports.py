"""The streams of inputs as a merged stream sees them: what was received, and what is held."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from gscope.queries.streams.losses import NO_LOSSES
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from gscope.queries.streams.losses import Losses
    from gscope.queries.streams.messages import Extent

Bounds = dict[str, int]
"""The bounds of a stream by the name of the promise, see ``Punctuation``."""


class PortKey(NamedTuple):
    """A stream of an input; a new log of an input has new streams.

    Attributes:
        input: name of the input.
        log: identity of its log.
        stream: name of the stream in that log.
    """

    input: str
    log: str
    stream: str


class Rows(Protocol):
    """Rows of a batch, in memory or in a file."""

    @property
    def extents(self) -> Sequence[Extent]:
        """The extents of their temporal columns."""

    @property
    def num_rows(self) -> int:
        """Their number."""

    def read(self) -> pa.Table:
        """Return the rows in the relay's schema."""

    def discard(self) -> None:
        """Delete what holds them."""


@dataclass(slots=True)
class HeldBatch:
    """A batch whose rows are not all released.

    Attributes:
        sequence: its number in its stream.
        rows: its rows.
        floors: what was promised when it came: rows below are not released.
    """

    sequence: int
    rows: Rows
    floors: Bounds


@dataclass(slots=True)
class Port:
    """One stream of an input.

    Attributes:
        next: number of the next message to receive.
        judged: messages below it were received before the last release.
        bounds: what the stream has promised.
        has_ended: whether it has ended.
        is_left: whether its input has another log now.
        restart: number of the first message of the process that captures now, if what it promises
            includes packets that no process has captured; None once that is noted.
        left_bounds: what the stream had promised in the former log of its input; None without one.
        held: its batches that are not released as a whole, oldest first.
        losses: what is missing from it, by its last heartbeat.
        rows_total: rows received.
        late_tuples_total: rows below what the merged stream had promised when they came.
        shed_tuples_total: rows that the input shed before they were received.
    """

    next: int = 0
    judged: int = 0
    bounds: Bounds = field(default_factory=dict)
    has_ended: bool = False
    is_left: bool = False
    restart: int | None = None
    left_bounds: Bounds | None = None
    held: list[HeldBatch] = field(default_factory=list)
    losses: Losses = NO_LOSSES
    rows_total: int = 0
    late_tuples_total: int = 0
    shed_tuples_total: int = 0

    @property
    def is_over(self) -> bool:
        """Whether nothing more is expected of it."""
        return self.has_ended or self.is_left

    def add_counts(self, other: Port) -> None:
        """Add the counts of ``other``."""
        self.rows_total += other.rows_total
        self.late_tuples_total += other.late_tuples_total
        self.shed_tuples_total += other.shed_tuples_total

    @property
    def cursor(self) -> int:
        """Number of the first message that is needed again after a restart."""
        return self.held[0].sequence if self.held else self.next
