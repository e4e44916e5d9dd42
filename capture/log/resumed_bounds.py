"""Promises of an earlier writer of a log, which later rows must keep."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.queries.streams.messages import Extent, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa


class ResumedBounds:
    """The promises of one stream that were made before its log was opened.

    A daemon that was killed knew the values that declared orders had reached. Its successor has to
    learn them again, and its first rows may be below the bounds that were promised.

    Args:
        promises: punctuations of the stream's last heartbeat.

    Attributes:
        late_tuples: rows discarded so far because they break a promise.
    """

    def __init__(self, promises: Iterable[Punctuation]) -> None:
        self.late_tuples = 0
        self._bounds = {promise.column: promise.bound for promise in promises}

    def raised(self, promises: Iterable[Punctuation]) -> tuple[Punctuation, ...]:
        """Return ``promises`` with no bound below the one made before."""
        bounds = {promise.column: promise.bound for promise in promises}
        raised = {**self._bounds, **bounds}
        return tuple(
            Punctuation(column, max(bound, self._bounds.get(column, bound)))
            for column, bound in raised.items()
        )

    def kept(
        self, batch: pa.RecordBatch, extents: tuple[Extent, ...]
    ) -> tuple[pa.RecordBatch, tuple[Extent, ...]]:
        """Return the rows that keep the promises, and their extents; count the others."""
        for extent in extents:
            rising = self._bounds.get(extent.column)
            if rising is not None and extent.least < rising:
                return self._filtered(batch, extents)
            falling = self._bounds.get(f"-{extent.column}")
            if falling is not None and extent.greatest > -falling:
                return self._filtered(batch, extents)
        return batch, extents

    def _filtered(
        self, batch: pa.RecordBatch, extents: tuple[Extent, ...]
    ) -> tuple[pa.RecordBatch, tuple[Extent, ...]]:
        import pyarrow.compute as pc

        rows = batch.num_rows
        for extent in extents:
            column = extent.column
            if (rising := self._bounds.get(column)) is not None:
                batch = batch.filter(pc.greater_equal(batch[column], rising))
            if (falling := self._bounds.get(f"-{column}")) is not None:
                batch = batch.filter(pc.less_equal(batch[column], -falling))
        self.late_tuples += rows - batch.num_rows
        return batch, tuple(_measured(batch, extent) for extent in extents)


def _measured(batch: pa.RecordBatch, extent: Extent) -> Extent:
    if not batch.num_rows:
        return extent
    import pyarrow.compute as pc

    bounds = pc.min_max(batch[extent.column])
    return Extent(extent.column, bounds["min"].as_py(), bounds["max"].as_py())
