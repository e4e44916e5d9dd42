"""Keys of groups as a set of rows: which packets belong to one of the groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from numpy.typing import NDArray

INTERFACE = "interface"


class GroupKeys:
    """A set of rows of keys. NULL equals NULL, as in GROUP BY.

    Each column's values are numbered; the numbers of the columns so far, as one number, are
    numbered again with each column, so that no number of combinations overflows.

    Args:
        table: the rows, a column for each key. The column ``""`` is not a key, so that there can be
            a row without keys.
    """

    def __init__(self, table: pa.Table) -> None:
        self._rows = table.num_rows
        self._steps: list[tuple[str, Any, NDArray[np.int64]]] = []
        codes = np.zeros(table.num_rows, np.int64)
        for name in filter(None, table.column_names):
            column = _plain(table[name])
            values = pc.unique(column)
            codes = codes * len(values) + _numbers(column, values)
            known, codes = np.unique(codes, return_inverse=True)
            self._steps.append((name, values, known))

    def contain(self, rows: pa.RecordBatch, interface: str) -> NDArray[np.bool_]:
        """Return for each of ``rows``, all of one interface, whether its keys are in the set."""
        found = np.full(rows.num_rows, self._rows > 0)
        codes = np.zeros(rows.num_rows, np.int64)
        for name, values, known in self._steps if self._rows else ():
            if name == INTERFACE and INTERFACE not in rows.schema.names:
                column = pa.chunked_array([[interface.encode()] * rows.num_rows], pa.binary())
            else:
                column = _plain(pa.chunked_array([rows[name]]))
            numbers = _numbers(column, values)
            found &= numbers >= 0
            codes = codes * len(values) + np.maximum(numbers, 0)
            places = np.minimum(np.searchsorted(known, codes), len(known) - 1)
            found &= known[places] == codes
            codes = places
        return found


def _numbers(column: Any, values: Any) -> NDArray[np.int64]:
    """Return the number of each value of ``column`` among ``values``; -1 for others."""
    numbers = pc.fill_null(pc.index_in(column, value_set=values), -1)
    return np.asarray(numbers.to_numpy()).astype(np.int64)


def _plain(column: pa.ChunkedArray) -> Any:
    """Return a column in the type that equal values have, wherever they come from."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_duration(kind) or pa.types.is_integer(kind):
        return column.cast(pa.int64())
    if pa.types.is_fixed_size_binary(kind) or pa.types.is_string(kind):
        return column.cast(pa.binary())
    return column
