"""The groups that a threshold leaves out.

Groups that live longer than an epoch, in windows and in running aggregates, are left out where
their keys are known, not where their rows are read.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Any

import numpy as np

from gscope.queries.plan.partitioning.row_hashes import row_hashes
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD

if TYPE_CHECKING:
    import pyarrow as pa
    from numpy.typing import NDArray

    from gscope.engine.watermarks.trim import GroupTrim, ThresholdRange

    Array = NDArray[Any]


class KeptGroups:
    """The groups that a sample keeps, of some epochs or windows.

    Args:
        trim: the thresholds of these epochs.
        keys: the keys of all groups, by place.
    """

    def __init__(self, trim: GroupTrim, keys: pa.Table) -> None:
        self._trim = trim
        self._keys = keys
        self._ends = [each.end for each in trim.ranges]
        self._computed: Array | None = None

    def left_out(self, epoch: int, places: Array) -> Array | None:
        """Return which of the groups at ``places`` are above the threshold of an epoch.

        None if none is.
        """
        threshold = self._range(epoch).threshold
        if threshold == FULL_THRESHOLD or not len(places):
            return None
        above: Array = self._hashes()[places] > np.uint64(threshold)
        return above if above.any() else None

    def is_whole(self, epoch: int) -> bool:
        """Return whether no group with rows in an epoch can be above its threshold."""
        return self._range(epoch).is_whole

    def _range(self, epoch: int) -> ThresholdRange:
        return self._trim.ranges[bisect_right(self._ends, epoch)]

    def _hashes(self) -> Array:
        if self._computed is None:
            self._computed = row_hashes(self._keys, self._trim.terms, self._trim.key)
        return self._computed
