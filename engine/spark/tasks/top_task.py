"""The first rows of each epoch with numpy inside Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gscope.engine.sinks.row_order import first_rows
from gscope.engine.spark.tasks.columns import TaskRows, columns_of
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.storage.counts import Counts
from gscope.queries.plan.row_order import sort_keys
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import TopNode
    from gscope.queries.plan.row_order import Order, SortKey


@dataclass(frozen=True, slots=True)
class FirstRows:
    """The first rows of each epoch, as ORDER BY and LIMIT determine them.

    Attributes:
        keys: the columns by which rows are ordered.
        limit: the number of rows that are kept of each epoch.
        epoch: the column of the epoch; None if all rows are of one.
    """

    keys: tuple[SortKey, ...]
    limit: int
    epoch: str | None

    @classmethod
    def kept_by(cls, order: Order | None, schema: Schema) -> FirstRows | None:
        """Return the rows that ``order`` keeps of rows of ``schema``; None if it keeps all."""
        if order is None or order.limit is None:
            return None
        return cls(sort_keys(schema, order), order.limit, order.epoch)

    def of(self, table: pa.Table) -> pa.Table:
        """Return the rows that are kept of all rows of some epochs."""
        return first_rows(table, self.keys, self.limit, self.epoch)


@dataclass(frozen=True, slots=True)
class TopTask:
    """The first rows of each epoch in some files, by one task.

    Attributes:
        node: the operator.
        files: the paths of the files, with all rows of their epochs.
        within: the condition that released rows satisfy; None if all rows are released.
    """

    node: TopNode
    files: tuple[str, ...]
    within: Expression | None = None

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the first rows; see ``Task``."""
        columns = [column.expression for column in self.node.columns]
        rows = TaskRows.of_table(read_files(self.files, columns_of(self.within, *columns)))
        table = rows.where(self.within).table(self.node.columns)
        top = FirstRows.kept_by(self.node.order, self.node.schema)
        write(table if top is None else top.of(table))
        return Counts()
