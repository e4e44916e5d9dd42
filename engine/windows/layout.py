"""The numbers that a window keeps for each group, and the way from partial columns to them.

Counts and sums are columns of one matrix, so that slices come and leave with one operation for all
of them. Its first column is the presence: the number of pieces in the window in which the group has
a row. A partial that may be NULL has a column with the number of rows in which it is not.
Least and greatest values, OR and AND cannot be undone; they are stacked values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import arrow_type
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.queries.plan.program import Partial

    Array = NDArray[Any]

PRESENCE = 0
"""The column of the matrix with the number of pieces."""

_ADDED = (PartialOp.COUNT, PartialOp.SUM)
_SIGN = np.uint64(1 << 63)
_ALL_BUT_SIGN = np.int64(MAX_INT)


@dataclass(frozen=True, slots=True)
class Stacked:
    """A value that cannot be undone.

    Attributes:
        name: the column of the partial.
        fold: the fold of two arrays.
        reduce: folds rows into the values of groups, given the group of each row.
        nothing: the value that changes no other.
        width: the words of a value: 2 for addresses, whose first word is compared first.
        type: the type of the partial.
    """

    name: str
    fold: Callable[[Array, Array], Array]
    reduce: Callable[[Array, Array, Array], None]
    nothing: int
    width: int
    type: GsqlType

    def empty(self, count: int) -> Array:
        """Return the value of ``count`` groups without rows."""
        shape = count if self.width == 1 else (count, self.width)
        return np.full(shape, self.nothing, np.int64)


@dataclass(frozen=True, slots=True)
class Layout:
    """Where the numbers of each partial are.

    Attributes:
        partials: the partials, in order.
        added: for each COUNT and SUM its column of the matrix, by name.
        present: for each partial that may be NULL the column of its count, by name.
        xored: the names of the XOR partials, columns of a second matrix.
        stacked: the other partials.
        columns: the number of columns of the matrix.
    """

    partials: tuple[Partial, ...]
    added: dict[str, int]
    present: dict[str, int]
    xored: tuple[str, ...]
    stacked: tuple[Stacked, ...]
    columns: int

    @classmethod
    def of(cls, partials: Sequence[Partial]) -> Layout:
        """Return the layout of ``partials``."""
        added: dict[str, int] = {}
        present: dict[str, int] = {}
        columns = PRESENCE + 1
        for partial in partials:
            if partial.op in _ADDED:
                added[partial.name], columns = columns, columns + 1
            if partial.is_nullable:
                present[partial.name], columns = columns, columns + 1
        return cls(
            tuple(partials),
            added,
            present,
            tuple(p.name for p in partials if p.op is PartialOp.XOR),
            tuple(_stacked(p) for p in partials if p.op not in (*_ADDED, PartialOp.XOR)),
            columns,
        )

    def encode(self, table: pa.Table) -> Numbers:
        """Return the numbers of rows with a column for each partial, each row alone."""
        rows = table.num_rows
        sums = np.ones((rows, self.columns), np.int64)
        xors = np.empty((rows, len(self.xored)), np.int64)
        stacked = {each.name: each for each in self.stacked}
        made: dict[str, Array] = {}
        for partial in self.partials:
            name, column = partial.name, table[partial.name].combine_chunks()
            valid = None
            if column.null_count:
                valid = column.is_valid().to_numpy(zero_copy_only=False)
            nothing = stacked[name].nothing if name in stacked else 0
            words = to_words(column, partial.type)
            if valid is not None:
                words[~valid] = nothing
            if name in self.added:
                sums[:, self.added[name]] = words
            elif name in stacked:
                made[name] = words
            else:
                xors[:, self.xored.index(name)] = words
            if name in self.present and valid is not None:
                sums[:, self.present[name]] = valid
        return Numbers(sums, xors, [made[each.name] for each in self.stacked])

    def nothing(self, count: int) -> Numbers:
        """Return the numbers of ``count`` groups without rows."""
        return Numbers(
            np.zeros((count, self.columns), np.int64),
            np.zeros((count, len(self.xored)), np.int64),
            [each.empty(count) for each in self.stacked],
        )

    def reduce(self, rows: Numbers, groups: Array, count: int) -> Numbers:
        """Return the numbers of ``count`` groups of rows, given the group of each row."""
        made = self.nothing(count)
        made.sums[:, PRESENCE] = 1
        for place in range(PRESENCE + 1, self.columns):
            column = np.zeros(count, np.int64)
            np.add.at(column, groups, np.ascontiguousarray(rows.sums[:, place]))
            made.sums[:, place] = column
        for place in range(len(self.xored)):
            column = np.zeros(count, np.int64)
            np.bitwise_xor.at(column, groups, np.ascontiguousarray(rows.xors[:, place]))
            made.xors[:, place] = column
        for stacked, values, folded in zip(self.stacked, rows.stacked, made.stacked, strict=True):
            stacked.reduce(folded, groups, values)
        return made

    def column(self, name: str, numbers: Numbers) -> pa.Array:
        """Return the column of a partial of some groups."""
        partial = next(each for each in self.partials if each.name == name)
        mask = None
        if name in self.present:
            mask = numbers.sums[:, self.present[name]] == 0
        if name in self.added:
            words = np.ascontiguousarray(numbers.sums[:, self.added[name]])
        elif name in self.xored:
            words = np.ascontiguousarray(numbers.xors[:, self.xored.index(name)])
        else:
            place = [each.name for each in self.stacked].index(name)
            words = numbers.stacked[place]
        return from_words(words, partial.type, mask)


@dataclass(slots=True)
class Numbers:
    """The numbers of some rows or groups; see ``Layout``.

    Attributes:
        sums: the matrix of presence, counts and sums.
        xors: the matrix of XOR partials.
        stacked: the stacked values, in their order.
    """

    sums: Array
    xors: Array
    stacked: list[Array]

    def part(self, first: int, end: int) -> Numbers:
        """Return the rows between two positions."""
        return Numbers(
            self.sums[first:end], self.xors[first:end], [s[first:end] for s in self.stacked]
        )

    def take(self, places: Array) -> Numbers:
        """Return the rows at ``places``."""
        return Numbers(
            self.sums.take(places, axis=0),
            self.xors.take(places, axis=0),
            [each.take(places, axis=0) for each in self.stacked],
        )

    @classmethod
    def joined(cls, parts: Sequence[Numbers]) -> Numbers:
        """Return all rows of ``parts``, at least one, one part after the other."""
        if len(parts) == 1:
            return parts[0]
        return cls(
            np.concatenate([part.sums for part in parts]),
            np.concatenate([part.xors for part in parts]),
            [np.concatenate(each) for each in zip(*(p.stacked for p in parts), strict=True)],
        )


def to_words(column: pa.Array, kind: GsqlType) -> Array:
    """Return values as 64-bit integers in the same order; those of NULL are arbitrary.

    Addresses have two words a value. NaN is greater than all numbers, -0.0 is 0.0.
    """
    if kind is GsqlType.IP:
        filled = column.cast(pa.binary(16)).fill_null(bytes(16))
        start = 16 * filled.offset
        content = filled.buffers()[1]
        pairs = np.frombuffer(content, ">u8", count=2 * len(filled), offset=start)
        flipped = pairs.astype(np.uint64) ^ _SIGN
        return flipped.view(np.int64).reshape(-1, 2)
    if kind is GsqlType.FLOAT:
        numbers = column.fill_null(0.0).to_numpy() + 0.0
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        return np.where(bits < 0, bits ^ _ALL_BUT_SIGN, bits)
    if kind is GsqlType.BOOL:
        column = column.cast(pa.int64())
    words: Array = column.fill_null(0).to_numpy().astype(np.int64)
    return words


def from_words(words: Array, kind: GsqlType, mask: Array | None) -> pa.Array:
    """Return the column of values that ``to_words`` has encoded, NULL where ``mask`` holds."""
    if kind is GsqlType.IP:
        content = (words.reshape(-1).view(np.uint64) ^ _SIGN).astype(">u8")
        made = pa.Array.from_buffers(
            pa.binary(16), len(words), [None, pa.py_buffer(content.tobytes())]
        )
        if mask is None or not mask.any():
            return made
        return made.take(pa.array(np.arange(len(words)), mask=mask))
    if kind is GsqlType.FLOAT:
        bits = np.where(words < 0, words ^ _ALL_BUT_SIGN, words)
        return pa.array(bits.view(np.float64), mask=mask)
    if kind is GsqlType.BOOL:
        return pa.array(words != 0, mask=mask)
    return pa.array(words, arrow_type(kind), mask=mask)


def _stacked(partial: Partial) -> Stacked:
    rule, nothing = _FOLDS[partial.op]
    if partial.type is not GsqlType.IP:
        return Stacked(partial.name, rule, rule.at, nothing, 1, partial.type)
    is_least = partial.op is PartialOp.MIN

    def fold(a: Array, b: Array) -> Array:
        is_less = (a[:, 0] < b[:, 0]) | ((a[:, 0] == b[:, 0]) & (a[:, 1] < b[:, 1]))
        return np.where((is_less == is_least)[:, None], a, b)

    def reduce(folded: Array, groups: Array, values: Array) -> None:
        order = np.lexsort((values[:, 1], values[:, 0], groups))
        # Of several assignments to one place the last one counts.
        order = order[::-1] if is_least else order
        folded[groups[order]] = values[order]

    return Stacked(partial.name, fold, reduce, nothing, 2, partial.type)


_FOLDS: dict[PartialOp, tuple[np.ufunc, int]] = {
    PartialOp.MIN: (np.minimum, MAX_INT),
    PartialOp.MAX: (np.maximum, MIN_INT),
    PartialOp.OR: (np.bitwise_or, 0),
    PartialOp.AND: (np.bitwise_and, -1),
}
