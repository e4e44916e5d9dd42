"""The column by which the rows of an answer are ordered first, and its bounds."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

from gscope.records import dataclass

if TYPE_CHECKING:
    import pyarrow as pa

    from gscope.engine.watermarks.bounds import Bound


@dataclass(frozen=True, slots=True)
class OrderColumn:
    """A temporal column, by the name under which it is promised: ``-f`` for a decreasing column f.

    Bounds are the promised ones: negated for a decreasing column.
    """

    promised: str

    @property
    def name(self) -> str:
        """Return the name of the column."""
        return self.promised.removeprefix("-")

    @property
    def falls(self) -> bool:
        """Return whether its values decrease."""
        return self.promised.startswith("-")

    def first(self, table: pa.Table | None) -> Bound:
        """Return the bound below which ``table``, whose rows are in order, has no rows."""
        if table is None or not table.num_rows:
            return math.inf
        value = table[self.name][0].as_py()
        if value is None:
            return -math.inf
        first: Bound = -value if self.falls else value
        return first

    def count_below(self, rows: pa.Table, bound: Bound) -> int:
        """Return the number of ``rows``, which are in order, below ``bound``; NULL is below all."""
        if bound == math.inf:
            return int(rows.num_rows)
        column = rows[self.name]

        def is_not_below(place: int) -> bool:
            value = column[place].as_py()
            return value is not None and bool((-value if self.falls else value) >= bound)

        return bisect_left(range(rows.num_rows), True, key=is_not_below)
