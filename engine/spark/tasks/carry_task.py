"""Rows of a step that wait for a later one.

They are chosen with numpy from files that tasks have written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.spark.staging.outputs import kept_from
from gscope.engine.spark.tasks.columns import TaskRows
from gscope.engine.spark.tasks.released_rows import UNKNOWN, between
from gscope.engine.spark.tasks.task import read_files, texts_of, with_texts
from gscope.engine.storage.parquet_files import FileWriter
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.queries.expressions.expressions import Column
from gscope.queries.streams.messages import Batch
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.expressions.expressions import Expression
    from gscope.queries.expressions.schema import Schema


@dataclass(frozen=True, slots=True)
class KeptRows:
    """The rows of a query that a side may not read yet.

    Attributes:
        upstream: the query.
        schema: its columns.
        condition: the condition that they satisfy; None if all rows wait.
    """

    upstream: str
    schema: Schema
    condition: Expression | None

    def written(self, files: Sequence[str], path: Path, step: int) -> Batch | None:
        """Write those of some files to ``path``; return None if there are none."""
        columns = [Column(each.name, each.type, is_nullable=True) for each in self.schema.columns]
        rows = TaskRows.of_table(read_files(files, columns)).where(self.condition)
        if not rows.count:
            return None
        writer = FileWriter(path.parent, path.name, [each.name for each in self.schema.temporal])
        table = pa.table({each.name: rows.column(each) for each in columns})
        writer.write(with_texts(table, texts_of(self.schema)))
        file = writer.close()
        assert file is not None
        return Batch(self.upstream, step, file.name, file.rows, file.size_bytes, file.extents)


def kept_rows(work: Work, taken: ReleasedInput, upstream: str, schema: Schema) -> KeptRows | None:
    """Return what a side of ``work`` keeps of ``upstream``; None if Spark must choose the rows."""
    if taken.epoch is None:
        return None
    least = kept_from(work, taken, upstream)
    if least == NOTHING:
        return KeptRows(upstream, schema, None)
    condition = between(taken.epoch, least, ENDED)
    return None if condition is UNKNOWN else KeptRows(upstream, schema, condition)
