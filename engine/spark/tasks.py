"""Work that Spark's tasks do with Arrow and numpy instead of SQL.

A fresh JVM spends most of a step compiling the code of its plans, and some hundred thousand rows are over before that
pays; Arrow's kernels are compiled already. A task reads whole files, writes its answer itself and says how
many rows it has: no exchange, and no row crosses into Java.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.running.vectors import arrow_type
from gscope.queries.catalog.types import GsqlType

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.plan.expressions import Column

TASK_ROWS = 100_000
"""Small groups of epochs are joined into tasks of this size: more tasks cost more than they gain."""

MAX_TASK_ROWS = 4_000_000
"""Rows one task holds in memory; Spark's own operators, which spill, take more."""


@dataclass(frozen=True, slots=True)
class Done:
    """What a task leaves beside its file.

    Attributes:
        rows: in the file.
        undecodable: payloads that a function could not read, by function.
    """

    rows: int
    undecodable: Counter[str] = field(default_factory=Counter)


_STORED = {GsqlType.IP: pa.binary(16), GsqlType.STRING: pa.binary()}
"""Types in segments, where Spark has others."""


class Task(Protocol):
    """One task; it travels to Spark's workers."""

    @property
    def target(self) -> Path:
        """The Parquet file that it writes."""

    def run(self) -> Done:
        """Do it."""


def run_tasks(session: SparkSession, tasks: Sequence[Task]) -> list[Done]:
    """Do ``tasks`` side by side as one Spark job, begun in their order; what each has left."""
    if not tasks:
        return []
    made: list[Done] = (
        session.sparkContext.parallelize(tasks, len(tasks)).map(lambda task: task.run()).collect()
    )
    return made


def read_files(files: Sequence[str], columns: Iterable[Column]) -> pa.Table:
    """These columns of all rows of Parquet files, of none if there is no file."""
    kinds = {column.name: column.type for column in columns}
    if not files:
        return pa.schema(
            [(name, _STORED.get(k, arrow_type(k))) for name, k in kinds.items()]
        ).empty_table()
    tables = [pq.read_table(file, columns=list(kinds), use_threads=False) for file in files]
    # The log stores integers as narrow as they are there, a step what it made as 64 bits.
    return pa.concat_tables(tables, promote_options="permissive")


def write_file(table: pa.Table, target: Path) -> None:
    """Write a file that is read once and soon: compression and dictionaries would only cost."""
    pq.write_table(table, target, compression="none", use_dictionary=False, write_statistics=False)
