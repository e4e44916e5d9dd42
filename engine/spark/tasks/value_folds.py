"""Aggregates over all values of a group at once, from lists of them.

An aggregate that no sum or comparison of two results gives, like a median, needs the values of its
group together. Arrow lists them, group after group; then numpy sorts and counts the values of all
groups at once. A list may hold a value several times with the number of its tuples, as an LFTA
sends it. Each function computes what the catalog's entry of the same name defines, bit for bit.
"""

from __future__ import annotations

import functools
from itertools import repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.running.halves import LOW_32, as_floats
from gscope.engine.spark.tasks.columns import flat
from gscope.queries.catalog.aggregate.estimates import BUCKETS, estimate, linear_estimate
from gscope.queries.catalog.aggregate.values import top_text
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]

Lists: TypeAlias = pa.ListArray | pa.ChunkedArray
"""A list for each group; lists of several columns of one merge have their rows in the same
order."""


class _Rows(NamedTuple):
    """Rows of all groups, one group after the other.

    Attributes:
        size: the number of groups, some of which may have no rows.
        groups: the number of each row's group, ascending.
        columns: the columns.
    """

    size: int
    groups: Array
    columns: list[pa.Array]

    @classmethod
    def valued(cls, *lists: Lists) -> _Rows:
        """Return the rows whose value, the first column, is not NULL."""
        first, *others = map(flat, lists)
        groups = np.repeat(np.arange(len(first)), first.value_lengths().to_numpy())
        columns = [first.flatten(), *(each.flatten() for each in others)]
        if columns[0].null_count:
            valid = columns[0].is_valid()
            groups = groups[valid.to_numpy(zero_copy_only=False)]
            columns = [column.filter(valid) for column in columns]
        return cls(len(first), groups, columns)

    def begins(self) -> Array:
        """Return the first row of each group, or where it would be."""
        return np.searchsorted(self.groups, np.arange(self.size))

    def sizes(self) -> Array:
        """Return the number of rows of each group."""
        return np.bincount(self.groups, minlength=self.size)


def _ranks(values: pa.Array) -> Array:
    """Return numbers that compare as ``values`` do; NULL is less than all values.

    Equal values have one number. FLOAT compares as in the catalog: NaN is greater than all numbers,
    and -0.0 equals 0.0.
    """
    if pa.types.is_integer(values.type) and not values.null_count:
        numbers: Array = values.to_numpy()
        return numbers
    if pa.types.is_floating(values.type):
        values = pc.add(values, 0.0)
    coded = values.dictionary_encode()
    order = pc.sort_indices(coded.dictionary).to_numpy()
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    codes = coded.indices.fill_null(0).to_numpy()
    if not len(order):
        return np.full(len(codes), -1)
    valid = coded.indices.is_valid().to_numpy(zero_copy_only=False)
    return np.where(valid, rank[codes], -1)


def _is_new(*columns: Array) -> Array:
    """Return where a row differs from the one before it; the first does."""
    made = np.zeros(len(columns[0]), np.bool_)
    made[:1] = True
    for column in columns:
        made[1:] |= column[1:] != column[:-1]
    return made


class _Values(NamedTuple):
    """Different values of all groups, those of a group ascending.

    Attributes:
        rows: the rows, one for each group and value; their column is the value.
        counts: how many tuples have each value.
    """

    rows: _Rows
    counts: Array

    @classmethod
    def of(cls, values: Lists, counts: Lists | None = None) -> _Values:
        """Return the values that are not NULL; each is of one tuple without ``counts``."""
        rows = _Rows.valued(values) if counts is None else _Rows.valued(values, counts)
        column = rows.columns[0]
        tuples = np.ones(len(column), np.int64)
        if counts is not None:
            tuples = rows.columns[1].fill_null(0).to_numpy()
        ranks = _ranks(column)
        order = np.lexsort((ranks, rows.groups))
        groups, ranks = rows.groups[order], ranks[order]
        first = np.flatnonzero(_is_new(groups, ranks))
        totals = np.add.reduceat(tuples[order], first) if len(first) else tuples
        taken = column.take(pa.array(order[first]))
        return cls(_Rows(rows.size, groups[first], [taken]), totals)

    @property
    def values(self) -> pa.Array:
        return self.rows.columns[0]


def distinct_count(values: Lists, counts: Lists | None = None) -> pa.Array:
    """Return the number of different values."""
    return pa.array(_Values.of(values, counts).rows.sizes())


def repeated_count(values: Lists, counts: Lists | None = None) -> pa.Array:
    """Return how many values are repetitions: the number of values less that of different ones."""
    found = _Values.of(values, counts)
    total = np.zeros(found.rows.size, np.int64)
    np.add.at(total, found.rows.groups, found.counts)
    return pa.array(total - found.rows.sizes())


def distinct_halves(values: Lists, counts: Lists | None = None) -> tuple[pa.Array, pa.Array]:
    """Return the sums of the halves of the different integers; NULL without a value."""
    found = _Values.of(values, counts)
    is_empty = found.rows.sizes() == 0
    low, high = _halves(found)
    return pa.array(low, mask=is_empty), pa.array(high, mask=is_empty)


def _halves(found: _Values) -> tuple[Array, Array]:
    """Return the sums of the lower and of the upper 32 bits of the values of each group."""
    numbers = found.values.to_numpy()
    low, high = (np.zeros(found.rows.size, np.int64) for _ in range(2))
    np.add.at(low, found.rows.groups, numbers & LOW_32)
    np.add.at(high, found.rows.groups, numbers >> 32)
    return low, high


def distinct_average(values: Lists, counts: Lists | None = None) -> pa.Array:
    """Return the average of the different integers; NULL without a value."""
    found = _Values.of(values, counts)
    sizes = found.rows.sizes()
    divisors = np.maximum(sizes, 1).astype(np.float64)
    return pa.array(as_floats(*_halves(found)) / divisors, mask=sizes == 0)


def quantile(part: float, values: Lists, counts: Lists | None = None) -> pa.Array:
    """Return the value below which ``part`` of the values lie; NULL without a value."""
    found = _Values.of(values, counts)
    through = np.cumsum(found.counts)
    begins = found.rows.begins()
    before = np.concatenate([[0], through])[begins]
    totals = np.diff(np.concatenate([before, through[-1:] if len(through) else [0]]))
    is_empty = totals == 0
    places = (totals - 1) * part
    numbers = np.append(found.values.to_numpy().astype(np.float64), 0.0)
    below, above = (
        numbers[np.searchsorted(through, before + ends.astype(np.int64), side="right")]
        for ends in (np.floor(places), np.ceil(places))
    )
    is_same = (below == above) | (np.isnan(below) & np.isnan(above))
    with np.errstate(all="ignore"):
        between = below + (places - np.floor(places)) * (above - below)
    return pa.array(np.where(is_same, below, between) + 0.0, mask=is_empty)


def first(*lists: Lists) -> pa.Array:
    """Return the value of the first tuple that has one; NULL if none has.

    Args:
        lists: the values, then the columns that order tuples, in which NULL comes first. Tuples
            that are equal in these are in the order of their values.
    """
    rows = _Rows.valued(*lists)
    return _at_ends(rows, _in_order(rows)[_is_new(rows.groups)])


def last(*lists: Lists) -> pa.Array:
    """Return the value of the last tuple that has one; NULL if none has.

    For ``lists`` see ``first``.
    """
    rows = _Rows.valued(*lists)
    return _at_ends(rows, _in_order(rows)[_is_new(rows.groups[::-1])[::-1]])


def _at_ends(rows: _Rows, chosen: Array) -> pa.Array:
    """Return the values of the rows ``chosen``, one of each group that has rows."""
    places = np.full(rows.size, -1)
    places[rows.groups[chosen]] = chosen
    return rows.columns[0].take(pa.array(places, mask=places < 0))


def changes(*lists: Lists) -> pa.Array:
    """Return how often the value differs from that of the tuple before; the first counts.

    Args:
        lists: as of ``first``.
    """
    rows = _Rows.valued(*lists)
    order = _in_order(rows)
    is_change = _is_new(rows.groups, _ranks(rows.columns[0])[order])
    return pa.array(np.bincount(rows.groups[is_change], minlength=rows.size))


def _in_order(rows: _Rows) -> Array:
    """Return the rows in the order of their groups.

    Rows of a group are in the order of the columns behind the value, and then of the value.
    """
    value, *orders = map(_ranks, rows.columns)
    return np.lexsort((value, *reversed(orders), rows.groups))


def most_frequent(k: int, kind: GsqlType, values: Lists, counts: Lists | None = None) -> pa.Array:
    """Return the ``k`` most frequent values of a type as a text, as ``approx_top_k`` gives them.

    NULL without a value.
    """
    found = _Values.of(values, counts)
    rows = found.rows
    # Of equal counts the least value is first, as the values are in order.
    order = np.lexsort((-found.counts, rows.groups))
    place = np.arange(len(order)) - np.repeat(rows.begins(), rows.sizes())
    chosen = order[place < k]
    best: list[list[tuple[Any, int]]] = [[] for _ in range(rows.size)]
    python = map(_python_value, found.values.take(pa.array(chosen)).to_pylist(), repeat(kind))
    for group, value, count in zip(
        rows.groups[chosen].tolist(), python, found.counts[chosen].tolist(), strict=True
    ):
        best[group].append((value, count))
    return pa.array([top_text(each, kind) if each else None for each in best], pa.binary())


def _python_value(value: Any, kind: GsqlType) -> Any:
    """Return a value as the catalog's functions take it, from what Arrow gives."""
    match kind:
        case GsqlType.IP:
            return int.from_bytes(value)
        case GsqlType.FLOAT:
            return value + 0.0
    return value


def estimated_count(buckets: Lists, least: Lists) -> pa.Array:
    """Return the estimate of the number of different values, from buckets and their minima."""
    rows = _Rows.valued(least, buckets)
    minima, numbers = (column.to_numpy() for column in rows.columns)
    order = np.lexsort((minima, numbers, rows.groups))
    minima, numbers = minima[order], numbers[order]
    used = np.bincount(rows.groups[_is_new(rows.groups, numbers)], minlength=rows.size)
    made = _linear_estimates()[used]
    bounds = np.append(rows.begins(), len(rows.groups))
    for group in np.flatnonzero(made < 0):
        part = slice(bounds[group], bounds[group + 1])
        made[group] = estimate(zip(numbers[part].tolist(), minima[part].tolist(), strict=True))
    return pa.array(made)


@functools.cache
def _linear_estimates() -> Array:
    """Return the estimate for each number of buckets with values; -1 where it needs minima."""
    found = [linear_estimate(BUCKETS - used) for used in range(BUCKETS + 1)]
    return np.array([-1 if each is None else each for each in found])
