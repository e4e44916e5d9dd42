"""Rows of a step as files: answers, staged for their commit, and carries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql import functions

from gscope.engine.bounds import ENDED
from gscope.engine.commits import Output
from gscope.engine.spark.expressions import quote
from gscope.engine.spark.inputs import condition
from gscope.engine.steps import Carry
from gscope.queries.catalog.types import Direction
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import Column, DataFrame

    from gscope.engine.commits import CommitLog
    from gscope.engine.operators.base import Work
    from gscope.queries.catalog.schema import ColumnSchema, Schema
    from gscope.queries.plan.program import Program

_PLAIN_PARQUET = {"compression": "none", "parquet.enable.dictionary": "false"}
"""Read once, soon, from the page cache: compression and dictionaries would only cost."""


class Outputs:
    """Writes what a step answers and what it keeps.

    Methods may be called from several threads.
    """

    def __init__(self, program: Program, commits: CommitLog) -> None:
        self._program = program
        self._commits = commits
        self._index = {node.query: index for index, node in enumerate(program.nodes)}

    def stage(self, result: str, step: int, ending: str) -> tuple[str, Path]:
        """The path of an output, and where it is to be written before its commit."""
        path = f"{result}/{step:012d}{ending}"
        staged = self._commits.staged(path)
        staged.parent.mkdir(exist_ok=True)
        return path, staged

    def groups(self, query: str, step: int) -> Path:
        """Where rows of ``query`` that only operators of the step read are written; gone after the step."""
        return self._commits.carry / f"{step:012d}-{self._index[query]}-groups"

    def write(self, result: str, step: int, frame: DataFrame, *, is_small: bool) -> Output | None:
        """Write the rows of a result; None if there are none."""
        order = [_order(column) for column in self._program.schema(result).temporal]
        path, staged = self.stage(result, step, ".arrow" if is_small else ".parquet")
        if is_small:
            # A global sort behind an Arrow function would compute it twice, once to choose its ranges.
            one = frame.coalesce(1)
            table = (one.sortWithinPartitions(*order) if order else one).toArrow()
            if table.num_rows == 0:
                return None
            with pa.ipc.new_file(staged, table.schema) as writer:
                writer.write_table(table)
            return Output(result, path, table.num_rows)
        frame.write.options(**_PLAIN_PARQUET).parquet(str(staged))
        count = sum(pq.read_metadata(file).num_rows for file in staged.glob("*.parquet"))
        return Output(result, path, count)

    def carry(
        self, work: Work, side: int, upstream: str, step: int, frame: DataFrame
    ) -> Carry | None:
        """Keep the rows of ``upstream`` that a side of ``work`` may not read yet; None if all were."""
        epoch = work.inputs[side].epoch
        assert epoch is not None
        query = work.node.query
        # Nothing was released at all: everything is kept.
        taken = work.inputs[side]
        least = work.high + taken.window.first
        if upstream in taken.overdue:
            least = max(least, work.low + taken.window.last)
        kept = condition(epoch, least, ENDED)
        rest = frame.where(kept) if kept else frame
        name = f"{step:012d}-{self._index[query]}-{side}-{self._index[upstream]}"
        batch = self.keep(name, upstream, step, rest, self._program.schema(upstream))
        return None if batch is None else Carry(query, side, batch)

    def keep(
        self, name: str, stream: str, step: int, frame: DataFrame, schema: Schema
    ) -> Batch | None:
        """Write the rows of ``frame`` below the carry folder; None if there are none."""
        folder = self._commits.carry / name
        frame.coalesce(1).write.options(**_PLAIN_PARQUET).parquet(str(folder))
        files = sorted(folder.glob("*.parquet"))
        rows = sum(pq.read_metadata(file).num_rows for file in files)
        if rows == 0:
            return None
        table = pq.read_table(folder, columns=[column.name for column in schema.temporal])
        extents = []
        for column in table.column_names:
            bounds = pc.min_max(table[column]).as_py()
            if bounds["min"] is not None:
                extents.append(Extent(column, bounds["min"], bounds["max"]))
        size = sum(file.stat().st_size for file in files)
        return Batch(stream, step, name, rows, size, tuple(extents))


def _order(column: ColumnSchema) -> Column:
    """What rows are sorted by so that a temporal column moves its own way."""
    of = functions.col(quote(column.name))
    return of.desc() if column.ordering.direction is Direction.DECREASING else of.asc()
