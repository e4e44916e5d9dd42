"""Parquet files of a run as DataFrames, wherever tasks run.

Where all executors see the files, Spark reads them itself. Otherwise Python tasks fetch them, and
pass them to Spark as Arrow. Spark's modules are loaded by the first call: the job imports this
module also in runs that never start Spark.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gscope.engine.storage.transfer.access import read_parquet, using
from gscope.engine.storage.transfer.run_files import files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

    Batches = Iterator[pa.RecordBatch]

ROWS_OF_A_BATCH = 1 << 14


def frame_of_files(session: SparkSession, types: str, paths: Sequence[str]) -> DataFrame:
    """Return the rows of Parquet files.

    Args:
        session: the session.
        types: the columns and their types, as in SQL.
        paths: the paths of the files on the host of the job, at least one.
    """
    files = files_of(session)
    if files is None or files.is_shared:
        return session.read.schema(types).parquet(*paths)
    from pyspark.sql.pandas.types import to_arrow_schema
    from pyspark.sql.types import StructType

    from gscope.engine.spark.cluster.placement import numbers_in_tasks

    schema = StructType.fromDDL(types)
    assert isinstance(schema, StructType)
    arrow, names, access = to_arrow_schema(schema), schema.fieldNames(), files.access
    parts = _dealt(paths, int(session.conf.get("spark.sql.shuffle.partitions") or 1))

    def fetched(batches: Batches) -> Batches:
        with using(access):
            for batch in batches:
                for part in batch.column(0).to_pylist():
                    for path in parts[part]:
                        table = read_parquet(path, names).cast(arrow)
                        yield from table.to_batches(ROWS_OF_A_BATCH)

    return map_arrow(numbers_in_tasks(session, len(parts)), fetched, schema)


def map_arrow(
    frame: DataFrame, function: Callable[[Batches], Batches], schema: StructType | str
) -> DataFrame:
    """Return ``frame.mapInArrow(function, schema)``, for which PySpark asks for pandas in vain."""
    from pyspark.sql import DataFrame
    from pyspark.sql.udf import UserDefinedFunction
    from pyspark.util import PythonEvalType

    udf = UserDefinedFunction(
        function,
        schema,
        evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF,
    )
    column = udf(*[frame[name] for name in frame.columns])
    return DataFrame(frame._jdf.mapInArrow(column._jc, False, None), frame.sparkSession)


def _dealt(paths: Sequence[str], most: int) -> list[list[str]]:
    """Deal paths to at most ``most`` parts, neighbours to the same."""
    count = max(1, min(most, len(paths)))
    ends = [len(paths) * number // count for number in range(count + 1)]
    return [list(paths[a:b]) for a, b in pairwise(ends)]
