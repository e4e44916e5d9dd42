"""The live table: the groups in the window, with their numbers.

Stacked values are two stacks: every group has a front and a back value, which fold to its value. A
piece that comes is folded into the back. A piece that leaves the front brings the front value of
the pieces after it along. When the front is used up it is built from all pieces in the window, once
(``flip``), so that a row costs two folds however many windows hold it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.engine.windows.layout import PRESENCE, Numbers
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from gscope.engine.windows.layout import Layout
    from gscope.engine.windows.pieces import Piece

    Array = NDArray[Any]


@dataclass(slots=True)
class LiveTable:
    """The numbers of groups, by place; a place that is not live has those of no rows.

    Attributes:
        layout: the numbers of a group.
        totals: the matrices of counts and sums; its stacked values are the back.
        front: the front of each stacked value.
        live: the places of the groups in the window, in no particular order.
    """

    layout: Layout
    totals: Numbers
    front: list[Array]
    live: Array

    @classmethod
    def empty(cls, layout: Layout, groups: int) -> LiveTable:
        """Return a table with ``groups`` places, none of them live."""
        totals = layout.nothing(groups)
        front = [each.empty(groups) for each in layout.stacked]
        return cls(layout, totals, front, np.empty(0, np.int64))

    def enter(self, piece: Piece) -> Array:
        """Add the rows of a piece, younger than all in the window; return the new live places."""
        places, totals = piece.places, self.totals
        held = totals.sums.take(places, axis=0)
        new: Array = places[held[:, PRESENCE] == 0]
        held += piece.numbers.sums
        totals.sums[places] = held
        if len(new):
            self.live = np.concatenate([self.live, new]) if len(self.live) else new
        if self.layout.xored:
            totals.xors[places] ^= piece.numbers.xors
        for stacked, back, values in zip(
            self.layout.stacked, totals.stacked, piece.numbers.stacked, strict=True
        ):
            back[places] = stacked.fold(back[places], values)
        return new

    def leave(self, pieces: Iterable[Piece]) -> tuple[bool, Array]:
        """Remove the rows of the oldest pieces.

        Returns:
            Whether ``flip`` must follow, and the places that are no longer live.
        """
        totals, is_used_up = self.totals, False
        for piece in pieces:
            places = piece.places
            totals.sums[places] -= piece.numbers.sums
            if self.layout.xored:
                totals.xors[places] ^= piece.numbers.xors
            if piece.younger is None:
                is_used_up = bool(self.layout.stacked)
            else:
                for front, values in zip(self.front, piece.younger, strict=True):
                    front[places] = values
        present = totals.sums[self.live, PRESENCE] != 0
        if is_used_up:
            self._forget_stacks()
        dead, self.live = self.live[~present], self.live[present]
        return is_used_up, dead

    def clear(self) -> None:
        """Remove all groups."""
        self.totals.sums[self.live] = 0
        self.totals.xors[self.live] = 0
        self._forget_stacks()
        self.live = self.live[:0]

    def flip(self, piece: Piece) -> None:
        """Put a piece below the front: the youngest first, when the front is used up."""
        piece.younger = []
        for stacked, front, values in zip(
            self.layout.stacked, self.front, piece.numbers.stacked, strict=True
        ):
            younger = front[piece.places]
            piece.younger.append(younger)
            front[piece.places] = stacked.fold(younger, values)

    def numbers(self, places: Array) -> Numbers:
        """Return the numbers of some groups."""
        totals = self.totals
        return Numbers(
            totals.sums.take(places, axis=0),
            totals.xors.take(places, axis=0),
            [
                stacked.fold(front.take(places, axis=0), back.take(places, axis=0))
                for stacked, front, back in zip(
                    self.layout.stacked, self.front, totals.stacked, strict=True
                )
            ],
        )

    def _forget_stacks(self) -> None:
        for stacked, front, back in zip(
            self.layout.stacked, self.front, self.totals.stacked, strict=True
        ):
            front[self.live] = back[self.live] = stacked.nothing
