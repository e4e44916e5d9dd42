"""Rows of a step as files: answers that are staged for their commit, and carries."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.engine.spark.sql.inputs import condition
from gscope.engine.spark.staging.frame_files import write_frame
from gscope.engine.steps.steps import Carry
from gscope.engine.storage.commits import Output
from gscope.engine.storage.parquet_files import FileWriter
from gscope.engine.watermarks.bounds import ENDED
from gscope.queries.plan.program import QueryInput
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.operators.base import Work
    from gscope.engine.storage.commits import CommitLog
    from gscope.engine.watermarks.bounds import Bound
    from gscope.engine.watermarks.release import ReleasedInput
    from gscope.queries.plan.program import Program


class Outputs:
    """Writer of what a step answers and of what it keeps.

    Methods may be called from several threads.
    """

    def __init__(self, program: Program, commits: CommitLog) -> None:
        self._program = program
        self._commits = commits
        self._index = {node.query: index for index, node in enumerate(program.nodes)}
        self._nodes = {
            result: program.node(source.query)
            for result, source in program.results
            if isinstance(source, QueryInput)
        }

    def stage(self, result: str, step: int, ending: str) -> tuple[str, Path]:
        """Return the path of an output, and the place where it is written before its commit."""
        path = f"{result}/{step:012d}{ending}"
        staged = self._commits.staged(path)
        staged.parent.mkdir(exist_ok=True)
        return path, staged

    def groups(self, query: str, step: int, kind: str = "groups") -> Path:
        """Return the folder for rows of ``query`` that only operators of the same step read.

        It is deleted after the step; ``kind`` distinguishes several.
        """
        return self._commits.carry / f"{step:012d}-{self._index[query]}-{kind}"

    def write(self, result: str, step: int, frame: DataFrame, *, is_small: bool) -> Output | None:
        """Write the rows of a result, and return its output; None if there are none.

        Rows are written in no particular order: delivery sorts them.
        """
        path, staged = self.stage(result, step, ".arrow" if is_small else ".parquet")
        if is_small:
            table = frame.coalesce(1).toArrow()
            if table.num_rows == 0:
                return None
            with pa.ipc.new_file(staged, table.schema) as writer:
                writer.write_table(table)
            return Output(result, path, table.num_rows)
        temporal = [column.name for column in self._nodes[result].schema.temporal]
        return Output.of_files(result, path, write_frame(frame, staged, temporal))

    def carry(
        self,
        work: Work,
        side: int,
        upstream: str,
        step: int,
        frame: DataFrame,
        *,
        is_small: bool,
    ) -> Carry | None:
        """Write the rows of ``upstream`` that a side of ``work`` may not read yet.

        Return None if the side has read all of them.
        """
        epoch = work.inputs[side].epoch
        assert epoch is not None
        query = work.node.query
        taken = work.inputs[side]
        kept = condition(epoch, kept_from(work, taken, upstream), ENDED)
        # Without a condition nothing was released, and all rows are kept.
        rest = frame.where(kept) if kept else frame
        name = f"{step:012d}-{self._index[query]}-{side}-{self._index[upstream]}"
        batch = self._keep(name, upstream, step, rest, is_small=is_small)
        return None if batch is None else Carry(query, side, batch)

    def carry_folder(self, query: str, side: int, upstream: str, step: int) -> Path:
        """Return the folder for rows of ``upstream`` that a side of ``query`` may not read yet."""
        name = f"{step:012d}-{self._index[query]}-{side}-{self._index[upstream]}"
        return self._commits.carry / name

    def carry_file(self, query: str, side: int, upstream: str, step: int) -> Path:
        """Return the file for the same rows if one file holds them."""
        folder = self.carry_folder(query, side, upstream, step)
        return folder.with_name(f"{folder.name}.parquet")

    def read_again(
        self,
        work: Work,
        side: int,
        upstream: str,
        step: int,
        frame: DataFrame,
        *,
        is_small: bool,
    ) -> Batch | None:
        """Write the rows of ``upstream`` that a side of ``work`` reads from a file in this step.

        Return None if there are none. The commit of the step deletes the file.
        """
        query = work.node.query
        name = f"read-{step:012d}-{self._index[query]}-{side}-{self._index[upstream]}"
        return self._keep(name, upstream, step, frame, is_small=is_small)

    def _keep(
        self, name: str, upstream: str, step: int, frame: DataFrame, *, is_small: bool
    ) -> Batch | None:
        """Write ``frame`` to one file in the carry folder; return None if it has no rows."""
        temporal = [column.name for column in self._program.schema(upstream).temporal]
        one = frame.coalesce(1)
        if is_small:
            writer = FileWriter(self._commits.carry, f"{name}.parquet", temporal)
            writer.write(one.toArrow())
            file = writer.close()
        else:
            (file,) = write_frame(one, self._commits.carry / name, temporal) or (None,)
            file = file and replace(file, name=f"{name}/{file.name}")
        if file is None or file.rows == 0:
            return None
        return Batch(upstream, step, file.name, file.rows, file.size_bytes, file.extents)


def kept_from(work: Work, taken: ReleasedInput, upstream: str) -> Bound:
    """Return the value from which on a side keeps the epochs of ``upstream`` for later steps."""
    least = work.high + taken.epoch_range.first
    if upstream in taken.overdue:
        least = max(least, work.low + taken.epoch_range.last)
    return least
