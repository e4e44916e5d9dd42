"""The windows of a step, assembled from its slices and from what the step before left.

Each piece comes once and leaves once, however many windows hold it; beyond that a window costs the
rows that it answers. Windows without rows are passed with arithmetic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.groups import number_groups
from gscope.engine.windows.counted import Counted, CountedGroups
from gscope.engine.windows.layout import Layout, Numbers
from gscope.engine.windows.live import LiveTable
from gscope.engine.windows.pieces import pieces_of
from gscope.engine.windows.saved import SavedWindow
from gscope.engine.windows.slice_store import SliceStore
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.windows.pieces import Piece
    from gscope.engine.windows.slice_files import OpenFiles
    from gscope.engine.windows.timeline import Timeline

    Array = NDArray[Any]

_NEAR = 64
"""Windows without rows are passed one by one if the next rows are at most this many slices ahead; a
search for the first window with rows costs as much as passing some fifty."""


_SPARSE = 8
"""Identities are looked up in a table if at least one in this number of them is live."""


@dataclass(frozen=True, slots=True)
class WindowEnd:
    """The end of a window: a row for each group in it.

    Attributes:
        window: the number of the window.
        places: the place of the keys of each group; see ``Assembly.keys``.
        numbers: the numbers of each group.
    """

    window: int
    places: Array
    numbers: Numbers

    def take(self, chosen: Array) -> WindowEnd:
        """Return some of the rows."""
        return WindowEnd(self.window, self.places[chosen], self.numbers.take(chosen))


class Assembly:
    """The assembly of the windows of one step.

    Args:
        timeline: the windows and slices.
        layout: the numbers of a group.
        keys: the names of the columns that identify a group.
        rows: one row for each slice and group, or several: ``NUMBER``, keys and partials.
        saved: what the step before left; None if no group was live.
        opened: reads the files of slices.
        name: the beginning of the names of new files, relative to the folder of ``opened``.
        counted: the values that are counted, if groups are answered that consist of several
            low-level ones; None to answer the low-level groups.
    """

    def __init__(
        self,
        timeline: Timeline,
        layout: Layout,
        keys: tuple[str, ...],
        rows: pa.Table,
        saved: SavedWindow | None,
        opened: OpenFiles,
        name: str,
        counted: Counted | None = None,
    ) -> None:
        self._timeline = timeline
        known = 0 if saved is None else len(saved.ids)
        key_table = rows.select(keys)
        if saved is not None:
            key_table = pa.concat_tables([saved.keys.cast(key_table.schema), key_table])
        places, count = number_groups(key_table.columns, known + rows.num_rows)
        first = np.empty(count, np.int64)
        first[places[::-1]] = np.arange(len(places))[::-1]
        self._keys = _taken(key_table, first)
        next_id = 0 if saved is None else saved.next_id
        self._next_id = next_id + count - known
        new = np.arange(next_id, self._next_id)
        self._ids = new if saved is None else np.concatenate([saved.ids, new])
        self._table = _table(layout, saved, count)
        self._groups = None
        if counted is not None:
            self._groups = CountedGroups(counted, layout, self._keys)
            if saved is not None:
                live = self._table.live
                self._groups.enter(live, saved.table.totals, live)
        self._store = SliceStore(
            opened,
            name,
            () if saved is None else saved.files,
            layout,
            self._ids,
            place_of(self._ids),
        )
        self._window = None if saved is None else saved.window
        # One at a time: a step may read some hundred thousand pieces of a single row each.
        self._fresh = pieces_of(rows, places[known:], count, timeline, layout)
        self._next = next(self._fresh, None)

    @property
    def keys(self) -> pa.Table:
        """The keys of all groups that are answered, by place."""
        return self._keys if self._groups is None else self._groups.keys

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
                if len(table.live):
                    answer(self._end(window))
                elif self._next is None or self._next.label - behind > _NEAR:
                    break
        if self._window is None or (self._next is None and not len(table.live)):
            return None
        ((_, first, behind),) = self._timeline.bounds(self._window, self._window + 1)
        self._advance(first, behind)
        return self._saved(first) if len(table.live) else None

    def _end(self, window: int) -> WindowEnd:
        if self._groups is not None:
            return WindowEnd(window, self._groups.live, self._groups.numbers())
        return WindowEnd(window, self._table.live, self._table.numbers(self._table.live))

    def _window_with_rows(self) -> Bound:
        """Return the next window with rows, infinite if none is known."""
        if len(self._table.live):
            assert self._window is not None
            return self._window
        if self._next is None:
            return np.inf
        next_window = self._timeline.first_holding(self._next.label)
        self._window = next_window if self._window is None else max(self._window, next_window)
        return self._window

    def _advance(self, first: int, behind: int) -> None:
        """Let all pieces leave below ``first``, and come below ``behind``."""
        table, store, groups = self._table, self._store, self._groups
        if store.holds_below(first):
            if store.is_below(first):
                store.clear()
                table.clear()
                if groups is not None:
                    groups.clear()
            else:
                self._leave(first)
        while self._next is not None and self._next.label < behind:
            piece, self._next = self._next, next(self._fresh, None)
            if piece.label >= first:
                new = table.enter(piece)
                store.add(piece)
                if groups is not None:
                    groups.enter(piece.places, piece.numbers, new)

    def _leave(self, first: int) -> None:
        """Let some pieces leave, those below ``first``."""
        pieces, groups = self._store.pop_before(first), self._groups
        if groups is not None:
            pieces = _each(pieces, groups.leave)
        is_used_up, dead = self._table.leave(pieces)
        if groups is not None:
            groups.drop(dead)
        if is_used_up:
            self._store.flip(self._table)

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
            _taken(self._keys, places),
            self._ids[places],
            kept,
            tuple(self._store.save()),
        )


def place_of(ids: Array) -> Callable[[Array], Array]:
    """Return the function from identities to their places in ``ids``, which ascends."""
    if not len(ids) or ids[-1] - ids[0] >= _SPARSE * len(ids):
        return lambda chosen: np.searchsorted(ids, chosen)
    first = ids[0]
    places = np.zeros(ids[-1] - first + 1, np.int64)
    places[ids - first] = np.arange(len(ids))
    return lambda chosen: places[chosen - first]


def _each(pieces: Iterator[Piece], act: Callable[[Piece], None]) -> Iterator[Piece]:
    for piece in pieces:
        act(piece)
        yield piece


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
