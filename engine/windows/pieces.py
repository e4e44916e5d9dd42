"""Pieces: the rows of groups between two neighbouring edges of a window.

They have each group at most once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.queries.plan.windows.columns import SLICE
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout, Numbers
    from gscope.engine.windows.timeline import Timeline

    Array = NDArray[Any]

NUMBER = SLICE
"""The column of rows with the number of the slice."""


@dataclass(slots=True)
class Piece:
    """Some rows of one label, no two of the same group.

    Attributes:
        label: see ``Timeline``.
        places: the place of each row's group in the live table.
        numbers: the numbers of each row.
        younger: for each stacked value, what the rows of the same group in younger pieces of the
            front fold to; None while the piece is in the back.
    """

    label: int
    places: Array
    numbers: Numbers
    younger: list[Array] | None = None


def pieces_of(
    rows: pa.Table, places: Array, groups: int, timeline: Timeline, layout: Layout
) -> Iterator[Piece]:
    """Yield the pieces of rows in the order of their labels.

    Args:
        rows: the number of the slice and the partials of each row; a group may have several.
        places: the place of the group of each row.
        groups: the number of places.
        timeline: gives the labels.
        layout: gives the numbers of a row.
    """
    if not rows.num_rows:
        return
    coded = rows[NUMBER].combine_chunks().dictionary_encode()
    slices = coded.dictionary.to_numpy()
    order = np.argsort(slices)
    labels, ranks = np.unique(timeline.labels(slices[order]), return_inverse=True)
    rank_of = np.empty(len(slices), np.int64)
    rank_of[order] = ranks
    ranks, numbers = rank_of[coded.indices.to_numpy()], layout.encode(rows)
    if (ranks[1:] < ranks[:-1]).any():
        order = np.argsort(ranks, kind="stable")
        ranks, places, numbers = ranks[order], places[order], numbers.take(order)
    starts = np.searchsorted(ranks, np.arange(len(labels) + 1)).tolist()
    row_at = np.empty(groups, np.int64)
    for label, first, end in zip(labels.tolist(), starts[:-1], starts[1:], strict=True):
        yield _piece(label, places[first:end], numbers.part(first, end), layout, row_at)


def _piece(label: int, places: Array, numbers: Numbers, layout: Layout, row_at: Array) -> Piece:
    """Return the piece of some rows, those of the same place folded.

    ``row_at`` is memory for one number for each place.
    """
    each = np.arange(len(places))
    row_at[places] = each
    is_last = row_at[places] == each
    if is_last.all():
        return Piece(label, places, numbers)
    once = places[is_last]
    row_at[once] = np.arange(len(once))
    return Piece(label, once, layout.reduce(numbers, row_at[places], len(once)))
