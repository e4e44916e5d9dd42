"""The rows that a fold reads and the answers that it writes.

Columns by name: ``e`` is the epoch, ``k0``, ``k1`` … the other keys in order, ``kb`` the task to
which a group belongs, ``a0``, ``a1`` … the aggregates of the epoch in order.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import (
    Vector,
    compute,
    from_arrow,
    from_list,
    to_arrow,
)
from gscope.queries.catalog.running import DISTINCT_VALUES, value_of_nothing
from gscope.queries.expressions.expressions import Column
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gscope.queries.plan.program import Aggregate, RunningNode

    Array = NDArray[Any]


class EpochRows:
    """One row for each epoch and group that had tuples, in the order of epochs.

    Attributes:
        epochs: the epoch of each row.
        places: the place of the group of each row.
        none: the row number that stands for "no row": its aggregates are those of no tuples.
    """

    def __init__(self, node: RunningNode, rows: pa.Table, places: Array) -> None:
        self.epochs, self.places, taken = rows["e"].to_numpy(), places, rows
        self.none = len(places)
        if (self.epochs[1:] < self.epochs[:-1]).any():
            order = np.argsort(self.epochs, kind="stable")
            self.epochs, self.places = self.epochs[order], places[order]
            taken = rows.take(pa.array(order))
        self._columns: dict[str, pa.Array] = {}
        self._vectors: dict[str, Vector] = {}
        self._aggregates = {a.name: a for a in node.aggregates}
        for number, aggregate in enumerate(node.aggregates):
            column = taken[f"a{number}"].combine_chunks()
            if aggregate.function != DISTINCT_VALUES:
                column = pa.concat_arrays([column, _of_nothing(aggregate).cast(column.type)])
            self._columns[aggregate.name] = column

    def column(self, name: str) -> pa.Array:
        """Return an aggregate of each row; last, except for ``distinct_values``, of no tuples."""
        return self._columns[name]

    def vector(self, name: str) -> Vector:
        """Return the same column for computing."""
        if name not in self._vectors:
            self._vectors[name] = from_arrow(self._columns[name], self._aggregates[name].type)
        return self._vectors[name]


@dataclass(frozen=True, slots=True)
class EpochEnd:
    """The end of an epoch, or of several: a row for each live group.

    Attributes:
        epochs: the epoch of each row.
        places: the place of the group of each row.
        rows: the row in ``EpochRows`` of each row.
        running: the values of the running aggregates.
    """

    epochs: Array
    places: Array
    rows: Array
    running: tuple[Vector, ...]

    def take(self, chosen: Array) -> EpochEnd:
        """Return some of the rows."""
        running = tuple(vector.take(chosen) for vector in self.running)
        return EpochEnd(self.epochs[chosen], self.places[chosen], self.rows[chosen], running)


class Columns:
    """The columns of keys and aggregates at the end of an epoch, each computed on first use."""

    def __init__(self, node: RunningNode, keys: pa.Table, rows: EpochRows, end: EpochEnd) -> None:
        self._node = node
        self._keys = keys
        self._rows = rows
        self._end = end
        others = [key for key in node.keys if key.name != node.epoch]
        self._key_numbers = {key.name: number for number, key in enumerate(others)}
        self._kinds = {key.name: key.expression.type for key in node.keys}
        self._running = {a.name: number for number, a in enumerate(node.running)}

    def vector(self, name: str) -> Vector:
        """Return a column for computing."""
        end = self._end
        if name == self._node.epoch:
            return Vector(end.epochs, np.ones(len(end.epochs), np.bool_))
        if name in self._running:
            return end.running[self._running[name]]
        if name in self._key_numbers:
            return from_arrow(self.arrow(name), self._kinds[name])
        return self._rows.vector(name).take(end.rows)

    def arrow(self, name: str) -> pa.Array:
        """Return a column for output."""
        end = self._end
        if name == self._node.epoch:
            return pa.array(end.epochs)
        if name in self._running:
            number = self._running[name]
            return to_arrow(end.running[number], self._node.running[number].type)
        if name in self._key_numbers:
            key = self._keys[f"k{self._key_numbers[name]}"]
            return key.take(pa.array(end.places)).combine_chunks()
        return self._rows.column(name).take(pa.array(end.rows))


def named_keys(node: RunningNode, keys: pa.Table) -> pa.Table:
    """Return the keys of groups under their names in the query."""
    others = [key.name for key in node.keys if key.name != node.epoch]
    return pa.table({name: keys[f"k{number}"] for number, name in enumerate(others)})


class AnswerCollector:
    """Collects the ends of epochs and writes the rows that pass HAVING.

    Args:
        node: the running aggregation.
        keys: the keys of each group, by place.
        epoch_rows: the rows of the fold.
        write: receives the answers, with the columns of the node's schema.
        rows: about how many rows are computed at once.
    """

    def __init__(
        self,
        node: RunningNode,
        keys: pa.Table,
        epoch_rows: EpochRows,
        write: Callable[[pa.Table], None],
        rows: int,
    ) -> None:
        self._node = node
        self._keys = keys
        self._rows = epoch_rows
        self._write = write
        self._limit = rows
        self._ends: list[EpochEnd] = []
        self._count = 0

    def columns(self, end: EpochEnd) -> Columns:
        """Return the columns at ``end``."""
        return Columns(self._node, self._keys, self._rows, end)

    def add(self, end: EpochEnd) -> None:
        """Add the end of an epoch."""
        self._ends.append(end)
        self._count += len(end.epochs)
        if self._count >= self._limit:
            self.flush()

    def flush(self) -> None:
        """Write all answers so far."""
        if not self._count:
            self._ends = []
            return
        end = _joined(self._ends)
        self._ends, self._count = [], 0
        if self._node.having is not None:
            leaf = self.columns(end).vector
            chosen = compute(self._node.having, leaf, len(end.epochs)).is_true()
            end = end.take(np.flatnonzero(chosen))
        rows = len(end.epochs)
        if not rows:
            return
        columns = self.columns(end)
        made = {}
        for column in self._node.columns:
            e = column.expression
            if isinstance(e, Column):
                made[column.name] = columns.arrow(e.name)
            else:
                made[column.name] = to_arrow(compute(e, columns.vector, rows), e.type)
        self._write(pa.table(made))


def _joined(ends: list[EpochEnd]) -> EpochEnd:
    if len(ends) == 1:
        return ends[0]
    running = tuple(
        Vector(
            np.concatenate([v.values for v in vectors]), np.concatenate([v.valid for v in vectors])
        )
        for vectors in zip(*(end.running for end in ends), strict=True)
    )
    return EpochEnd(
        np.concatenate([end.epochs for end in ends]),
        np.concatenate([end.places for end in ends]),
        np.concatenate([end.rows for end in ends]),
        running,
    )


def _of_nothing(aggregate: Aggregate) -> pa.Array:
    """Return the value of a plain aggregate in an epoch without tuples."""
    value = value_of_nothing(aggregate.function, aggregate.arguments)
    return to_arrow(from_list([value], aggregate.type), aggregate.type)
