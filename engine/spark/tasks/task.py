"""Work that Spark's tasks do with Arrow and numpy instead of SQL.

A fresh JVM spends most of a step compiling the code of its plans, which does not pay before some
hundred thousand rows; Arrow's kernels are compiled already. A task reads whole files, writes its
answer itself and returns what it wrote and counted: there is no exchange, and no row enters Java.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import field
from typing import TYPE_CHECKING, Protocol, TypeVar

import pyarrow as pa

from gscope.engine.running.vectors import arrow_type
from gscope.engine.storage.counts import Counts
from gscope.engine.storage.parquet_files import FileWriter, part_name
from gscope.engine.storage.transfer.access import parquet_rows, read_parquet, using
from gscope.engine.storage.transfer.run_files import files_of
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.texts import as_bytes, as_text
from gscope.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.storage.parquet_files import WrittenFile
    from gscope.queries.expressions.expressions import Column
    from gscope.queries.expressions.schema import Schema

_I = TypeVar("_I")
_R = TypeVar("_R", covariant=True)

TASK_ROWS = 100_000
"""Groups of epochs are packed into tasks of this size: more tasks cost more than they gain."""

MAX_TASK_ROWS = 4_000_000
"""The most rows that one task holds in memory; Spark's own operators, which spill, take more."""


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of the one attempt of a task that counts.

    Attributes:
        file: the file that it wrote.
        counts: the counts besides its rows.
        cpu_ns: the CPU time of its thread meanwhile, in ns.
    """

    file: WrittenFile
    counts: Counts = field(default_factory=Counts)
    cpu_ns: int = 0


STORED = {GsqlType.IP: pa.binary(16), GsqlType.STRING: pa.binary()}
"""The types in segments of the log, where Spark has others."""


class Task(Protocol):
    """The work of one task; it is sent to Spark's workers."""

    def run(self, write: Callable[[pa.Table], None]) -> Counts:
        """Write rows, at least one table, and return what was counted."""


@dataclass(frozen=True, slots=True)
class FileTask:
    """A task that writes one file.

    Attributes:
        task: the work.
        folder: the folder of the file.
        number: the number of the file in the folder, in the order of epochs.
        temporal: the names of the temporal columns that are written.
        texts: the names of the STRING columns that are written in Spark's form, as other operators
            may be SQL; answers that nothing reads hold bytes.
    """

    task: Task
    folder: Path
    number: int
    temporal: tuple[str, ...]
    texts: tuple[str, ...] = ()

    def run(self, attempt: str) -> TaskResult:
        """Do the work; ``attempt`` makes the name of the file unique."""
        began_ns = time.thread_time_ns()
        writer = FileWriter(self.folder, part_name(self.number, attempt), self.temporal)
        counts = self.task.run(lambda table: writer.write(with_texts(table, self.texts)))
        file = writer.close()
        assert file is not None
        return TaskResult(file, counts, time.thread_time_ns() - began_ns)


def texts_of(schema: Schema) -> tuple[str, ...]:
    """Return the names of the STRING columns of a schema."""
    return tuple(each.name for each in schema.columns if each.type is GsqlType.STRING)


def with_texts(table: pa.Table, texts: Iterable[str]) -> pa.Table:
    """Return rows with the STRING columns ``texts`` in Spark's form."""
    for name in texts:
        place = table.schema.get_field_index(name)
        table = table.set_column(place, name, as_text(table[name]))
    return table


class Runnable(Protocol[_R]):
    """What an attempt of a task does."""

    def run(self, attempt: str) -> _R:
        """Do the work; ``attempt`` makes the names of files unique."""


def run_tasks(session: SparkSession, tasks: Sequence[Runnable[_R]]) -> list[_R]:
    """Run ``tasks`` as one Spark job, started in their order, and return their results.

    Spark may attempt a task more than once. One attempt returns its result, which names its file;
    other attempts write files of other names.
    """
    return run_attempts(session, tasks, lambda task, attempt: task.run(attempt))


def measured_attempts(
    session: SparkSession, items: Sequence[_I], work: Callable[[_I, str], _R]
) -> tuple[list[_R], int]:
    """Return what ``run_attempts`` does, and the CPU time of tasks in ns."""

    def measured(item: _I, attempt: str) -> tuple[_R, int]:
        began_ns = time.thread_time_ns()
        result = work(item, attempt)
        return result, time.thread_time_ns() - began_ns

    done = run_attempts(session, items, measured)
    return [result for result, _ in done], sum(cpu_ns for _, cpu_ns in done)


def run_attempts(
    session: SparkSession, items: Sequence[_I], work: Callable[[_I, str], _R]
) -> list[_R]:
    """Return the result of ``work`` for each item, each in a task, with a name of its attempt."""
    if not items:
        return []
    # Loaded with Spark only: the job runs the tasks of small steps itself.
    from pyspark import TaskContext

    from gscope.engine.spark.cluster.placement import one_task_each

    # Workers of a killed job may still write to the same folder.
    job = secrets.token_hex(4)
    files = files_of(session)
    access = None if files is None else files.access

    def attempted(item: _I) -> _R:
        context = TaskContext.get()
        assert context is not None
        with using(access):
            return work(item, f"{job}-{context.taskAttemptId()}")

    return one_task_each(session, items).map(attempted).collect()


def read_files(files: Sequence[str], columns: Iterable[Column]) -> pa.Table:
    """Return these columns of all rows of Parquet files, or the bare rows without columns."""
    columns = list(columns)
    kinds = {column.name: column.type for column in columns}
    if not files:
        return no_rows(columns)
    if not kinds:
        # Joined tables without columns would have no rows.
        return pa.table({"": pa.nulls(sum(map(parquet_rows, files)))})
    tables = [_as_stored(read_parquet(file, list(kinds)), kinds) for file in files]
    # The log stores integers in few bits, a step in 64.
    return pa.concat_tables(tables, promote_options="permissive")


def _as_stored(table: pa.Table, kinds: Mapping[str, GsqlType]) -> pa.Table:
    """Return rows in the form of the log.

    Folds and Spark write addresses without a length, and text.
    """
    for name, kind in kinds.items():
        column = stored = table[name]
        if kind is GsqlType.IP and pa.types.is_binary(column.type):
            column = column.cast(STORED[kind])
        elif kind is GsqlType.STRING:
            column = as_bytes(column)
        if column is not stored:
            table = table.set_column(table.schema.get_field_index(name), name, column)
    return table


def no_rows(columns: Iterable[Column]) -> pa.Table:
    """Return a table without rows, with columns as segments of the log have them."""
    kinds = {column.name: column.type for column in columns}
    return pa.schema([(n, STORED.get(k, arrow_type(k))) for n, k in kinds.items()]).empty_table()
