"""Selections with numpy inside Spark's tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.spark.tasks.columns import TaskRows, columns_of, is_column, is_computable
from gscope.engine.spark.tasks.task import read_files
from gscope.engine.storage.payload_counts import payload_counts
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.storage.counts import Counts
    from gscope.queries.plan.program import SelectionNode


@dataclass(frozen=True, slots=True)
class SelectTask:
    """The selection of the rows of some files by one task."""

    node: SelectionNode
    files: tuple[str, ...]

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the selected columns; see ``Task``."""
        node = self.node
        expressions = [column.expression for column in node.columns]
        read = columns_of(node.predicate, *expressions)
        rows = TaskRows.of_table(read_files(self.files, read))
        rows = rows.where(node.predicate)
        write(pa.table({each.name: rows.column(each.expression) for each in node.columns}))
        return payload_counts(rows.outcomes)


def is_plain_selection(node: SelectionNode) -> bool:
    """Return whether a ``SelectTask`` can evaluate ``node``.

    It computes numbers, reads texts, and passes on all other columns.
    """
    is_chosen = node.predicate is None or is_computable(node.predicate)
    expressions = [column.expression for column in node.columns]
    reads = next(columns_of(node.predicate, *expressions), None)
    return is_chosen and reads is not None and all(map(is_column, expressions))
