"""Segments written column by column are Parquet like any other.

Arrow reads them, and so does Spark.
"""

from __future__ import annotations

import errno
import os
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gscope.capture.log.plain_segment import PlainSegment, is_plain

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

NUMBERS = {
    "tb": pa.int64(),
    "protocol": pa.int32(),
    "srcIP": pa.binary(16),
    "ratio": pa.float64(),
}
SCHEMA = pa.schema([pa.field(name, type_, nullable=False) for name, type_ in NUMBERS.items()])


def batch(rows: int, seed: int = 1, interface: bytes | None = None) -> pa.RecordBatch:
    random = np.random.default_rng(seed)
    arrays = []
    for field in SCHEMA:
        data = random.integers(0, 256, rows * field.type.bit_width // 8, dtype=np.uint8)
        if field.name == "ratio":
            data = random.normal(size=rows).view(np.uint8)
        arrays.append(pa.Array.from_buffers(field.type, rows, [None, pa.py_buffer(data)]))
    schema = SCHEMA
    if interface is not None:
        words = pa.array([interface], pa.binary())
        numbers = pa.array(np.zeros(rows, np.int32))
        arrays.append(pa.DictionaryArray.from_arrays(numbers, words))
        schema = SCHEMA.append(pa.field("interface", arrays[-1].type, nullable=False))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def write(path: Path, batches: list[pa.RecordBatch]) -> PlainSegment:
    segment = PlainSegment(path, batches[0].schema)
    for one in batches:
        segment.add([one])
    segment.finish()
    return segment


def plain_words(table: pa.Table) -> pa.Table:
    """Columns of words as words."""
    return table.cast(
        pa.schema(
            pa.field(f.name, f.type.value_type if pa.types.is_dictionary(f.type) else f.type)
            for f in table.schema
        )
    )


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    st.lists(st.integers(1, 300), min_size=1, max_size=20),
    st.none() | st.binary(min_size=1, max_size=200),
)
def test_what_is_read_is_what_was_written(
    tmp_path: Path, portions: list[int], interface: bytes | None
) -> None:
    path = tmp_path / "segment.parquet"
    path.unlink(missing_ok=True)
    batches = [batch(rows, n, interface) for n, rows in enumerate(portions)]
    # Slices too, whose values do not begin where their memory does.
    batches = [one.slice(one.num_rows // 3) for one in batches]
    segment = write(path, batches)
    file = pq.ParquetFile(path)
    assert (segment.rows, segment.size_bytes) == (file.metadata.num_rows, path.stat().st_size)
    assert file.metadata.num_row_groups == len(portions)
    expected = plain_words(pa.Table.from_batches(batches))
    assert plain_words(file.read()).equals(expected)


def test_the_schema_is_the_one_that_arrow_writes(tmp_path: Path) -> None:
    rows = batch(5, interface=b"main1")
    write(tmp_path / "ours", [rows])
    options: dict[str, Any] = {"store_schema": False, "write_statistics": False}
    pq.write_table(pa.Table.from_batches([rows]), tmp_path / "theirs", **options)
    ours, theirs = (pq.read_metadata(tmp_path / name) for name in ("ours", "theirs"))
    assert ours.schema.equals(theirs.schema)
    group, other = ours.row_group(0), theirs.row_group(0)
    for n in range(ours.num_columns):
        column = group.column(n)
        assert column.physical_type == other.column(n).physical_type
        assert (column.compression, column.statistics) == ("UNCOMPRESSED", None)
        assert column.has_dictionary_page == (column.path_in_schema == "interface")


Optional = st.lists(st.integers(-(2**31), 2**31 - 1) | st.none(), min_size=1, max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.lists(Optional, min_size=1, max_size=12), st.integers(0, 9), st.booleans())
def test_columns_may_have_null(
    tmp_path: Path, portions: list[list[int | None]], cut: int, is_one_group: bool
) -> None:
    """NULL in some portions or all, in values of each width, of slices that begin anywhere."""
    kinds = {f"n{kind.bit_width}{n}": kind for n, kind in enumerate(NUMBERS.values())}
    schema = pa.schema(kinds.items())
    batches = []
    for portion in portions:
        numbers = pa.array(portion, pa.int32())
        words = [None if n is None else n.to_bytes(16, "big", signed=True) for n in portion]
        columns = [
            pa.array(words, kind) if kind == pa.binary(16) else numbers.cast(kind)
            for kind in kinds.values()
        ]
        rows = pa.RecordBatch.from_arrays(columns, schema=schema)
        batches.append(rows.slice(min(cut, rows.num_rows - 1)))
    assert all(map(is_plain, batches))
    path = tmp_path / "segment.parquet"
    path.unlink(missing_ok=True)
    segment = PlainSegment(path, schema)
    for group in [batches] if is_one_group else [[one] for one in batches]:
        segment.add(group)
    segment.finish()
    assert segment.size_bytes == path.stat().st_size
    assert pq.ParquetFile(path).read().equals(pa.Table.from_batches(batches))
    theirs = tmp_path / "theirs.parquet"
    pq.write_table(pa.Table.from_batches(batches), theirs, store_schema=False)
    assert pq.read_metadata(path).schema.equals(pq.read_metadata(theirs).schema)


def test_varying_columns_are_not_plain() -> None:
    assert is_plain(batch(3))
    assert is_plain(batch(3, interface=b"x"))
    assert is_plain(pa.record_batch({"n": pa.array([1, 2])}))
    field = pa.field("name", pa.binary(), nullable=False)
    assert not is_plain(pa.record_batch([pa.array([b"x"])], schema=pa.schema([field])))
    two = pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), [b"a", b"b"])
    field = pa.field("interface", two.type, nullable=False)
    assert not is_plain(pa.record_batch([two], schema=pa.schema([field])))


def test_a_write_may_be_short(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.writev

    def short(descriptor: int, parts: list[Any]) -> int:
        left = memoryview(b"".join(parts))[:1000]
        return whole(descriptor, [left])

    monkeypatch.setattr(os, "writev", short)
    rows = batch(700)
    write(tmp_path / "segment", [rows])
    assert pq.read_table(tmp_path / "segment").equals(pa.Table.from_batches([rows]))


def test_no_space_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    segment = PlainSegment(tmp_path / "segment", SCHEMA)

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "writev", full)
    with pytest.raises(OSError, match="No space left"):
        segment.add([batch(3)])


@pytest.mark.spark
def test_spark_reads_it(tmp_path: Path, spark: SparkSession) -> None:
    batches = [batch(5000, n, b"main1") for n in range(3)]
    write(tmp_path / "segment.parquet", batches)
    frame = spark.read.parquet(str(tmp_path / "segment.parquet"))
    expected = plain_words(pa.Table.from_batches(batches)).to_pylist()
    got = [row.asDict() for row in frame.collect()]
    for row in got:
        row["srcIP"], row["interface"] = bytes(row["srcIP"]), bytes(row["interface"])
    key = "srcIP"
    assert sorted(got, key=lambda row: row[key]) == sorted(expected, key=lambda row: row[key])


@pytest.mark.spark
def test_spark_reads_columns_with_null(tmp_path: Path, spark: SparkSession) -> None:
    """Portions without NULL are runs of one bit, others have a bit for each row."""
    random = np.random.default_rng(5)
    schema = pa.schema(
        {"n": pa.int64(), "m": pa.int32(), "srcIP": pa.binary(16), "x": pa.float64()}
    )
    batches = []
    for share in (0.0, 0.5, 1.0, 0.01):
        columns = []
        for field in schema:
            values = random.integers(0, 2**31, 4099)
            words = [int(n).to_bytes(16, "big") for n in values]
            given = pa.array(words, field.type) if field.name == "srcIP" else pa.array(values)
            mask = pa.array(random.random(4099) < share)
            columns.append(pc.if_else(mask, None, given).cast(field.type))
        batches.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    write(tmp_path / "segment.parquet", batches)
    frame = spark.read.parquet(str(tmp_path / "segment.parquet"))
    assert frame.toArrow().cast(schema).to_pylist() == pa.Table.from_batches(batches).to_pylist()
