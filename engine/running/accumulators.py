"""The state of running aggregates, for all groups at once: arrays with a place for each group.

``queries/catalog/running.py`` defines the aggregates; here each is a class with the same four
methods. A *place* is the number of a group within a fold; *rows* are the numbers of the rows that
live groups have in the epoch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from gscope.engine.running.duplicates import SumOfDups
from gscope.engine.running.exact_sums import ExactMovingSum, ExactRunningSum
from gscope.engine.running.halves import as_floats
from gscope.engine.running.vectors import Vector, from_arrow, never_null
from gscope.engine.running.window import MovingWindow, valid_of, values_of
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from gscope.queries.plan.program import RunningAggregate

    Array = NDArray[Any]


class Accumulator(Protocol):
    """One running aggregate of a fold."""

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """Load what ``save`` returned for the groups at ``places``."""

    def begin(self, places: Array) -> None:
        """Start the lives of groups."""

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """Add an epoch that has ended.

        Args:
            live: the places of all live groups, ascending.
            at: the positions in ``live`` of the groups that had tuples.
            rows: the row of each of these groups.

        Returns:
            The value of each group in ``live``.
        """

    def save(self, live: Array) -> list[pa.Array]:
        """Return the state of the groups at ``live``, in columns."""


class RunningSum:
    """``running_sum`` of FLOAT."""

    def __init__(self, groups: int, total: Vector) -> None:
        self._input = total
        self._total = np.zeros(groups, total.values.dtype)
        self._has = np.zeros(groups, np.bool_)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        self._has[places] = valid_of(state[0])
        self._total[places] = values_of(state[0], self._total.dtype)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._total[places] = 0
        self._has[places] = False

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        some = self._input.take(rows)
        places, added = live[at][some.valid], some.values[some.valid]
        with np.errstate(all="ignore"):
            self._total[places] = np.where(self._has[places], self._total[places] + added, added)
        self._has[places] = True
        return Vector(self._total[live], self._has[live])

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [pa.array(self._total[live], mask=~self._has[live])]


class RunningCount:
    """``running_count``."""

    def __init__(self, groups: int, count: Vector) -> None:
        self._input = count
        self._total = np.zeros(groups, np.int64)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        self._total[places] = values_of(state[0], np.int64)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._total[places] = 0

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        self._total[live[at]] += self._input.values[rows]
        return never_null(self._total[live])

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [pa.array(self._total[live])]


class MovingSum:
    """``moving_sum`` of FLOAT."""

    def __init__(self, groups: int, length: int, total: Vector) -> None:
        self._sums = MovingWindow(groups, length, total)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        self._sums.restore(places, state[0])

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._sums.begin(places)

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        self._sums.push(live, at, rows)
        return self._sums.total(live)

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [self._sums.save(live)]


class MovingAverage:
    """``moving_avg``."""

    def __init__(self, groups: int, length: int, parts: Sequence[Vector]) -> None:
        self._windows = [MovingWindow(groups, length, part) for part in parts]

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        for window, saved in zip(self._windows, state, strict=True):
            window.restore(places, saved)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        for window in self._windows:
            window.begin(places)

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        for window in self._windows:
            window.push(live, at, rows)
        return _ratio([window.total(live) for window in self._windows])

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [window.save(live) for window in self._windows]


class ExponentialAverage:
    """``ewma``."""

    def __init__(self, groups: int, alpha: float, parts: Sequence[Vector]) -> None:
        self._averages = _ratio(parts)
        self._alpha = alpha
        self._value = np.zeros(groups, np.float64)
        self._has = np.zeros(groups, np.bool_)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        self._has[places] = valid_of(state[0])
        self._value[places] = values_of(state[0], np.float64)

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._has[places] = False

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        some = self._averages.take(rows)
        places, new = live[at][some.valid], some.values[some.valid]
        with np.errstate(all="ignore"):
            moved = self._alpha * new + (1.0 - self._alpha) * self._value[places]
        self._value[places] = np.where(self._has[places], moved, new)
        self._has[places] = True
        return Vector(self._value[live], self._has[live])

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [pa.array(self._value[live], mask=~self._has[live])]


class Latest:
    """``running_first`` and ``running_last``: a value of any type, kept as its position.

    All values are in one Arrow column: those of the rows, then those restored.
    """

    def __init__(self, groups: int, *, keeps_first: bool, values: pa.Array, kind: GsqlType) -> None:
        self._column = values
        self._valid = valid_of(values)
        self._kind = kind
        self._keeps_first = keeps_first
        self._where = np.full(groups, -1, np.int64)

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""
        kept = np.flatnonzero(valid_of(state[0]))
        self._where[places[kept]] = len(self._column) + kept
        self._column = pa.concat_arrays([self._column, state[0].cast(self._column.type)])

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""
        self._where[places] = -1

    def update(self, live: Array, at: Array, rows: Array) -> Vector:
        """See ``Accumulator``."""
        places, some = live[at], rows
        chosen = self._valid[some]
        if self._keeps_first:
            chosen = chosen & (self._where[places] < 0)
        self._where[places[chosen]] = some[chosen]
        return from_arrow(self._taken(live), self._kind)

    def save(self, live: Array) -> list[pa.Array]:
        """See ``Accumulator``."""
        return [self._taken(live)]

    def _taken(self, live: Array) -> pa.Array:
        where = self._where[live]
        return self._column.take(pa.array(where, mask=where < 0))


class AtEnd:
    """``at_end``.

    Attributes:
        is_reached: whether the epoch that ends is the last of the input; the fold sets it.
    """

    def __init__(self) -> None:
        self.is_reached = False

    def restore(self, places: Array, state: list[pa.Array]) -> None:
        """See ``Accumulator``."""

    def begin(self, places: Array) -> None:
        """See ``Accumulator``."""

    def update(self, live: Array, at: Array, rows: Array) -> Vector:  # noqa: ARG002
        """See ``Accumulator``."""
        return never_null(np.full(len(live), self.is_reached))

    def save(self, live: Array) -> list[pa.Array]:  # noqa: ARG002
        """See ``Accumulator``."""
        return []


class FoldInputs(Protocol):
    """The rows of a fold, epoch by epoch."""

    def vector(self, name: str) -> Vector:
        """Return a plain aggregate of each row, for computing."""

    def column(self, name: str) -> pa.Array:
        """Return a plain aggregate of each row, as an Arrow column."""

    @property
    def places(self) -> Array:
        """The group of each row."""


def accumulator(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    """Return the state of ``aggregate`` for ``groups`` groups, none of which is live yet."""
    return _BUILDERS[aggregate.function](aggregate, groups, rows)


def _sum(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    parts = [rows.vector(name) for name in aggregate.inputs]
    if aggregate.type is GsqlType.INT:
        return ExactRunningSum(groups, parts)
    return RunningSum(groups, *parts)


def _count(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    return RunningCount(groups, rows.vector(aggregate.inputs[0]))


def _moving_sum(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    (length,) = aggregate.constants
    assert isinstance(length, int)
    parts = [rows.vector(name) for name in aggregate.inputs]
    if aggregate.type is GsqlType.INT:
        return ExactMovingSum(groups, length, parts)
    return MovingSum(groups, length, *parts)


def _moving_average(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    (length,) = aggregate.constants
    assert isinstance(length, int)
    return MovingAverage(groups, length, [rows.vector(name) for name in aggregate.inputs])


def _exponential_average(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    (alpha,) = aggregate.constants
    assert isinstance(alpha, float)
    return ExponentialAverage(groups, alpha, [rows.vector(name) for name in aggregate.inputs])


def _sum_of_dups(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
    count, values = aggregate.inputs
    return SumOfDups(groups, rows.vector(count), rows.column(values), rows.places)


def _latest(*, keeps_first: bool) -> Callable[[RunningAggregate, int, FoldInputs], Accumulator]:
    def build(aggregate: RunningAggregate, groups: int, rows: FoldInputs) -> Accumulator:
        values = rows.column(aggregate.inputs[0])
        return Latest(groups, keeps_first=keeps_first, values=values, kind=aggregate.type)

    return build


_BUILDERS: dict[str, Callable[[RunningAggregate, int, FoldInputs], Accumulator]] = {
    "running_sum": _sum,
    "running_count": _count,
    "moving_sum": _moving_sum,
    "moving_avg": _moving_average,
    "ewma": _exponential_average,
    "sum_of_dups": _sum_of_dups,
    "at_end": lambda *_: AtEnd(),
    "running_first": _latest(keeps_first=True),
    "running_last": _latest(keeps_first=False),
}


def _ratio(parts: Sequence[Vector]) -> Vector:
    """Return an average from a sum, whole or in halves, and a count, as plain ``avg`` divides."""
    *sums, count = parts
    is_there = count.valid & (count.values > 0)
    counts = np.where(is_there, count.values, 1).astype(np.float64)
    with np.errstate(all="ignore"):
        totals = [part.values for part in sums]
        total = as_floats(*totals) if len(totals) > 1 else totals[0].astype(np.float64)
        return Vector(total / counts, is_there)
