"""The state of ``sum_of_dups``: the sets of values that occurred in each group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.running.vectors import Vector, never_null

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

_MAX_CODE = 1 << 62


class SumOfDups:
    """``sum_of_dups``; see ``accumulators.Accumulator``.

    Each pair (group, value) of the step or the state has a number. A pair has occurred before if
    its mark equals the group's present life.
    """

    def __init__(self, groups: int, count: Vector, values: pa.Array, parents: Array) -> None:
        """Create a state without pairs.

        Args:
            groups: the number of groups.
            count: for each row, the number of values.
            values: for each row, the list of its distinct values.
            parents: for each row, the place of its group.
        """
        self._groups = groups
        self._count = count
        self._total = np.zeros(groups, np.int64)
        self._life = np.zeros(groups, np.int64)
        self._offsets = values.offsets.to_numpy() - values.offsets[0].as_py()
        self._pairs = _Pairs(_comparable(values.flatten()), _owners(parents, self._offsets))

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """Load what ``save`` returned."""
        self._total[places] = state[0].to_numpy()
        owners = _owners(places, state[1].offsets.to_numpy())
        self._pairs.add(state[1].flatten(), owners, self._life[owners])

    def begin(self, places: Array) -> None:
        """Start new lives of the groups, in which no value has occurred."""
        self._total[places] = 0
        self._life[places] += 1

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """Count values that occurred before, and mark the others."""
        if len(rows):
            # the rows of an epoch follow one another
            first, last = self._offsets[rows[0]], self._offsets[rows[-1] + 1]
            new = self._pairs.see(slice(first, last), self._life)
            self._total[live[at]] += self._count.values[rows]
            self._total -= np.bincount(new, minlength=self._groups)
        return never_null(self._total[live])

    def save(self, live: Array) -> list[pa.Array]:
        """Return the numbers of repetitions, and lists of the values that occurred."""
        position = np.full(self._groups, -1, np.int64)
        position[live] = np.arange(len(live))
        values, owners = self._pairs.seen(self._life)
        place = position[owners]
        kept = np.flatnonzero(place >= 0)
        # Arrow sorts small integers by counting, numpy by comparing
        order = pc.array_sort_indices(pa.array(place[kept])).to_numpy()
        sizes = np.bincount(place[kept], minlength=len(live))
        offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int32)
        lists = pa.ListArray.from_arrays(pa.array(offsets), values.take(pa.array(kept[order])))
        return [pa.array(self._total[live]), lists]


class _Pairs:
    """Pairs (owner, value), those of rows first; numbered once all are added."""

    def __init__(self, values: pa.Array, owners: Array) -> None:
        self._values = values
        self._owners = owners
        self._rows = len(values)
        self._lives = np.empty(0, np.int64)
        self._numbers: Array | None = None

    def add(self, values: pa.Array, owners: Array, lives: Array) -> None:
        """Add pairs that occurred before, in these lives of their owners."""
        self._values = pa.concat_arrays([self._values, values.cast(self._values.type)])
        self._owners = np.concatenate([self._owners, owners])
        self._lives = lives

    def see(self, rows: slice, lives: Array) -> Array:
        """Mark the pairs of some rows; return the owner of each pair that was new in this life."""
        numbers = self._numbered()[rows]
        owners = self._owners[rows]
        is_new = self._mark[numbers] != lives[owners]
        numbers, owners = numbers[is_new], owners[is_new]
        # a pair may occur twice in these rows: the last one to write its place counts
        own = np.arange(len(numbers))
        self._last[numbers] = own
        counts = self._last[numbers] == own
        self._mark[numbers] = lives[owners]
        new: Array = owners[counts]
        return new

    def seen(self, lives: Array) -> tuple[pa.Array, Array]:
        """Return values and owners of pairs that occurred in the present lives of the owners."""
        numbers = self._numbered()
        # any place of each pair serves
        example = np.zeros(len(self._mark), np.int64)
        example[numbers] = np.arange(len(numbers))
        owners = self._owners[example]
        kept = np.flatnonzero(self._mark == lives[owners])
        return self._values.take(pa.array(example[kept])), owners[kept]

    def _numbered(self) -> Array:
        if self._numbers is None:
            coded = pa.array(self._codes()).dictionary_encode()
            self._numbers = coded.indices.to_numpy().astype(np.int64)
            self._mark = np.full(len(coded.dictionary), -1, np.int64)
            self._last = np.empty(len(coded.dictionary), np.int64)
            self._mark[self._numbers[self._rows :]] = self._lives
        return self._numbers

    def _codes(self) -> Array:
        """Return an integer for each pair, equal only for equal pairs."""
        if pa.types.is_int64(self._values.type) and len(self._values):
            values = self._values.to_numpy()
            least, greatest = int(values.min()), int(values.max())
            span = greatest - least + 1
            if span * (int(self._owners.max()) + 1) < _MAX_CODE:
                narrow: Array = self._owners * span + (values - least)
                return narrow
        coded = self._values.dictionary_encode()
        codes = coded.indices.to_numpy().astype(np.int64)
        made: Array = self._owners * max(len(coded.dictionary), 1) + codes
        return made


def _owners(places: Array, offsets: Array) -> Array:
    """Return, for each value of lists, the place of its list."""
    return np.repeat(places, np.diff(offsets))


def _comparable(values: pa.Array) -> pa.Array:
    """Return ``values`` such that those that are equal in queries are equal in bits."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.to_numpy(zero_copy_only=False) + 0.0
    return pa.array(np.where(np.isnan(numbers), np.nan, numbers))
