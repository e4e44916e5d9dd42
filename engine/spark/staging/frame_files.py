"""Rows of a DataFrame as Parquet files, which Spark writes, checked against its tasks' counts."""

from __future__ import annotations

import json
import re
import secrets
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from gscope.engine.spark.sql.expressions import quote
from gscope.engine.spark.sql.file_frames import map_arrow
from gscope.engine.storage.parquet_files import (
    FileWriter,
    WrittenFile,
    compare,
    files_in,
    part_name,
)
from gscope.engine.storage.transfer.access import using
from gscope.engine.storage.transfer.run_files import files_of
from gscope.errors import EngineError
from gscope.queries.streams.messages import Extent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.storage.transfer.access import FileAccess

_PLAIN_PARQUET = {
    "compression": "none",
    "parquet.enable.dictionary": "false",
    # A row group is in the heap until it is written, and again when it is read.
    "parquet.block.size": str(16 << 20),
    # The default is to look at sizes after 100 rows, which may have 256 KiB in each column.
    "parquet.block.size.row.check.min": "8",
    "parquet.page.size.row.check.min": "8",
}
"""These files are read once, soon, from the page cache: compression and dictionaries do not pay."""

_REMEDY = "executors must share the folder of the job"


_TASK = "$task"
"""The column with the number of the task that writes a row; it is observed, not written."""

_FILE_NAME = re.compile(r"(.*/)?part-([0-9]+)-")
"""The name that Spark gives a file: its folder, and the number of the task."""


def write_frame(
    frame: DataFrame, folder: Path, temporal: Sequence[str], partition_by: str | None = None
) -> list[WrittenFile]:
    """Write the rows of ``frame`` to ``folder``, and return the files, by name.

    Spark's driver chooses the attempt whose files count. Spark reports neither which files these
    are nor what they hold, but it names them by the number of their task. The results of the tasks
    therefore report the number of rows, their distribution over the tasks, and the extents of the
    temporal columns, and all of these must match the files found here. Otherwise the files of an
    executor that does not share the folder would be missing without notice.

    Raises:
        EngineError: the folder does not hold what the tasks wrote.
    """
    from pyspark.sql import Observation, functions

    run_files = files_of(frame.sparkSession)
    if run_files is not None and not run_files.is_shared:
        return _write_in_tasks(frame, folder, temporal, partition_by, run_files.access)
    counted = Observation()
    task = functions.col(quote(_TASK))
    counts = [functions.count(functions.lit(1)).alias("rows")]
    for name, total in (
        ("by_task", functions.sum(task)),
        ("by_square", functions.sum(task * task)),
    ):
        counts.append(functions.coalesce(total, functions.lit(0)).alias(name))
    for number, name in enumerate(temporal):
        column = functions.col(quote(name))
        counts += [functions.min(column).alias(f"least{number}")]
        counts += [functions.max(column).alias(f"greatest{number}")]
    numbered = frame.withColumn(_TASK, functions.spark_partition_id().cast("bigint"))
    writer = numbered.observe(counted, *counts).drop(_TASK).write.options(**_PLAIN_PARQUET)
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.parquet(str(folder))
    pattern = "*.parquet" if partition_by is None else "*/*.parquet"
    try:
        files = files_in(folder, pattern, temporal)
    except (OSError, pa.ArrowException) as error:
        message = f"cannot read what tasks wrote to {folder}: {error}; {_REMEDY}"
        raise EngineError(message) from error
    _ensure_whole(folder, files, counted.get, temporal)
    return files


def _write_in_tasks(
    frame: DataFrame,
    folder: Path,
    temporal: Sequence[str],
    partition_by: str | None,
    access: FileAccess,
) -> list[WrittenFile]:
    """Write the rows of ``frame`` as ``write_frame`` does, by tasks that do not share the folder.

    Spark's own writers can only write to folders that they see. Each task reports its files as one
    row for each; Spark passes on the rows of one attempt.
    """
    folder.mkdir()
    job = secrets.token_hex(4)
    columns = list(temporal)

    def written(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        name = part_name(context.partitionId(), f"{job}-{context.taskAttemptId()}")
        with using(access):
            writers: dict[str, FileWriter] = {}
            for batch in batches:
                for inside, rows in _portions(pa.Table.from_batches([batch]), partition_by):
                    if inside not in writers:
                        place = folder / inside if inside else folder
                        if access.is_here:
                            place.mkdir(exist_ok=True)
                        writers[inside] = FileWriter(place, name, columns)
                    writers[inside].write(rows)
            reports = []
            for inside, writer in writers.items():
                file = writer.close()
                assert file is not None
                reports.append(json.dumps([inside, asdict(file)]))
        yield pa.record_batch({"report": pa.array(reports, pa.string())})

    table = map_arrow(frame, written, "report string").toArrow()
    files = [_reported(text) for text in table["report"].to_pylist()]
    for file in files:
        compare(folder, file)
    return sorted(files, key=lambda file: file.name)


def _portions(table: pa.Table, partition_by: str | None) -> Iterator[tuple[str, pa.Table]]:
    """Yield the folder and the rows of each value of ``partition_by``; all rows without one."""
    if partition_by is None:
        yield "", table
        return
    rest = table.drop_columns(partition_by)
    for value in table[partition_by].unique().to_pylist():
        yield f"{partition_by}={value}", rest.filter(pc.equal(table[partition_by], value))


def _reported(text: str) -> WrittenFile:
    inside, file = json.loads(text)
    extents = tuple(Extent(**extent) for extent in file.pop("extents"))
    name = f"{inside}/{file.pop('name')}" if inside else file.pop("name")
    return WrittenFile(name=name, extents=extents, **file)


def _ensure_whole(
    folder: Path, files: Sequence[WrittenFile], counted: dict[str, Any], temporal: Sequence[str]
) -> None:
    tasks = _tasks(folder, files)
    found: dict[str, Any] = {
        "rows": sum(file.rows for file in files),
        "by_task": sum(file.rows * task for file, task in zip(files, tasks, strict=True)),
        "by_square": sum(file.rows * task**2 for file, task in zip(files, tasks, strict=True)),
    }
    for number, name in enumerate(temporal):
        extents = [e for file in files for e in file.extents if e.column == name]
        # A file may have no statistics, for instance because of a NaN.
        if len(extents) == sum(file.rows > 0 for file in files) > 0:
            found[f"least{number}"] = min(extent.least for extent in extents)
            found[f"greatest{number}"] = max(extent.greatest for extent in extents)
    expected = {name: counted[name] for name in found}
    if found != expected:
        message = (
            f"rows in {folder} differ from those that tasks reported: expected {expected},"
            f" got {found}; {_REMEDY}"
        )
        raise EngineError(message)


def _tasks(folder: Path, files: Sequence[WrittenFile]) -> list[int]:
    """Return the number of the task that wrote each file; a task writes one to a folder."""
    tasks: dict[tuple[str, int], str] = {}
    for file in files:
        match = _FILE_NAME.match(file.name)
        if match is None:
            message = f"a file in {folder} is not Spark's: expected part-NUMBER-…, got {file.name}"
            raise EngineError(message)
        place = match[1] or "", int(match[2])
        if place in tasks:
            message = (
                f"task {place[1]} left two files in {folder}, {tasks[place]} and {file.name};"
                f" {_REMEDY}"
            )
            raise EngineError(message)
        tasks[place] = file.name
    return [number for _, number in tasks]
