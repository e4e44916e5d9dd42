"""Super nodes inside Spark's tasks.

What sub nodes have computed in partitions becomes one answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.spark.tasks.aggregate_task import answers_of, groups_of_parts
from gscope.engine.spark.tasks.columns import TaskRows
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.transfer.access import read_parquet
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    from gscope.engine.spark.tasks.aggregate_task import PartialMerge
    from gscope.engine.spark.tasks.top_task import FirstRows


@dataclass(frozen=True, slots=True)
class FoldAgain:
    """The super node of an aggregation: partial groups are folded, then filtered by HAVING.

    Attributes:
        merge: the aggregation.
        files: the paths of the sub nodes' files, at least one.
    """

    merge: PartialMerge
    files: tuple[str, ...]

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the answers; see ``Task``."""
        counts = Counts()
        groups = groups_of_parts(self.merge, _read(self.files), counts)
        table, found = answers_of(self.merge, TaskRows.of_table(groups))
        write(table)
        return counts + found


@dataclass(frozen=True, slots=True)
class FirstOfAll:
    """The super node of LIMIT: of the first rows of each part, the first.

    Attributes:
        top: the order, and how many rows of each epoch are kept.
        files: the paths of the sub nodes' files, at least one.
    """

    top: FirstRows
    files: tuple[str, ...]

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write the first rows; see ``Task``."""
        write(self.top.of(_read(self.files)))
        return Counts()


def _read(files: tuple[str, ...]) -> pa.Table:
    tables = [read_parquet(file) for file in files]
    return pa.concat_tables(tables, promote_options="permissive")
