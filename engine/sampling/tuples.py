"""The tuples of a step in order: from segments of the log, or from rows of another query."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import arrow_type
from gscope.engine.sampling.values import SampleRows
from gscope.engine.sinks.row_order import in_order as rows_in_order
from gscope.engine.storage.transfer.access import read_parquet
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.queries.expressions.expressions import Column, walk
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.texts import as_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.sampling_operator import SampleNode


_EPOCH = "$epoch"
"""The column of the window while rows are put in order."""

PART_TUPLES = 1_000_000
"""The tuples of a window, about, that a task holds in memory, some 200 bytes for each."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file with tuples; a step reads some of its windows.

    Attributes:
        path: the path of the file.
        low: windows below it are left out; -inf to read all.
        high: windows from it on are left out; +inf to read all.
        begins: the time of the first tuple at the earliest, by ``SampleNode.order``; None if it is
            unknown.
    """

    path: str
    low: Bound = NOTHING
    high: Bound = ENDED
    begins: int | None = None


def read_columns(node: SampleNode) -> list[Column]:
    """Return the input columns that the operator reads, each once."""
    read = [each.expression for each in (*node.keys, *node.sampling.values)]
    read += [each for each in (node.predicate, node.order) if each is not None]
    columns = {part.name: part for each in read for part in walk(each) if isinstance(part, Column)}
    return list(columns.values())


def read_tuples(node: SampleNode, segments: Sequence[Segment]) -> SampleRows:
    """Return the tuples of ``segments``.

    Of equal times, they keep the order in which they are given.
    """
    tables = [no_tuples(node), *(_read(node, segment) for segment in segments)]
    return in_order(node, pa.concat_tables(tables))


def read_parts(
    node: SampleNode, segments: Sequence[Segment], tuples: int = PART_TUPLES
) -> Iterator[SampleRows]:
    """Yield the tuples of ``segments`` in the order of ``read_tuples``.

    They come in parts of some ``tuples``. A part is larger where segments with as many tuples
    overlap in time. All tuples are one part if they have no time, or if a segment does not say when
    it begins.
    """
    begins = [segment.begins for segment in segments]
    if node.order is None or not is_divisible(node) or None in begins:
        yield read_tuples(node, segments)
        return
    waiting, ranks = no_tuples(node), np.zeros(0, np.int64)
    by_time = sorted(range(len(segments)), key=lambda rank: begins[rank] or 0)
    for number, rank in enumerate(by_time):
        table = _read(node, segments[rank])
        waiting = pa.concat_tables([waiting, table])
        ranks = np.append(ranks, np.full(table.num_rows, rank))
        if waiting.num_rows < tuples or number + 1 == len(by_time):
            continue
        times = SampleRows(node, waiting).vector(node.order).values
        is_complete = times < begins[by_time[number + 1]]
        if is_complete.any():
            done = pa.array(is_complete)
            yield in_order(node, waiting.filter(done), ranks[is_complete])
            waiting, ranks = waiting.filter(pa.array(~is_complete)), ranks[~is_complete]
    yield in_order(node, waiting, ranks)


def is_divisible(node: SampleNode) -> bool:
    """Return whether a window may be folded in parts.

    Texts and addresses have ranks in one only.
    """
    return not any(
        aggregate.type in (GsqlType.STRING, GsqlType.IP) for aggregate in node.sampling.aggregates
    )


def _read(node: SampleNode, segment: Segment) -> pa.Table:
    """Return the rows of a segment whose windows are read, texts decoded."""
    columns = read_columns(node)
    names = [column.name for column in columns]
    stored = read_parquet(segment.path, names)
    table = pa.table({c.name: _as_read(stored[c.name], c.type) for c in columns})
    return _within(node, table, segment)


def in_order(
    node: SampleNode, table: pa.Table, ranks: NDArray[np.int64] | None = None
) -> SampleRows:
    """Return the tuples of ``table`` that the operator folds, in order.

    Args:
        node: the operator.
        table: the columns that it reads. Tuples of packets are ordered by time, rows of another
            query as its answer is: by the window, then by all columns.
        ranks: what orders tuples of equal times; None for their places in ``table``.
    """
    if node.order is None:
        table = table.cast(no_tuples(node).schema)
        epochs = SampleRows(node, table).column(node.epoch_expression)
        placed = rows_in_order(table.append_column(_EPOCH, epochs), [_EPOCH])
        return SampleRows.of(node, placed.drop_columns(_EPOCH))
    times = SampleRows(node, table).vector(node.order).values
    if ranks is not None:
        table = table.take(pa.array(np.lexsort((ranks, times))))
    elif not np.all(times[1:] >= times[:-1]):
        table = table.take(pa.array(np.argsort(times, kind="stable")))
    return SampleRows.of(node, table)


def no_tuples(node: SampleNode) -> pa.Table:
    """Return the table that the operator reads, without tuples."""
    return pa.schema([(c.name, arrow_type(c.type)) for c in read_columns(node)]).empty_table()


def _within(node: SampleNode, table: pa.Table, segment: Segment) -> pa.Table:
    """Return the rows of the windows of ``segment``."""
    if (segment.low, segment.high) == (NOTHING, ENDED):
        return table
    epochs = SampleRows(node, table).vector(node.epoch_expression)
    kept = epochs.valid.copy()
    if segment.low != NOTHING:
        kept &= epochs.values >= segment.low
    if segment.high != ENDED:
        kept &= epochs.values < segment.high
    return table if kept.all() else table.filter(pa.array(kept))


def _as_read(column: pa.ChunkedArray, kind: GsqlType) -> pa.ChunkedArray:
    """Return a stored column in the type in which Spark emits it; the log holds texts as bytes."""
    wanted = arrow_type(kind)
    if column.type == wanted:
        return column
    if kind is not GsqlType.STRING:
        return column.cast(wanted)
    texts = as_text(column)
    return texts if isinstance(texts, pa.ChunkedArray) else pa.chunked_array([texts])
