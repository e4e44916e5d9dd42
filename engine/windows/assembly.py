"""The windows of a step, assembled from its slices and from what the step before left.

Each piece comes once and leaves once, however many windows hold it; beyond that a window costs the
rows that it answers. Windows without rows are passed with arithmetic.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.groups import number_groups
from gscope.engine.windows.layout import Layout, Numbers
from gscope.engine.windows.live import LiveTable
from gscope.engine.windows.pieces import pieces_of
from gscope.engine.windows.saved import SavedWindow
from gscope.engine.windows.slice_store import SliceStore

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.windows.pieces import Piece
    from gscope.engine.windows.timeline import Timeline

    Array = NDArray[Any]


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The end of a window: a row for each group in it.

    Attributes:
        window: the number of the window.
        places: the place of the keys of each group; see ``Assembly``.
        numbers: the numbers of each group.
    """

    window: int
    places: Array
    numbers: Numbers


class Assembly:
    """The assembly of the windows of one step.

    Args:
        timeline: the windows and slices.
        layout: the numbers of a group.
        keys: the names of the columns that identify a group.
        rows: one row for each slice and group, or several: ``NUMBER``, keys and partials.
        saved: what the step before left; None if no group was live.
        folder: the folder of slice files.
        name: the beginning of the names of new files, relative to ``folder``.

    Attributes:
        keys: the keys of all groups of the step, by place.
    """

    def __init__(
        self,
        timeline: Timeline,
        layout: Layout,
        keys: tuple[str, ...],
        rows: pa.Table,
        saved: SavedWindow | None,
        folder: Path,
        name: str,
    ) -> None:
        self._timeline = timeline
        known = 0 if saved is None else len(saved.ids)
        key_table = rows.select(keys)
        if saved is not None:
            key_table = pa.concat_tables([saved.keys.cast(key_table.schema), key_table])
        places, count = number_groups(key_table.columns, known + rows.num_rows)
        first = np.empty(count, np.int64)
        first[places[::-1]] = np.arange(len(places))[::-1]
        self.keys = _taken(key_table, first)
        next_id = 0 if saved is None else saved.next_id
        self._next_id = next_id + count - known
        new = np.arange(next_id, self._next_id)
        self._ids = new if saved is None else np.concatenate([saved.ids, new])
        self._table = _table(layout, saved, count)
        self._store = SliceStore(
            folder,
            name,
            () if saved is None else saved.files,
            layout,
            self._ids,
            lambda ids: np.searchsorted(self._ids, ids),
        )
        self._window = None if saved is None else saved.window
        fresh = pieces_of(rows, places[known:], count, timeline, layout)
        self._fresh: deque[Piece] = deque(fresh)

    def run(self, high: Bound, answer: Callable[[WindowEnd], None]) -> SavedWindow | None:
        """Answer all windows that consist of slices below ``high``.

        Args:
            high: the slices below this number are complete; infinite at the end of the input.
            answer: receives each window that has rows, in their order.

        Returns:
            What the next step needs; None if no group is live.
        """
        table = self._table
        end = self._timeline.after_last(high)
        while self._window_with_rows() < end:
            assert self._window is not None
            for window, first, behind in self._timeline.bounds(self._window, end):
                self._advance(first, behind)
                self._window = window + 1
                if not len(table.live):
                    break
                answer(WindowEnd(window, table.live, table.numbers(table.live)))
        if self._window is None or not (self._fresh or len(table.live)):
            return None
        ((_, first, behind),) = self._timeline.bounds(self._window, self._window + 1)
        self._advance(first, behind)
        return self._saved(first) if len(table.live) else None

    def _window_with_rows(self) -> Bound:
        """Return the next window with rows, infinite if none is known."""
        if len(self._table.live):
            assert self._window is not None
            return self._window
        if not self._fresh:
            return np.inf
        next_window = self._timeline.first_holding(self._fresh[0].label)
        self._window = next_window if self._window is None else max(self._window, next_window)
        return self._window

    def _advance(self, first: int, behind: int) -> None:
        """Let all pieces leave below ``first``, and come below ``behind``."""
        table, store = self._table, self._store
        if store.holds_below(first):
            if store.is_below(first):
                store.clear()
                table.clear()
            elif table.leave(store.pop_before(first)):
                store.flip(table)
        fresh = self._fresh
        while fresh and fresh[0].label < behind:
            piece = fresh.popleft()
            if piece.label >= first:
                table.enter(piece)
                store.add(piece)

    def _saved(self, first: int) -> SavedWindow:
        """Write the pieces, and return what the next step needs, whose first slice is ``first``."""
        table = self._table
        places = np.sort(table.live)
        totals = table.totals.take(places)
        kept = LiveTable(
            table.layout,
            totals,
            [front.take(places, axis=0) for front in table.front],
            np.arange(len(places)),
        )
        assert self._window is not None
        return SavedWindow(
            self._window,
            (first, self._store.last),
            self._next_id,
            _taken(self.keys, places),
            self._ids[places],
            kept,
            tuple(self._store.save()),
        )


def _table(layout: Layout, saved: SavedWindow | None, groups: int) -> LiveTable:
    """Return the live table of a step, with places for all groups."""
    if saved is None:
        return LiveTable.empty(layout, groups)
    known = saved.table
    others = LiveTable.empty(layout, groups - len(saved.ids))
    return LiveTable(
        layout,
        Numbers.joined([known.totals, others.totals]),
        [np.concatenate(each) for each in zip(known.front, others.front, strict=True)],
        known.live,
    )


def _taken(keys: pa.Table, places: Array) -> pa.Table:
    """Return the keys at ``places``; Arrow takes no rows of a table without columns."""
    return keys.take(pa.array(places)).combine_chunks() if keys.num_columns else keys
