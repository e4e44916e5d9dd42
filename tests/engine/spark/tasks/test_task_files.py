"""Files that tasks read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.engine.spark.tasks.task import read_files
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.types import GsqlType

if TYPE_CHECKING:
    from pathlib import Path


def test_files_that_store_a_column_in_different_widths_are_read_together(tmp_path: Path) -> None:
    files = []
    for number, kind in enumerate((pa.int32(), pa.int64())):
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.table({"c": pa.array([number, 7], kind)}), files[-1])
    read = read_files(files, [Column("c", GsqlType.INT, is_nullable=True)])
    assert read.to_pydict() == {"c": [0, 7, 1, 7]}
