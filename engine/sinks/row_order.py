"""The order of the rows of an answer: by all their values, and by nothing else.

Rows are sorted by the temporal columns (descending where these decrease), then by those of ORDER
BY, then in ascending order by all other columns from left to right. NULL comes first, except where
ORDER BY puts it last; text and addresses are compared by their bytes; -0.0 is less than 0.0, and
NaN greater than any other number. Rows that are equal in all columns are identical. So the order,
and with it the choice of the first rows, depends on the rows alone, not on the size of batches, the
number of tasks or the time at which a step began.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.sinks.arrow_integers import arrow_integers
from gscope.engine.sinks.order_words import OrderWords, sorted_places
from gscope.queries.plan.row_order import SortKey, is_hidden

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence


def in_order(table: pa.Table, order: Sequence[str] = (), keys: Sequence[SortKey] = ()) -> pa.Table:
    """Return the rows of ``table`` in the order of answers.

    Args:
        table: the rows.
        order: the temporal columns, ``-f`` for a decreasing column f.
        keys: the columns by which rows are ordered next.
    """
    if table.num_rows < 2:
        return table
    first = [SortKey(n.removeprefix("-"), n.startswith("-"), has_nulls_first=True) for n in order]
    named = {key.name for key in (*first, *keys)}
    others = [
        SortKey(name, has_nulls_first=True)
        for name in table.column_names
        if name not in named and not is_hidden(name)
    ]
    places = sorted_places(_columns(table, (*first, *keys, *others)), table.num_rows)
    return table.take(arrow_integers(places))


def first_rows(
    table: pa.Table, keys: Sequence[SortKey], limit: int, epoch: str | None = None
) -> pa.Table:
    """Return the first rows of each epoch.

    A few of many rows are found without sorting the others.

    Args:
        table: the rows.
        keys: the columns by which rows are ordered, all visible columns among them.
        limit: the number of rows to keep of each epoch.
        epoch: the column of the epoch, the first of ``keys``; None if all rows are of one epoch.
    """
    count = table.num_rows
    if count <= limit:
        return table
    if epoch is not None and pc.count_distinct(table[epoch], mode="all").as_py() > 1:
        places = sorted_places(_columns(table, keys), count)
        epochs = _flat(table[epoch]).fill_null(0).to_numpy()[places]
        begins = np.flatnonzero(np.append(True, epochs[1:] != epochs[:-1]))
        numbers = np.arange(count) - np.repeat(begins, np.diff(np.append(begins, count)))
        return table.take(arrow_integers(places[numbers < limit]))
    word, _ = OrderWords(_columns(table, keys)).next(np.zeros(count, np.uint64))
    greatest = np.partition(word, limit - 1)[limit - 1]
    table = table.take(arrow_integers(np.flatnonzero(word <= greatest)))
    places = sorted_places(_columns(table, keys), table.num_rows)
    return table.take(arrow_integers(places[:limit]))


def _columns(table: pa.Table, keys: Sequence[SortKey]) -> Iterator[tuple[pa.Array, SortKey]]:
    """Yield the columns of ``keys``, each with its key."""
    return ((_flat(table[key.name]), key) for key in keys)


def _flat(column: pa.ChunkedArray) -> pa.Array:
    """Return a column in one piece, of plain values."""
    joined = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(joined, pa.ChunkedArray):
        joined = joined.chunk(0) if joined.num_chunks else pa.array([], joined.type)
    return joined.dictionary_decode() if pa.types.is_dictionary(joined.type) else joined
