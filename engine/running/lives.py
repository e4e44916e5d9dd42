"""Lives of groups in a sample whose thresholds move: which are dropped, and which are in doubt.

``queries/plan/sampling/long_groups.py`` says what both means.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.row_hashes import KeptGroups
from gscope.engine.running.vectors import compute

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from gscope.engine.running.rows import EpochEnd
    from gscope.engine.running.vectors import Vector
    from gscope.engine.watermarks.trim import GroupTrim

    Array = NDArray[Any]

DOUBT = "u"
"""The column of a state that says of which groups the state is unknown."""


class Lives:
    """The lives of the groups of a fold.

    Args:
        trim: the thresholds; None if they have not moved yet.
        keys: the keys of all groups, by place, under their names in the query.
        groups: the number of groups.

    Attributes:
        in_doubt: whether it is unknown how long a group has lived, by place.
        left_out: the number of states dropped and of answers left out so far.
    """

    def __init__(self, trim: GroupTrim | None, keys: pa.Table, groups: int) -> None:
        self._closing = None if trim is None else trim.closing
        self._kept = None if trim is None else KeptGroups(trim, keys)
        self.in_doubt = np.zeros(groups, np.bool_)
        self.left_out = 0

    def ended(self, epoch: int, live: Array) -> Array | None:
        """Return which of the live groups an epoch's threshold ends; None if none."""
        above = None if self._kept is None else self._kept.left_out(epoch, live)
        if above is not None:
            self.left_out += int(np.count_nonzero(above))
        return above

    def begin(self, epoch: int, new: Array) -> None:
        """Take note of groups that have no state, and tuples in an epoch."""
        self.in_doubt[new] = False
        above = None if self._kept is None else self._kept.left_out(epoch - 1, new)
        if above is not None:
            self.in_doubt[new[above]] = True

    def answered(self, end: EpochEnd) -> EpochEnd:
        """Return the end of an epoch without the groups in doubt."""
        doubt = self.in_doubt[end.places]
        if not doubt.any():
            return end
        self.left_out += int(np.count_nonzero(doubt))
        return end.take(np.flatnonzero(~doubt))

    def closed(self, closes: Array, live: Array, leaf: Callable[[str], Vector]) -> Array:
        """Return which live groups close; of those in doubt only what needs no history counts.

        Args:
            closes: what CLOSING_WHEN says.
            live: the places of the live groups.
            leaf: returns a column of the live groups.
        """
        doubt = self.in_doubt[live]
        if not doubt.any():
            return closes
        assert self._closing is not None, "a threshold that never rises leaves no group in doubt"
        surely = compute(self._closing, leaf, len(live)).is_true()
        return np.where(doubt, surely, closes)

    def restore(self, places: Array, state: pa.Table) -> None:
        """Take note of the groups of an earlier state that are in doubt."""
        if DOUBT in state.column_names:
            self.in_doubt[places] = state[DOUBT].to_numpy()

    def saved(self, table: pa.Table, live: Array) -> pa.Table:
        """Return a state with the groups in doubt; itself while thresholds have not moved."""
        if self._kept is None:
            return table
        return table.append_column(DOUBT, pa.array(self.in_doubt[live]))
