"""Bars, and sparklines over the last epochs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gscope.cli.view.rows.history import Epoch, History

BLOCKS = "▁▂▃▄▅▆▇█"
MOST_COMPARED = 500_000
"""The most rows of earlier epochs that are searched for the rows on the screen at once."""

_MOST_CANDIDATES = 5_000
"""The most rows of an epoch that are compared one by one."""

Key = tuple[object, ...]


def sparkline(values: Sequence[float | None], blocks: str = BLOCKS) -> str:
    """Return one character for each value, the greatest as the highest; a space for None.

    Zero has the lowest block, and so have values below zero.
    """
    greatest = max((value for value in values if value is not None), default=0)
    return "".join(
        " "
        if value is None
        else blocks[0]
        if value <= 0
        else blocks[min(len(blocks) - 1, int(value / greatest * (len(blocks) - 1) + 0.5))]
        for value in values
    )


def bar(value: float | None, greatest: float, width: int, character: str) -> str:
    """Return a bar for ``value``, which is ``width`` long for ``greatest``."""
    if value is None or value != value or value <= 0 or greatest <= 0:
        return ""
    return character * max(1, min(width, round(value / greatest * width)))


def last_epochs(history: History, until: Epoch, count: int) -> list[Epoch | None]:
    """Return the last ``count`` epochs up to ``until``, one a step of time.

    None stands for an epoch without rows: a link was silent, or no group passed HAVING. Epochs
    before the first are left out.
    """
    epochs = [epoch for epoch in history.epochs if epoch.number <= until.number]
    if until.key is None:
        return list(epochs[-count:])
    by_key = {epoch.key: epoch for epoch in epochs if epoch.key is not None}
    first, step = next(iter(by_key)), history.step
    known = abs(until.key - first) // step + 1
    backwards = -step if until.key >= first else step
    places = range(min(count, known))
    return [by_key.get(until.key + place * backwards) for place in reversed(places)]


class RowSeries:
    """The values of rows of the screen in earlier epochs, found by their keys.

    Values that were found once are remembered until other rows are shown.
    """

    def __init__(self) -> None:
        self._wanted: tuple[str, str, frozenset[Key]] | None = None
        self._found: dict[tuple[int, int], dict[Key, float] | None] = {}

    def values(
        self,
        history: History,
        epochs: Sequence[Epoch | None],
        measure: str,
        keys: Sequence[Key],
    ) -> list[list[float | None]]:
        """Return for each key the values of ``measure`` in ``epochs``.

        A row that an epoch lacks has 0 there. None stands for an epoch whose rows have been let
        go, or in which there are too many rows to search.
        """
        wanted = (history.answer.query, measure, frozenset(keys))
        if wanted != self._wanted:
            self._wanted, self._found = wanted, {}
        left = MOST_COMPARED
        by_epoch: list[dict[Key, float] | None] = []
        for epoch in reversed(epochs):
            if epoch is None:
                by_epoch.append({})
                continue
            table, place = epoch.table, (epoch.number, epoch.rows)
            if place not in self._found and table is not None and table.num_rows <= left:
                left -= table.num_rows
                found = _values_by_key(table, history.answer.keys, measure, wanted[2])
                self._found[place] = found
            by_epoch.append(self._found.get(place))
        by_epoch.reverse()
        return [[None if each is None else each.get(key, 0.0) for each in by_epoch] for key in keys]


def row_keys(table: pa.Table, names: Sequence[str]) -> list[Key]:
    """Return the key of each row; () for all rows if there are no keys."""
    columns = [table[name].to_pylist() for name in names]
    return list(zip(*columns, strict=True)) if columns else [()] * table.num_rows


def _values_by_key(
    table: pa.Table, names: Sequence[str], measure: str, wanted: frozenset[Key]
) -> dict[Key, float] | None:
    """Return the values of the wanted rows, by key; None if too many rows resemble them."""
    found = table.select([*names, measure])
    for place, name in enumerate(names):
        if found.num_rows <= len(wanted):
            break
        values = pa.array({key[place] for key in wanted}, table[name].type)
        found = found.filter(pc.is_in(found[name], values))
    if found.num_rows > _MOST_CANDIDATES:
        return None
    pairs = zip(row_keys(found, names), found[measure].to_pylist(), strict=True)
    return {key: float(value) for key, value in pairs if value is not None and key in wanted}
