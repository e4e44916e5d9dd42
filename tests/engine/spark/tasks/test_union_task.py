"""The rows of all sides of a merge, against a plain loop."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.spark.tasks.released_rows import between
from gscope.engine.spark.tasks.union_task import UnionTask
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.queries.expressions.expressions import Column
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = Column("tb", GsqlType.INT, is_nullable=False)
SCHEMA = Schema(
    (
        ColumnSchema("tb", GsqlType.INT, ordering=INCREASING),
        ColumnSchema("n", GsqlType.INT),
    )
)


@pytest.mark.parametrize("seed", range(10))
def test_each_side_gives_the_rows_that_its_own_condition_lets_pass(
    seed: int, tmp_path: Path
) -> None:
    chance = random.Random(seed)
    files: list[tuple[str, ...]] = []
    expected: list[tuple[int, int]] = []
    within = []
    for side in range(3):
        low, high = chance.choice([(NOTHING, 6), (3, 6), (3, ENDED), (NOTHING, ENDED)])
        is_whole = (low, high) == (NOTHING, ENDED)
        within.append(None if is_whole else between(EPOCH, low, high))
        paths = []
        for number in range(chance.randrange(3)):
            rows = [(chance.randrange(9), chance.randrange(100)) for _ in range(20)]
            # The log stores integers in few bits, other steps in 64.
            kind = chance.choice([pa.int16(), pa.int64()])
            path = str(tmp_path / f"{side}-{number}.parquet")
            tb, n = zip(*rows, strict=True)
            table = {"n": pa.array(n, kind), "more": pa.array(n), "tb": pa.array(tb, kind)}
            pq.write_table(pa.table(table), path)
            expected += [row for row in rows if low <= row[0] < high]
            paths.append(path)
        files.append(tuple(paths))
    written: list[pa.Table] = []
    UnionTask(SCHEMA, tuple(files), tuple(within)).run(written.append)
    (table,) = written
    assert table.column_names == ["tb", "n"]
    found = list(zip(table["tb"].to_pylist(), table["n"].to_pylist(), strict=True))
    assert sorted(found) == sorted(expected)
