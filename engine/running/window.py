"""Moving windows: the values of the last epochs of all groups at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from gscope.engine.running.vectors import Vector

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[Any]


class MovingWindow:
    """The values of the last epochs: one ring buffer for each group, all advancing together."""

    def __init__(self, groups: int, length: int, values: Vector) -> None:
        self._input = values
        self._length = length
        self._values = np.zeros((groups, length), values.values.dtype)
        self._valid = np.zeros((groups, length), np.bool_)
        self._oldest = 0

    def restore(self, places: Array, state: pa.Array) -> None:
        """Load what ``save`` returned."""
        flat = state.flatten()
        shape = (len(places), self._length)
        self._valid[places] = valid_of(flat).reshape(shape)
        self._values[places] = values_of(flat, self._values.dtype).reshape(shape)

    def begin(self, places: Array) -> None:
        """Clear the rings at ``places``."""
        self._valid[places] = False

    def push(self, live: Array, at: Array, rows: Array) -> None:
        """Replace the oldest epoch with the newest."""
        slot, self._oldest = self._oldest, (self._oldest + 1) % self._length
        self._valid[live, slot] = False
        some = self._input.take(rows)
        places = live[at][some.valid]
        self._values[places, slot] = some.values[some.valid]
        self._valid[places, slot] = True

    def total(self, live: Array) -> Vector:
        """Return the sum of each window, oldest first: sums of FLOAT depend on the order."""
        total = np.zeros(len(live), self._values.dtype)
        has = np.zeros(len(live), np.bool_)
        with np.errstate(all="ignore"):
            for step in range(self._length):
                slot = (self._oldest + step) % self._length
                valid, values = self._valid[live, slot], self._values[live, slot]
                total = np.where(valid, np.where(has, total + values, values), total)
                has |= valid
        return Vector(total, has)

    def save(self, live: Array) -> pa.Array:
        """Return a list of values for each group, oldest epoch first."""
        order = (self._oldest + np.arange(self._length)) % self._length
        # two steps: indexed together, places and slots would select single values
        values, valid = self._values[live][:, order], self._valid[live][:, order]
        flat = pa.array(values.ravel(), mask=~valid.ravel())
        return pa.FixedSizeListArray.from_arrays(flat, self._length)


def valid_of(column: pa.Array) -> Array:
    """Return where a column of a state is not NULL."""
    valid: Array = column.is_valid().to_numpy(zero_copy_only=False)
    return valid


def values_of(column: pa.Array, dtype: Any) -> Array:
    """Return the values of a column of a state, 0 for NULL."""
    filled = column.fill_null(0) if column.null_count else column
    values: Array = filled.to_numpy(zero_copy_only=False).astype(dtype)
    return values
