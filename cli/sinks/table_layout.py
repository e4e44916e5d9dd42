"""The layout of a table for a width: a row on a line, long texts folded, or a value on each line.

No layout shortens a value. In the order of preference:

========== =========================================================================================
grid       a row is a line
close      a row is a line: one space between columns, and headings of several lines
folded     free text that is too long continues on the next lines, within its column
vertical   each column of a row has a line of its own: the name and the value
========== =========================================================================================

Folding is chosen only while it takes no more lines than the vertical layout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np

from gscope.cli.sinks.table_cells import HANGING, cell_len
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_GAP, _NARROW_GAP = 2, 1
"""Spaces between columns, and where they would not fit otherwise."""

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
class Grid:
    """Columns beside each other.

    Attributes:
        widths: the cells of each column.
        gap: the spaces between columns.
    """

    widths: tuple[int, ...]
    gap: int

    @property
    def total(self) -> int:
        """The cells of a line."""
        return sum(self.widths) + self.gap * (len(self.widths) - 1)


@dataclass(frozen=True, slots=True)
class Layout:
    """How rows of one answer are laid out.

    Attributes:
        needed: for each column the cells of its widest value so far.
        grid: the columns; None in the vertical layout.
        limit: the cells of a line; None for no limit.
    """

    needed: tuple[int, ...]
    grid: Grid | None
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
    needed = _needed([0] * len(columns), lengths)
    grid = _grid(columns, needed, limit)
    if grid is not None and _lines(lengths, grid.widths) > _vertical_lines(lengths):
        grid = None
    return Layout(needed, grid, limit)


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
    if limit == before.limit and (before.grid is None or _has_room(before, columns, needed)):
        return Layout(needed, before.grid, limit)
    roomy = tuple(
        now if now == then else now + max(2, now // 4)
        for now, then in zip(needed, before.needed, strict=True)
    )
    grid = Grid(_natural(columns, roomy), _GAP)
    if before.grid is not None and (limit is None or grid.total <= limit):
        return Layout(needed, grid, limit)
    return Layout(needed, _grid(columns, needed, limit), limit)


def name_parts(name: str) -> list[str]:
    """Return the parts into which a heading may be divided: ``dest`` and ``Port``."""
    return re.findall(r"[^_]+?(?=(?<=[a-z])[A-Z]|_|$)_*|_+", name) or [name]


def _has_room(before: Layout, columns: Sequence[TableColumn], needed: Sequence[int]) -> bool:
    """Return whether values fit; all free text does once some of it was folded."""
    assert before.grid is not None
    widths = before.grid.widths
    is_folding = any(then > width for then, width in zip(before.needed, widths, strict=True))
    return all(
        cells <= width or (column.may_fold and is_folding)
        for cells, width, column in zip(needed, widths, columns, strict=True)
    )


def _needed(least: Sequence[int], lengths: Sequence[NDArray[np.int64]]) -> tuple[int, ...]:
    return tuple(
        max(cells, int(each.max(initial=0))) for cells, each in zip(least, lengths, strict=True)
    )


def _grid(columns: Sequence[TableColumn], needed: Sequence[int], limit: int | None) -> Grid | None:
    """Return columns that fit; None if nothing fits."""
    natural = _natural(columns, needed)
    parted = tuple(
        max([cells, *map(cell_len, name_parts(column.name))])
        for cells, column in zip(needed, columns, strict=True)
    )
    choices = [Grid(widths, gap) for widths in (natural, parted) for gap in (_GAP, _NARROW_GAP)]
    for grid in choices:
        if limit is None or grid.total <= limit:
            return grid
    assert limit is not None
    for grid in (choices[0], choices[-1]):
        if (narrowed := _narrowed(grid, columns, limit)) is not None:
            return narrowed
    return None


def _natural(columns: Sequence[TableColumn], needed: Sequence[int]) -> tuple[int, ...]:
    return tuple(
        max(cells, cell_len(column.name)) for cells, column in zip(needed, columns, strict=True)
    )


def _narrowed(grid: Grid, columns: Sequence[TableColumn], limit: int) -> Grid | None:
    """Return columns that fit: the widest free texts share what remains; None if they cannot."""
    widths = list(grid.widths)
    folds = [place for place, column in enumerate(columns) if column.may_fold]
    least = [max(_LEAST_FOLDED, cell_len(column.name)) for column in columns]
    while (excess := Grid(tuple(widths), grid.gap).total - limit) > 0:
        wide = [place for place in folds if widths[place] > least[place]]
        if not wide:
            return None
        widest = max(wide, key=lambda place: widths[place])
        others = [widths[place] for place in wide if widths[place] < widths[widest]]
        spare = widths[widest] - max([least[widest], *others])
        widths[widest] -= max(1, min(excess, spare))
    return Grid(tuple(widths), grid.gap)


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
