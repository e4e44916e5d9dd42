"""Rows of a DataFrame as Parquet files that Spark writes, checked against what its tasks counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql import Observation, functions

from gscope.engine.spark.expressions import quote
from gscope.engine.written import files_in
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import DataFrame

    from gscope.engine.written import WrittenFile

_PLAIN_PARQUET = {"compression": "none", "parquet.enable.dictionary": "false"}
"""Read once, soon, from the page cache: compression and dictionaries would only cost."""


def write_frame(
    frame: DataFrame, folder: Path, temporal: Sequence[str], partition_by: str | None = None
) -> list[WrittenFile]:
    """Write the rows of ``frame`` to ``folder``; the files, by name.

    Spark's driver chooses the attempt whose files count. How many rows there are, and the extents
    of their temporal columns, comes back with the results of its tasks; files of an executor that
    does not share the folder would otherwise be missing without notice.

    Raises:
        EngineError: the folder does not hold what the tasks wrote.
    """
    counted = Observation()
    counts = [functions.count(functions.lit(1)).alias("rows")]
    for number, name in enumerate(temporal):
        column = functions.col(quote(name))
        counts += [functions.min(column).alias(f"least{number}")]
        counts += [functions.max(column).alias(f"greatest{number}")]
    writer = frame.observe(counted, *counts).write.options(**_PLAIN_PARQUET)
    if partition_by is not None:
        writer = writer.partitionBy(partition_by)
    writer.parquet(str(folder))
    pattern = "*.parquet" if partition_by is None else "*/*.parquet"
    files = files_in(folder, pattern, temporal)
    _ensure_whole(folder, files, counted.get, temporal)
    return files


def _ensure_whole(
    folder: Path, files: Sequence[WrittenFile], counted: dict[str, Any], temporal: Sequence[str]
) -> None:
    found: dict[str, Any] = {"rows": sum(file.rows for file in files)}
    for number, name in enumerate(temporal):
        extents = [e for file in files for e in file.extents if e.column == name]
        # A file may be without statistics, of NaN for one.
        if len(extents) == sum(file.rows > 0 for file in files) > 0:
            found[f"least{number}"] = min(extent.least for extent in extents)
            found[f"greatest{number}"] = max(extent.greatest for extent in extents)
    expected = {name: counted[name] for name in found}
    if found != expected:
        message = (
            f"tasks wrote other rows to {folder} than can be read here (expected {expected},"
            f" got {found}); executors must share the folder of the job"
        )
        raise EngineError(message)
