"""Pieces: the rows of groups between two neighbouring edges of a window, each group at most once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.queries.plan.windows.columns import SLICE

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
    codes = rank_of[coded.indices.to_numpy()] * groups + places
    numbers = layout.encode(rows)
    codes, numbers = _once(codes, numbers, layout)
    places = codes % groups
    starts = np.searchsorted(codes, np.arange(len(labels) + 1) * groups).tolist()
    for label, first, end in zip(labels.tolist(), starts[:-1], starts[1:], strict=True):
        yield Piece(label, places[first:end], numbers.part(first, end))


def _once(codes: Array, numbers: Numbers, layout: Layout) -> tuple[Array, Numbers]:
    """Return the codes in ascending order, each once, and what their rows fold to."""
    steps = np.diff(codes)
    if len(steps) == 0 or steps.min() > 0:
        return codes, numbers
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    is_first = np.ones(len(ordered), np.bool_)
    is_first[1:] = ordered[1:] != ordered[:-1]
    if is_first.all():
        return ordered, numbers.take(order)
    starts = np.flatnonzero(is_first)
    return ordered[starts], layout.reduce(numbers, order, starts)
