"""The partition of each row, by a time in it, as a path of folders that DuckDB and Spark prune.

``date=2026-11-24/hour=9`` holds the rows of one hour in UTC. The folders' names carry the values;
the files in them do not repeat them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from gscope.cli.config.partition_unit import PARTITION_OPTION, PartitionUnit
from gscope.errors import UsageError
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MAX_INT
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from gscope.queries.expressions.schema import ColumnSchema, Schema

NO_TIME = "__HIVE_DEFAULT_PARTITION__"
"""The value of rows without a time, which DuckDB and Spark read as NULL."""

_KEYS = {
    PartitionUnit.MONTH: ("month",),
    PartitionUnit.DAY: ("date",),
    PartitionUnit.HOUR: ("date", "hour"),
    PartitionUnit.MINUTE: ("date", "hour", "minute"),
}
_NUMPY_UNITS = {
    PartitionUnit.MONTH: "M",
    PartitionUnit.DAY: "D",
    PartitionUnit.HOUR: "h",
    PartitionUnit.MINUTE: "m",
}


@dataclass(frozen=True, slots=True)
class TimePartitions:
    """The partitions of one answer.

    Attributes:
        unit: what a partition covers.
        column: the column with the time.
        unit_ns: the nanoseconds that 1 stands for in it.
        is_integer: whether it is an INT, whose values may be no times after all: those below 0 and
            those beyond the year 2262.
    """

    unit: PartitionUnit
    column: str
    unit_ns: int
    is_integer: bool

    @classmethod
    def of(cls, query: str, schema: Schema, unit: PartitionUnit) -> TimePartitions:
        """Return the partitions of an answer.

        Args:
            query: its name.
            schema: its visible columns. The time is the first one by which rows are ordered in
                time, otherwise the first that is a time.
            unit: what a partition covers.

        Raises:
            UsageError: no column is a time, or one has the name of a partition column.
        """
        names = {name.lower(): name for name in schema.names}
        for key in _KEYS[unit]:
            if key in names:
                message = (
                    f"{PARTITION_OPTION} {unit} names folders {key}=…, and the answer {query} has a"
                    f" column {names[key]}; rename the column with AS"
                )
                raise UsageError(message)
        times = [column for column in schema.columns if _is_time(column)]
        if not times:
            message = (
                f"{PARTITION_OPTION} {unit} requires a time, but no column of the answer {query} is"
                " one; select time, time/60 AS tb or timestamp"
            )
            raise UsageError(message)
        column = next((each for each in times if each.ordering.is_temporal), times[0])
        is_integer = column.type is GsqlType.INT
        unit_ns = column.clock.unit_ns if is_integer and column.clock is not None else 1
        return cls(unit, column.name, unit_ns, is_integer)

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the partition columns, from the outermost folder."""
        return _KEYS[self.unit]

    @property
    def without_time(self) -> str:
        """The path of rows without a time."""
        return "/".join(f"{key}={NO_TIME}" for key in self.keys)

    def split(self, table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
        """Yield the path of each partition and its rows.

        The rows are in the order that they have in ``table``.
        """
        if not table.num_rows:
            return
        numbers = pc.cast(table[self.column], pa.int64())
        is_known = np.asarray(pc.is_valid(numbers))
        values = np.asarray(pc.fill_null(numbers, 0))
        if self.is_integer:
            is_known = is_known & (values >= 0) & (values <= MAX_INT // self.unit_ns)
        buckets, places = self._buckets(np.where(is_known, values, 0) * self.unit_ns)
        places = np.where(is_known, places, len(buckets))
        order = np.argsort(places, kind="stable")
        if (np.diff(places) < 0).any():
            table = table.take(pa.array(order))
        found, begins = np.unique(places[order], return_index=True)
        ends = np.append(begins[1:], table.num_rows)
        for bucket, begin, end in zip(found, begins, ends, strict=True):
            path = self.without_time if bucket == len(buckets) else self._path(buckets[bucket])
            yield path, table.slice(int(begin), int(end - begin))

    def _buckets(
        self, times_ns: NDArray[np.int64]
    ) -> tuple[NDArray[np.datetime64], NDArray[np.intp]]:
        """Return the distinct beginnings of partitions, and which one each time is in."""
        times = times_ns.view("datetime64[ns]").astype(f"datetime64[{_NUMPY_UNITS[self.unit]}]")
        return np.unique(times, return_inverse=True)

    def _path(self, begin: np.datetime64) -> str:
        """Return the path of a partition from numpy's ISO 8601 text of its begin."""
        date, _, clock = str(begin).partition("T")
        # Without a leading zero, which DuckDB takes for text.
        values = (date, *(int(part) for part in clock.split(":") if part))
        return "/".join(f"{key}={value}" for key, value in zip(self.keys, values, strict=True))


def _is_time(column: ColumnSchema) -> bool:
    if column.type is GsqlType.TIMESTAMP:
        return True
    return column.type is GsqlType.INT and column.clock is not None
