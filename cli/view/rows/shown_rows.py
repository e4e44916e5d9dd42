"""The rows of an epoch that pass the filter, in the chosen order.

They are given as far as the screen needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.view.rows.ordering import first_rows
from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.cli.view.rows.columns import Answer
    from gscope.cli.view.rows.filters import Filter
    from gscope.cli.view.rows.history import Frozen
    from gscope.cli.view.rows.ordering import Sorting

_AT_ONCE = 256
"""The least number of rows that are sorted beyond the screen: scrolling sorts seldom."""


@dataclass(frozen=True, slots=True)
class _Chosen:
    """What the rows depend on."""

    query: str
    number: int
    rows: int
    filter: str
    sorting: Sorting | None


class ShownRows:
    """The rows that are shown; nothing is computed again until something has changed."""

    def __init__(self) -> None:
        self._chosen: _Chosen | None = None
        self._passing = pa.table({})
        self._places: NDArray[np.int64] | None = None
        self._order: NDArray[np.int64] = np.zeros(0, np.int64)

    @property
    def number(self) -> int:
        """The number of rows that pass the filter."""
        return int(self._passing.num_rows)

    @property
    def passing(self) -> pa.Table:
        """The rows that pass the filter, in the order of delivery."""
        return self._passing

    def choose(
        self, answer: Answer, shown: Frozen, wanted: Filter, sorting: Sorting | None
    ) -> None:
        """Choose an epoch, a filter and an order."""
        chosen = _Chosen(
            answer.query, shown.epoch.number, shown.table.num_rows, wanted.text, sorting
        )
        before, self._chosen = self._chosen, chosen
        if before == chosen:
            return
        self._order = np.zeros(0, np.int64)
        is_same = before is not None and (before.query, before.number, before.rows) == (
            chosen.query,
            chosen.number,
            chosen.rows,
        )
        if is_same and before is not None and before.filter == chosen.filter:
            return
        self._passing, self._places = shown.table, None
        if wanted.terms:
            self._places = np.flatnonzero(wanted.mask(answer, shown.table))
            self._passing = shown.table.take(pa.array(self._places))

    def page(self, answer: Answer, top: int, count: int) -> pa.Table:
        """Return the rows from the place ``top`` on, at most ``count``."""
        needed = min(top + count, self.number)
        if len(self._order) < needed:
            self._order = self._sorted(answer, min(self.number, 2 * needed + _AT_ONCE))
        return self._passing.take(pa.array(self._order[top:needed]))

    def place(self, answer: Answer, row: int) -> int:
        """Return the place of the row ``row`` of the order among all rows of the epoch."""
        self.page(answer, row, 1)
        passing = int(self._order[row])
        return passing if self._places is None else int(self._places[passing])

    def all(self, answer: Answer) -> pa.Table:
        """Return all rows that pass the filter, in order."""
        return self._passing.take(pa.array(self._sorted(answer, self.number)))

    def greatest(self, column: str) -> float:
        """Return the greatest value of a number; 0 if there is none above it."""
        if self.number == 0:
            return 0.0
        return max(0.0, float(pc.max(self._passing[column]).as_py() or 0))

    def _sorted(self, answer: Answer, count: int) -> NDArray[np.int64]:
        sorting = None if self._chosen is None else self._chosen.sorting
        if sorting is None:
            return first_rows(self._passing, None, count, is_descending=False)
        column = answer[sorting.column]
        return first_rows(self._passing, column, count, is_descending=sorting.is_descending)
