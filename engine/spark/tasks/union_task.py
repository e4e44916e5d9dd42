"""The rows of all sides of a merge, one after the other, inside Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.spark.tasks.columns import TaskRows, columns_of
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.storage.counts import Counts
from gscope.queries.expressions.expressions import Column
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema


@dataclass(frozen=True, slots=True)
class UnionTask:
    """The rows of the files of all sides, in one file; delivery puts them in order.

    Attributes:
        schema: the columns, which each side has by the same names.
        files: the paths of the files of each side.
        within: for each side, the condition that released rows satisfy, over that side alone; None
            if all are released.
    """

    schema: Schema
    files: tuple[tuple[str, ...], ...]
    within: tuple[Expression | None, ...]

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the released rows of all sides; see ``Task``."""
        columns = [Column(c.name, c.type, c.is_nullable) for c in self.schema.columns]
        sides = []
        for files, within in zip(self.files, self.within, strict=True):
            read = dict.fromkeys([*columns, *columns_of(within)])
            rows = TaskRows.of_table(read_files(files, read)).where(within)
            sides.append(pa.table({column.name: rows.column(column) for column in columns}))
        write(pa.concat_tables(sides, promote_options="permissive"))
        return Counts()
