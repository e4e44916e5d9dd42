"""The last epochs of one answer: their rows, and the sums that sparklines show.

Rows are kept within bounds in epochs and in rows; what is let go is counted. Sums and numbers of
rows are kept for further epochs: they cost a few bytes.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.sinks.table_cells import printable
from gscope.engine.sinks.columns import flat
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gscope.cli.view.rows.columns import Answer

MOST_EPOCHS = 120
"""The most epochs of an answer whose rows are kept."""

MOST_ROWS = 2_000_000
"""The most rows of an answer that are kept, over all of its epochs."""

MOST_SUMS = 1_000
"""The most epochs whose sums are kept."""


@dataclass(slots=True)
class Epoch:
    """The rows of one epoch, as far as they have been delivered.

    Attributes:
        number: counts the epochs of the answer from 0.
        key: the value of the column of the epoch, divided by its width; None for NULL, or if the
            whole answer is one epoch.
        value: the value of that column in the first row; None as for ``key``.
        label: the same as text; "" if the whole answer is one epoch.
        first_row: the number of its first row in the answer, from 0.
        rows: number of rows, with those that are not kept.
        sums: the sum of each measure.
    """

    number: int
    key: int | None
    value: int | None
    label: str
    first_row: int = 0
    rows: int = 0
    sums: dict[str, float] = field(default_factory=dict)
    _tables: list[pa.Table] = field(default_factory=list)

    @property
    def table(self) -> pa.Table | None:
        """The rows that are kept, in the order of delivery; None if they have been let go."""
        if len(self._tables) > 1:
            self._tables = [pa.concat_tables(self._tables).combine_chunks()]
        return self._tables[0] if self._tables else None

    @property
    def kept(self) -> int:
        """The number of rows that are kept."""
        return sum(table.num_rows for table in self._tables)

    def add(self, table: pa.Table, most: int) -> None:
        """Add rows, and keep at most ``most`` further ones."""
        self.rows += table.num_rows
        if most > 0 or not self._tables:
            self._tables.append(table.slice(0, max(0, most)))

    def let_go(self) -> None:
        """Keep no row."""
        self._tables = []


@dataclass(frozen=True, slots=True)
class Frozen:
    """An epoch with the rows that it had at a moment, whatever is delivered and let go since."""

    epoch: Epoch
    table: pa.Table


class History:
    """The epochs of one answer, the oldest first.

    Args:
        answer: the answer.
        most_epochs: the most epochs whose rows are kept.
        most_rows: the most rows that are kept.

    Attributes:
        rows: number of rows of all epochs since the run began.
    """

    def __init__(
        self, answer: Answer, most_epochs: int = MOST_EPOCHS, most_rows: int = MOST_ROWS
    ) -> None:
        self.answer = answer
        self.rows = 0
        self._most_epochs = most_epochs
        self._most_rows = most_rows
        self._epochs: deque[Epoch] = deque(maxlen=max(MOST_SUMS, most_epochs))
        self._kept = 0
        self._number = 0

    @property
    def epochs(self) -> tuple[Epoch, ...]:
        """All epochs that are known, the oldest first; only the latest of them have rows."""
        return tuple(self._epochs)

    @property
    def latest(self) -> Epoch | None:
        """The epoch of the latest rows; None before the first."""
        return self._epochs[-1] if self._epochs else None

    @property
    def step(self) -> int:
        """The least distance of two epochs, in keys; 1 if it is unknown."""
        keys = [epoch.key for epoch in self._epochs if epoch.key is not None]
        gaps = [abs(after - before) for before, after in pairwise(keys) if after != before]
        return min(gaps, default=1)

    def find(self, number: int) -> Epoch | None:
        """Return the epoch ``number`` if its rows are kept."""
        first = self._epochs[0].number if self._epochs else 0
        if not first <= number < first + len(self._epochs):
            return None
        epoch = self._epochs[number - first]
        return epoch if epoch.table is not None else None

    def add(self, table: pa.Table) -> None:
        """Add rows in the order of delivery."""
        for key, rows in self._by_epoch(table):
            epoch = self._epochs[-1] if self._epochs else None
            if epoch is None or epoch.key != key:
                epoch = self._begin(key, rows)
            before = epoch.kept
            self._let_go(epoch, rows.num_rows)
            epoch.add(rows, self._most_rows - self._kept)
            self._kept += epoch.kept - before
            self.rows += rows.num_rows
            self._sum(epoch, rows)

    def _by_epoch(self, table: pa.Table) -> Iterator[tuple[int | None, pa.Table]]:
        """Yield each epoch with its rows, as they follow each other."""
        clock = self.answer.clock
        if clock is None:
            if table.num_rows:
                yield None, table
            return
        values = _integers(flat(table[clock.column]))
        is_known = np.asarray(pc.is_valid(values))
        keys = np.asarray(pc.fill_null(values, 0)) // clock.width
        changes = (np.diff(keys) != 0) | (np.diff(is_known.astype(np.int8)) != 0)
        bounds = [0, *(np.flatnonzero(changes) + 1).tolist(), len(keys)]
        if (skipped := len(bounds) - 1 - MOST_SUMS) > 0:
            # More than MOST_SUMS: not even the sums of the first are kept.
            self.rows += bounds[skipped]
            self._number += skipped
            bounds = bounds[skipped:]
        for begin, end in pairwise(bounds):
            if end > begin:
                key = int(keys[begin]) if is_known[begin] else None
                yield key, table.slice(begin, end - begin)

    def _begin(self, key: int | None, rows: pa.Table) -> Epoch:
        clock = self.answer.clock
        if clock is None:
            value, label = None, ""
        else:
            first = flat(rows[clock.column].slice(0, 1))
            value = _integers(first)[0].as_py()
            label = printable(str(self.answer[clock.column].text(first)[0]))
        epoch = Epoch(self._number, key, value, label, self.rows)
        self._number += 1
        if len(self._epochs) == self._epochs.maxlen:
            self._kept -= self._epochs[0].kept
        self._epochs.append(epoch)
        return epoch

    def _let_go(self, current: Epoch, further: int) -> None:
        """Let rows of the oldest epochs go, so that ``further`` ones fit, and one more epoch."""
        with_rows = [epoch for epoch in self._epochs if epoch.kept and epoch is not current]
        for place, epoch in enumerate(with_rows):
            is_old = len(with_rows) - place >= self._most_epochs
            if not is_old and self._kept + further <= self._most_rows:
                break
            self._kept -= epoch.kept
            epoch.let_go()

    def _sum(self, epoch: Epoch, rows: pa.Table) -> None:
        for name in self.answer.measures:
            found = pc.sum(pc.cast(rows[name], pa.float64())).as_py()
            epoch.sums[name] = epoch.sums.get(name, 0.0) + (found or 0.0)


def _integers(values: pa.Array) -> pa.Array:
    """Return times or integers as integers."""
    return pc.cast(values, pa.int64())
