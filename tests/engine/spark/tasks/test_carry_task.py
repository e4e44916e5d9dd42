"""Rows that wait for a later step, chosen from the files of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.spark.tasks.carry_task import KeptRows
from gscope.engine.spark.tasks.released_rows import UNKNOWN, between
from gscope.engine.watermarks.bounds import ENDED
from gscope.queries.expressions.expressions import Column, Expression
from gscope.queries.expressions.schema import ColumnSchema, Schema
from gscope.queries.expressions.types import INCREASING, GsqlType

if TYPE_CHECKING:
    from pathlib import Path

EPOCH = Column("tb", GsqlType.INT, is_nullable=False)
ADDRESSES = [bytes([number]) * 16 for number in range(5)]
SCHEMA = Schema(
    (
        ColumnSchema("tb", GsqlType.INT, ordering=INCREASING),
        ColumnSchema("ip", GsqlType.IP),
    )
)


def _files(folder: Path) -> list[str]:
    epochs = [[1, 2, 1], [3, 2]]
    addresses = [ADDRESSES[:3], ADDRESSES[3:]]
    paths = [str(folder / f"{number}.parquet") for number in range(2)]
    for path, tb, ip in zip(paths, epochs, addresses, strict=True):
        pq.write_table(
            pa.table({"tb": pa.array(tb, pa.int64()), "ip": pa.array(ip, pa.binary(16))}), path
        )
    return paths


def _least(epoch: int) -> Expression:
    condition = between(EPOCH, epoch, ENDED)
    assert condition not in (None, UNKNOWN)
    assert condition is not None
    return condition


@pytest.mark.parametrize(
    ("least", "kept"),
    [
        (2, [(2, ADDRESSES[1]), (3, ADDRESSES[3]), (2, ADDRESSES[4])]),
        (3, [(3, ADDRESSES[3])]),
        (None, list(zip([1, 2, 1, 3, 2], ADDRESSES, strict=True))),
    ],
)
def test_rows_from_an_epoch_on_wait(
    least: int | None, kept: list[tuple[int, bytes]], tmp_path: Path
) -> None:
    condition = None if least is None else _least(least)
    batch = KeptRows("q", SCHEMA, condition).written(_files(tmp_path), tmp_path / "kept.parquet", 7)
    assert batch is not None
    rows = pq.read_table(tmp_path / batch.path)
    assert rows.to_pylist() == [{"tb": tb, "ip": ip} for tb, ip in kept]
    epochs = [tb for tb, _ in kept]
    (extent,) = batch.extents
    assert (batch.sequence, batch.rows) == (7, len(kept))
    assert (extent.column, extent.least, extent.greatest) == ("tb", min(epochs), max(epochs))


def test_without_such_rows_there_is_no_file(tmp_path: Path) -> None:
    kept = KeptRows("q", SCHEMA, _least(4))
    assert kept.written(_files(tmp_path), tmp_path / "kept.parquet", 7) is None
    assert not (tmp_path / "kept.parquet").exists()
