"""The layout of a table for a width: a row on a line, long texts folded, or a value on each line.

No layout shortens a value. In the order of preference:

========== =========================================================================================
grid       a row is a line
folded     free text that is too long continues on the next lines, within its column
vertical   each column of a row has a line of its own: the name and the value
========== =========================================================================================

Folding is chosen only while it takes no more lines than the vertical layout.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from gscope.cli.sinks.table_cells import HANGING, cell_len

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

GAP = 2
"""Spaces between columns."""

_LEAST_FOLDED = 16
"""Cells that free text has at least, before it is folded."""


@dataclass(frozen=True, slots=True)
class TableColumn:
    """What the layout knows of a column.

    Attributes:
        name: its heading.
        is_right: whether values stand at the right, as numbers do.
        may_fold: whether a value may continue on the next line: free text, not an address or time.
    """

    name: str
    is_right: bool
    may_fold: bool


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows of one answer are laid out.

    Attributes:
        needed: for each column the cells of its widest value or its name so far.
        widths: the cells of each column; None in the vertical layout.
        limit: the cells of a line; None for no limit.
    """

    needed: tuple[int, ...]
    widths: tuple[int, ...] | None
    limit: int | None


def first_layout(
    columns: Sequence[TableColumn], lengths: Sequence[NDArray[np.int64]], limit: int | None
) -> Layout:
    """Return the layout for the first rows of an answer.

    Args:
        columns: the columns.
        lengths: for each column the cells of each value.
        limit: the cells of a line; None for no limit.
    """
    needed = _needed([cell_len(column.name) for column in columns], lengths)
    widths = _widths(columns, needed, limit)
    if widths is not None and _lines(lengths, widths) > _vertical_lines(lengths):
        widths = None
    return Layout(needed, widths, limit)


def next_layout(
    before: Layout,
    columns: Sequence[TableColumn],
    lengths: Sequence[NDArray[np.int64]],
    limit: int | None,
) -> Layout:
    """Return the layout for further rows: the same if they fit.

    A column that must grow gets some more cells than it needs now, so that a counter that rises, or
    the next longer address, does not change the widths again. A vertical layout stays, unless the
    limit has changed.
    """
    needed = _needed(before.needed, lengths)
    if limit == before.limit and (before.widths is None or needed == before.needed):
        return before
    roomy = tuple(
        now if now == then else now + max(2, now // 4)
        for now, then in zip(needed, before.needed, strict=True)
    )
    if before.widths is not None and _total(roomy) <= (limit or _total(roomy)):
        return Layout(roomy, roomy, limit)
    widths = _widths(columns, needed, limit)
    return Layout(needed, widths, limit)


def _needed(least: Sequence[int], lengths: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    return tuple(
        max(cells, int(each.max(initial=0))) for cells, each in zip(least, lengths, strict=True)
    )


def _widths(
    columns: Sequence[TableColumn], needed: tuple[int, ...], limit: int | None
) -> tuple[int, ...] | None:
    """Return widths that fit: the widest free texts share what remains; None if nothing fits."""
    if limit is None:
        return needed
    widths = list(needed)
    folds = [place for place, column in enumerate(columns) if column.may_fold]
    least = [max(_LEAST_FOLDED, cell_len(column.name)) for column in columns]
    while (excess := _total(widths) - limit) > 0:
        wide = [place for place in folds if widths[place] > least[place]]
        if not wide:
            return None
        widest = max(wide, key=lambda place: widths[place])
        others = [widths[place] for place in wide if widths[place] < widths[widest]]
        spare = widths[widest] - max([least[widest], *others])
        widths[widest] -= max(1, min(excess, spare))
    return tuple(widths)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _lines(lengths: Sequence[NDArray[np.int64]], widths: Sequence[int]) -> int:
    """Return the number of lines of these rows in columns of ``widths``."""
    lines = np.ones(len(lengths[0]) if lengths else 0, np.int64)
    for cells, width in zip(lengths, widths, strict=True):
        if width > HANGING:
            further = -(-np.maximum(cells - width, 0) // (width - HANGING))
            lines = np.maximum(lines, 1 + further)
    return int(lines.sum())


def _vertical_lines(lengths: Sequence[NDArray[np.int64]]) -> int:
    return (1 + len(lengths)) * (len(lengths[0]) if lengths else 0)
