"""The fold over time: the rows of each epoch and the state before become answers and a new state.

At the end of each epoch every live group emits a row; then CLOSING_WHEN is tested on the same
values and closes the groups for which it holds. Each operation works on all groups of an epoch; an
epoch without live groups costs nothing. In a sample whose threshold fell, the state of groups above
it is dropped first.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.accumulators import AtEnd, accumulator
from gscope.engine.running.exact_sums import ExactMovingSum, ExactRunningSum
from gscope.engine.running.groups import number_groups
from gscope.engine.running.lives import Lives
from gscope.engine.running.rows import AnswerCollector, EpochEnd, EpochRows, named_keys
from gscope.engine.running.vectors import compute
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from gscope.engine.running.accumulators import Accumulator
    from gscope.engine.storage.counts import Counts
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.trim import GroupTrim
    from gscope.queries.plan.program import RunningNode

    Array = NDArray[Any]

ANSWER_ROWS = 250_000
"""Answers are computed and written in pieces of about this many rows, before HAVING."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """The epochs that a step ends.

    Attributes:
        low: the first epoch; -inf if no epoch ended before.
        high: epochs below it have ended; +inf at the end of the input.
        last: at the end of the input, the epoch that the clock had reached; -inf if unknown.
    """

    low: Bound
    high: Bound
    last: Bound = -math.inf

    def within(self, epochs: Array) -> tuple[int, int]:
        """Return the first epoch and the one after the last, given the epochs that have rows."""
        greatest = int(epochs.max()) if len(epochs) else -math.inf
        end = self.high if math.isfinite(self.high) else max(self.last, greatest) + 1
        if not math.isfinite(end):
            return 0, 0
        least = int(epochs.min()) if len(epochs) else end
        return int(self.low if math.isfinite(self.low) else least), int(end)

    def last_of_input(self, epochs: Array) -> int | None:
        """Return the last epoch of the input, given those that have rows; None if more may come."""
        return None if math.isfinite(self.high) else self.within(epochs)[1] - 1


def fold(
    node: RunningNode,
    rows: pa.Table,
    state: pa.Table | None,
    epochs: Epochs,
    write: Callable[[pa.Table], None],
    counts: Counts | None = None,
    trim: GroupTrim | None = None,
) -> tuple[pa.Table, int]:
    """Fold the epochs of a step.

    Args:
        node: the running aggregation.
        rows: one row for each group and epoch that had tuples; see ``engine/operators/running.py``.
        state: what the fold of the epochs before returned; None at the start.
        epochs: the epochs that end.
        write: receives answers, epoch by epoch, with the columns of the node's schema.
        counts: receives the number of sums that exceed 64 bits; None to drop it.
        trim: the groups to leave out because a sample's threshold fell; None for none.

    Returns:
        The state after the last epoch, a row for each group that is still live, but none at the end
        of the input; and the number of states and answers left out.
    """
    folding = _Fold(node, rows, state, trim)
    after = folding.run(epochs, write)
    if counts is not None:
        counts.add_wrapped_sums(node.query, folding.wrapped_sums)
    return after, folding.lives.left_out


class _Fold:
    def __init__(
        self,
        node: RunningNode,
        rows: pa.Table,
        state: pa.Table | None,
        trim: GroupTrim | None,
    ) -> None:
        self._node = node
        keys = [name for name in rows.column_names if name.startswith("k")]
        key_table = rows.select(keys)
        known = 0
        if state is not None:
            known = state.num_rows
            key_table = pa.concat_tables([state.select(keys).cast(key_table.schema), key_table])
        if state is None and _is_one_epoch(rows):
            # Each row is of a group of its own.
            places, count = np.arange(rows.num_rows), rows.num_rows
        else:
            places, count = number_groups(key_table.columns, key_table.num_rows)
            first = np.zeros(count, np.int64)
            first[places[::-1]] = np.arange(len(places))[::-1]
            key_table = key_table.take(pa.array(first))
        self._keys = key_table.combine_chunks()
        self._rows = EpochRows(node, rows, places[known:])
        self._alive = np.zeros(count, np.bool_)
        self.lives = Lives(trim, named_keys(node, self._keys), count)
        self._states: list[Accumulator] = [
            accumulator(aggregate, count, self._rows) for aggregate in node.running
        ]
        if state is not None:
            self._restore(places[:known], state)

    @property
    def wrapped_sums(self) -> int:
        """The number of answers that were sums beyond 64 bits."""
        exact = (s for s in self._states if isinstance(s, ExactRunningSum | ExactMovingSum))
        return sum(each.wrapped for each in exact)

    def run(self, epochs: Epochs, write: Callable[[pa.Table], None]) -> pa.Table:
        """Fold all epochs; see ``fold``."""
        answers = AnswerCollector(self._node, self._keys, self._rows, write, ANSWER_ROWS)
        live = np.flatnonzero(self._alive)
        position = np.zeros(len(self._alive), np.int64)
        last_of_input = epochs.last_of_input(self._rows.epochs)
        for epoch, first, last in self._each_epoch(epochs):
            ended = self.lives.ended(epoch, live)
            if ended is not None:
                self._alive[live[ended]] = False
                live = live[~ended]
            places = self._rows.places[first:last]
            new = places[~self._alive[places]]
            if len(new):
                self._alive[new] = True
                self.lives.begin(epoch, new)
                for state in self._states:
                    state.begin(new)
                live = np.flatnonzero(self._alive)
            position[live] = np.arange(len(live))
            at, numbers = position[places], np.arange(first, last)
            if epoch == last_of_input:
                self._reach_end()
            values = tuple(state.update(live, at, numbers) for state in self._states)
            row = np.full(len(live), self._rows.none, np.int64)
            row[at] = numbers
            end = EpochEnd(np.full(len(live), epoch, np.int64), live, row, values)
            answers.add(self.lives.answered(end))
            leaf = answers.columns(end).vector
            closes = compute(self._node.closing, leaf, len(live)).is_true()
            closes = self.lives.closed(closes, live, leaf)
            self._alive[live[closes]] = False
            live = live[~closes]
        answers.flush()
        # Nothing reads a state behind the end of the input.
        return self._saved(live if math.isfinite(epochs.high) else live[:0])

    def _reach_end(self) -> None:
        for state in self._states:
            if isinstance(state, AtEnd):
                state.is_reached = True

    def _each_epoch(self, epochs: Epochs) -> Iterator[tuple[int, int, int]]:
        """Yield each epoch with rows or live groups, and where its rows begin and end."""
        having, starts = np.unique(self._rows.epochs, return_index=True)
        epoch, end = epochs.within(having)
        ends = np.append(starts[1:], len(self._rows.epochs))[: len(starts)]
        waiting = list(zip(having.tolist(), starts.tolist(), ends.tolist(), strict=True))[::-1]
        while epoch < end:
            if waiting and waiting[-1][0] == epoch:
                yield waiting.pop()
            elif self._alive.any():
                yield epoch, 0, 0
            else:
                epoch = waiting[-1][0] if waiting else end
                continue
            epoch += 1

    def _restore(self, places: Array, state: pa.Table) -> None:
        self._alive[places] = True
        self.lives.restore(places, state)
        for number, accumulated in enumerate(self._states):
            columns = [n for n in state.column_names if n.startswith(f"s{number}_")]
            accumulated.restore(places, [state[n].combine_chunks() for n in columns])

    def _saved(self, live: Array) -> pa.Table:
        table = self._keys.take(pa.array(live))
        for number, accumulated in enumerate(self._states):
            for part, column in enumerate(accumulated.save(live)):
                table = table.append_column(f"s{number}_{part}", column)
        return self.lives.saved(table, live)


def _is_one_epoch(rows: pa.Table) -> bool:
    epochs = rows["e"].to_numpy()
    return not len(epochs) or epochs.min() == epochs.max()
