"""The open batch of a stream: tuples collected until they are sealed, cut at punctuations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.capture.log.reordering import reordered
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, Punctuation
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.capture.log.growing_segment import GrowingSegment
    from gscope.queries.plan.program import Lfta
    from gscope.queries.plan.program_partitioning import StreamPartitioning
    from gscope.queries.streams.messages import Batch


@dataclass(frozen=True, slots=True)
class StreamSpec:
    """What the log needs to know about a stream.

    Attributes:
        name: name of the stream.
        temporal: its temporal columns and the direction of each.
        epoch: the temporal column that closes groups; None without one (a selection).
        packets: the column with the number of packets that a tuple stands for; None without one.
        is_latent: whether its rows need no order, so that every heartbeat emits all of them.
        partitioning: what divides its rows within a segment; None to keep their order.
    """

    name: str
    temporal: tuple[tuple[str, Direction], ...]
    epoch: str | None = None
    packets: str | None = None
    is_latent: bool = False
    partitioning: StreamPartitioning | None = None

    @classmethod
    def from_lfta(cls, lfta: Lfta, interface: str, *, is_latent: bool = False) -> StreamSpec:
        """Return the stream that ``lfta`` writes for ``interface``."""
        return cls(
            lfta.stream(interface),
            tuple((column.name, column.ordering.direction) for column in lfta.schema.temporal),
            lfta.epoch,
            next(
                (p.name for p in lfta.partials if p.op is PartialOp.COUNT and p.argument is None),
                None,
            ),
            is_latent=is_latent and not lfta.is_aggregation,
            # Rows of a selection are answers in the order of their packets.
            partitioning=lfta.partitioning if lfta.is_aggregation else None,
        )


@dataclass(frozen=True, slots=True)
class BatchLimits:
    """Limits at which an open batch is sealed although no punctuation requires it.

    Attributes:
        rows: rows of one batch.
        size_bytes: bytes of one batch in memory.
        open_bytes: bytes of the open batches of all streams together; beyond it the largest batch
            is sealed.
    """

    rows: int = 1 << 20
    size_bytes: int = 64 << 20
    open_bytes: int = 128 << 20


@dataclass(frozen=True, slots=True)
class TupleRows:
    """Tuples and the extent of each of their temporal columns."""

    batch: pa.RecordBatch
    extents: tuple[Extent, ...]

    @property
    def rows(self) -> int:
        """Number of rows."""
        return int(self.batch.num_rows)

    @property
    def size_bytes(self) -> int:
        """Bytes of the rows in memory."""
        return int(self.batch.nbytes)


@dataclass(frozen=True, slots=True)
class WrittenRows:
    """Tuples that are already written to a segment which is not sealed yet.

    Each of their temporal columns has a single value, so that no punctuation cuts them.

    Attributes:
        packets: number of packets that they stand for; None if it is unknown.
    """

    segment: GrowingSegment
    rows: int
    size_bytes: int
    extents: tuple[Extent, ...]
    packets: int | None = None


Part = TupleRows | WrittenRows


def _keep_in_memory(_rows: TupleRows) -> WrittenRows | None:
    return None


class OpenBatch:
    """The tuples of one stream that are in no sealed segment yet, in order of arrival.

    Args:
        spec: the stream.
        write: writes rows that will not be cut again, while they are in a near cache; returns None
            if they must wait in memory.

    Attributes:
        rows: number of rows.
        size_bytes: bytes in memory, close to those of an uncompressed segment.
    """

    def __init__(
        self, spec: StreamSpec, write: Callable[[TupleRows], WrittenRows | None] = _keep_in_memory
    ) -> None:
        self._write = write
        self._directions = dict(spec.temporal)
        self._epoch = spec.epoch
        self._is_latent = spec.is_latent
        self._parts: list[Part] = []
        self.rows = 0
        self.size_bytes = 0

    def add(self, batch: pa.RecordBatch, extents: tuple[Extent, ...]) -> None:
        """Add tuples by writing or copying them; the memory of ``batch`` can then be reused.

        Rows of the newest epoch are separated from older ones now, while they are in a cache,
        because a punctuation will separate them later.
        """
        if not batch.num_rows:
            return
        part = TupleRows(batch, extents)
        epoch = None if self._epoch is None else _extent(part, self._epoch)
        if epoch is None or epoch.least == epoch.greatest:
            self._add(self._written(part) or _copied(part))
        else:
            is_older = _values(batch, epoch.column) < epoch.greatest
            for copy in partition(batch, is_older):
                rows = self._measured(copy)
                self._add(self._written(rows) or rows)

    def _written(self, part: TupleRows) -> WrittenRows | None:
        is_one = all(extent.least == extent.greatest for extent in part.extents)
        return self._write(part) if is_one else None

    def _add(self, part: Part) -> None:
        self._parts.append(part)
        self.rows += part.rows
        self.size_bytes += part.size_bytes

    def take_all(self) -> list[Part]:
        """Remove and return all parts."""
        taken = self._parts
        self._replace([])
        return taken

    def take_passed(self, punctuations: Sequence[Punctuation]) -> list[list[Part]]:
        """Remove and return the rows that the punctuations pass.

        For each punctuation in turn, the rows below its bound (above, for a decreasing column) make
        one result, so that each result is on one side of each punctuation that cut it. The rows
        that stay are on the allowed side of all: sealing them later breaks no promise.

        Rows of a selection are answers: of these, rows at a bound do not stay, but only rows beyond
        one.
        """
        if self._is_latent:
            return [self.take_all()] if self._parts else []
        results = []
        for punctuation in punctuations:
            column = punctuation.column.removeprefix("-")
            if column in self._directions:
                is_falling = column != punctuation.column
                passed = self._take(column, -punctuation.bound if is_falling else punctuation.bound)
                if passed:
                    results.append(passed)
        if self._epoch is None and self._parts and (reached := self._take_reached(punctuations)):
            results.append(reached)
        return results

    def _take_reached(self, punctuations: Sequence[Punctuation]) -> list[Part]:
        """Remove and return the rows that are beyond no bound."""
        reached = self._parts
        kept: list[Part] = []
        for punctuation in punctuations:
            column = punctuation.column.removeprefix("-")
            if column in self._directions:
                next_bound = punctuation.bound + 1
                bound = next_bound if column == punctuation.column else -next_bound
                inside: list[Part] = []
                for part in reached:
                    self._cut(part, column, bound, inside, kept)
                reached = inside
        if reached:
            self._replace(kept)
        return reached

    def _take(self, column: str, bound: int) -> list[Part]:
        """Remove and return the rows on the far side of ``bound``."""
        passed: list[Part] = []
        kept: list[Part] = []
        for part in self._parts:
            self._cut(part, column, bound, passed, kept)
        if passed:
            self._replace(kept)
        return passed

    def take_for_size(self) -> list[list[Part]]:
        """Remove and return enough rows to be small again, those of the newest epoch apart.

        The newest epoch is the one that the next punctuation may cut off; it stays open unless it
        has more than half of the rows.
        """
        if self._epoch is None or not self._parts:
            return [self.take_all()]
        rows = self.rows
        passed = self._take(self._epoch, self._newest(self._epoch))
        older = [passed] if passed else []
        return [*older, self.take_all()] if 2 * self.rows > rows else older

    def _newest(self, column: str) -> int:
        extents = [_extent(part, column) for part in self._parts]
        if self._directions[column] is Direction.DECREASING:
            return min(extent.least for extent in extents)
        return max(extent.greatest for extent in extents)

    def _cut(
        self,
        part: Part,
        column: str,
        bound: int,
        passed: list[Part],
        kept: list[Part],
    ) -> None:
        extent = _extent(part, column)
        is_falling = self._directions[column] is Direction.DECREASING
        if is_falling:
            some, every = extent.greatest > bound, extent.least > bound
        else:
            some, every = extent.least < bound, extent.greatest < bound
        if not some:
            kept.append(part)
        elif every or isinstance(part, WrittenRows):
            passed.append(part)
        else:
            values = _values(part.batch, column)
            is_passed = values > bound if is_falling else values < bound
            for side, batch in zip((passed, kept), partition(part.batch, is_passed), strict=True):
                side.append(self._measured(batch))

    def _measured(self, batch: pa.RecordBatch) -> TupleRows:
        return TupleRows(batch, tuple(_measure(batch, column) for column in self._directions))

    def _replace(self, parts: list[Part]) -> None:
        self._parts = parts
        self.rows = sum(part.rows for part in parts)
        self.size_bytes = sum(part.size_bytes for part in parts)


def _copied(part: TupleRows) -> TupleRows:
    # Concatenation copies as soon as there are two, even when one of them is empty.
    return TupleRows(pa.concat_batches([part.batch, part.batch.slice(0, 0)]), part.extents)


def partition(batch: pa.RecordBatch, is_first: NDArray[np.bool_]) -> list[pa.RecordBatch]:
    """Return copies of the rows for which ``is_first`` holds and of the others, each in order."""
    order = np.concatenate((np.flatnonzero(is_first), np.flatnonzero(~is_first)))
    first = int(np.count_nonzero(is_first))
    whole = reordered(batch, order)
    return [whole.slice(0, first), whole.slice(first)]


def combined(parts: Sequence[Part | Batch]) -> tuple[Extent, ...]:
    """Return the extents of several parts together."""
    first, *_ = parts
    return tuple(
        Extent(
            extent.column,
            min(part.extents[i].least for part in parts),
            max(part.extents[i].greatest for part in parts),
        )
        for i, extent in enumerate(first.extents)
    )


def _extent(part: Part, column: str) -> Extent:
    return next(extent for extent in part.extents if extent.column == column)


def _measure(batch: pa.RecordBatch, column: str) -> Extent:
    values = _values(batch, column)
    return Extent(column, int(values.min()), int(values.max()))


def _values(batch: pa.RecordBatch, column: str) -> NDArray[Any]:
    """Return a temporal column as an array of numpy: Arrow's functions take 30 ms to load."""
    values: NDArray[Any] = batch[column].to_numpy(zero_copy_only=False)
    return values
