"""Groups whose different values are counted: sums over the live rows of each, one row a value.

Where an aggregate counts different values, the value is a part of the low-level key. A value is in
the window while its low-level group is live, so a group's count changes only when one comes or
leaves, and its sums with each row that does. A window then costs its groups, not their values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.groups import number_groups
from gscope.engine.windows.layout import PRESENCE, Numbers
from gscope.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout
    from gscope.engine.windows.pieces import Piece

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class Counted:
    """What is counted.

    Attributes:
        keys: the low-level keys of a group.
        value: the low-level key whose values are counted.
        tuples: the partial that counts tuples, of which those with a value are added; None if they
            are not needed.
    """

    keys: tuple[str, ...]
    value: str
    tuples: str | None

    def distinct(self, layout: Layout) -> int:
        """Return the column of the matrix with the number of different values."""
        return layout.columns

    def present(self, layout: Layout) -> int:
        """Return the column of the matrix with the number of tuples that have a value."""
        return layout.columns + 1


class CountedGroups:
    """The groups in the window; see ``Counted``.

    Args:
        counted: what is counted.
        layout: the numbers of a low-level group; none is stacked or an XOR.
        keys: the low-level keys, by place in the live table.

    Attributes:
        keys: the keys of all groups, by place here.
        live: the places of the groups in the window.
    """

    def __init__(self, counted: Counted, layout: Layout, keys: pa.Table) -> None:
        own = keys.select(counted.keys)
        self._group_of, count = number_groups(own.columns, keys.num_rows)
        first = np.empty(count, np.int64)
        first[self._group_of[::-1]] = np.arange(keys.num_rows)[::-1]
        self.keys = own.take(pa.array(first)).combine_chunks() if counted.keys else own
        valid = keys[counted.value].combine_chunks().is_valid()
        self._has_value = valid.to_numpy(zero_copy_only=False)
        self._tuples = None if counted.tuples is None else layout.added[counted.tuples]
        self._distinct, self._present = counted.distinct(layout), counted.present(layout)
        self._columns = [np.zeros(count, np.int64) for _ in range(layout.columns + 2)]
        self.live = np.empty(0, np.int64)

    def enter(self, places: Array, numbers: Numbers, new: Array) -> None:
        """Add rows at places of the live table, which has made ``new`` live."""
        groups = self._group_of[places]
        fresh = np.unique(groups[self._columns[PRESENCE][groups] == 0])
        if len(fresh):
            self.live = np.concatenate([self.live, fresh])
        self._add(places, groups, numbers, 1)
        np.add.at(self._columns[self._distinct], self._group_of[new[self._has_value[new]]], 1)

    def leave(self, piece: Piece) -> None:
        """Subtract the rows of a piece."""
        self._add(piece.places, self._group_of[piece.places], piece.numbers, -1)

    def drop(self, dead: Array) -> None:
        """Forget the values at places of the live table that are no longer live."""
        gone = self._group_of[dead[self._has_value[dead]]]
        np.subtract.at(self._columns[self._distinct], gone, 1)
        self.live = self.live[self._columns[PRESENCE][self.live] != 0]

    def clear(self) -> None:
        """Forget all groups."""
        for column in self._columns:
            column[self.live] = 0
        self.live = self.live[:0]

    def numbers(self) -> Numbers:
        """Return the numbers of the groups in the window."""
        sums = np.stack([column.take(self.live) for column in self._columns], axis=1)
        return Numbers(sums, np.empty((len(self.live), 0), np.int64), [])

    def _add(self, places: Array, groups: Array, numbers: Numbers, sign: int) -> None:
        for column, values in zip(self._columns, numbers.sums.T, strict=False):
            np.add.at(column, groups, sign * values)
        if self._tuples is not None:
            chosen = self._has_value[places]
            values = numbers.sums[chosen, self._tuples]
            np.add.at(self._columns[self._present], groups[chosen], sign * values)
