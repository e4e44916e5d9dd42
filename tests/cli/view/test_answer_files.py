"""Rows that are read from the files of a run are those that were written."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.cli.config.partition_unit import PartitionUnit
from gscope.cli.sinks.growing_files import LiveFolder
from gscope.cli.sinks.time_partitions import TimePartitions
from gscope.cli.view import answer_files as module
from gscope.cli.view.answer_files import GrowingText, answer_files
from gscope.engine.sinks.text import write_csv

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = pa.schema(
    [
        ("at", pa.timestamp("ns")),
        ("name", pa.string()),
        ("number", pa.int64()),
        ("share", pa.float64()),
        ("is_new", pa.bool_()),
        ("data", pa.binary()),
    ]
)
NAMES = ["a", "", None, 'with "quotes", commas', "NULL", "日本", "\\n", "nan"]


def table(first: int, count: int) -> pa.Table:
    rows = [
        {
            "at": None if n % 7 == 3 else 1_700_000_000_123_456_789 + n,
            "name": NAMES[n % len(NAMES)],
            "number": None if n % 5 == 4 else (1 << 62) - n,
            "share": None if n % 4 == 1 else n / 3,
            "is_new": None if n % 6 == 5 else n % 2 == 0,
            "data": None if n % 9 == 8 else b"bytes%d" % n,
        }
        for n in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def rows_of(found: list[pa.Table | None]) -> list[dict[str, object]]:
    tables = [each.set_column(0, "at", each["at"].cast(pa.int64())) for each in found if each]
    rows = [row for each in tables for row in each.to_pylist()]
    for row in rows:
        if isinstance(data := row["data"], str):
            row["data"] = data.encode()
    return rows


@pytest.mark.parametrize("kind", ["csv", "ndjson", "parquet", "arrow"])
def test_rows_of_all_formats_are_read_as_they_are_delivered(kind: str, tmp_path: Path) -> None:
    files = answer_files(tmp_path, kind, "q", SCHEMA)
    assert list(files.rows()) == []
    now_s = 0.0
    folder = LiveFolder(tmp_path, kind, {"q": SCHEMA}, {}, lambda: now_s)
    folder.begin("q", SCHEMA)
    for step in range(4):
        rows = table(step * 20, 20)
        folder.write("q", rows)
        now_s += 100
        folder.settle(is_last=False)
        folder.publish()
        expected = rows_of([rows])
        found = list(files.rows())
        assert rows_of(found) == expected
        assert all(
            each is not None and set(each.schema.names) == set(SCHEMA.names) for each in found
        )
        assert found[0] is not None
        assert found[0]["at"].type == pa.timestamp("ns")
    assert list(files.rows()) == []
    folder.close(is_complete=True)


def test_rows_of_folders_by_time_are_read_without_the_columns_of_the_folders(
    tmp_path: Path,
) -> None:
    files = answer_files(tmp_path, "parquet", "q", SCHEMA, is_partitioned=True)
    assert list(files.rows()) == []
    partitions = {"q": TimePartitions(PartitionUnit.HOUR, "at", 1, is_integer=False)}
    folder = LiveFolder(tmp_path, "parquet", {"q": SCHEMA}, {}, partitions=partitions)
    for step in range(2):
        rows = table(step * 20, 20)
        folder.write("q", rows)
        folder.settle(is_last=True)
        folder.publish()
        found = list(files.rows())
        assert len(found) == 2, "rows with a time and rows without one"
        assert sorted(map(str, rows_of(found))) == sorted(map(str, rows_of([rows])))
        assert {each.schema for each in found if each is not None} == {SCHEMA}
    assert list(files.rows()) == []
    folder.close(is_complete=True)


def test_half_a_line_waits_for_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    schema = pa.schema([("n", pa.int64())])
    files = GrowingText(path, schema, is_csv=True)
    path.write_bytes(b"n\n1\n2")
    assert [each.to_pylist() for each in files.rows() if each] == [[{"n": 1}]]
    with path.open("ab") as file:
        file.write(b"3\n")
    assert [each.to_pylist() for each in files.rows() if each] == [[{"n": 23}]]


def test_only_the_end_of_a_long_file_is_read_in_portions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 100)
    path = tmp_path / "q.csv"
    lines = [b"%d\n" % n for n in range(1000, 2000)]
    path.write_bytes(b"n\n" + b"".join(lines))
    files = GrowingText(path, pa.schema([("n", pa.int64())]), is_csv=True, most=502)
    found = [row["n"] for each in files.rows() if each for row in each.to_pylist()]
    # 502 bytes begin within a line; the first whole one follows.
    assert found == list(range(1900, 2000))


def test_a_line_may_be_longer_than_a_portion(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_MOST_AT_ONCE", 8)
    path = tmp_path / "q.csv"
    path.write_bytes(b"name\n" + b"x" * 50 + b"\nb\n" + b"y" * 50)
    files = GrowingText(path, pa.schema([("name", pa.string())]), is_csv=True)
    found = [row["name"] for each in files.rows() if each for row in each.to_pylist()]
    assert found == ["x" * 50, "b"]


@pytest.mark.parametrize("way", ["truncated", "replaced"])
def test_rows_no_longer_count_when_the_file_begins_anew(way: str, tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    schema = pa.schema([("n", pa.int64())])
    files = GrowingText(path, schema, is_csv=True)
    path.write_bytes(b"n\n1\n2\n3\n")
    list(files.rows())
    if way == "truncated":
        os.truncate(path, 4)
    else:
        path.rename(tmp_path / "q.csv.1")
        path.write_bytes(b"n\n1\n")
    found = list(files.rows())
    assert found[0] is None
    assert [each.to_pylist() for each in found if each is not None] == [[{"n": 1}]]


def test_numbers_that_are_none_stay_apart(tmp_path: Path) -> None:
    path = tmp_path / "q.csv"
    schema = pa.schema([("share", pa.float64())])
    written = pa.table({"share": pa.array([math.nan, math.inf, None, -0.5])})
    with path.open("wb") as file:
        file.write(b"share\n")
        write_csv(written, file)
    (found,) = GrowingText(path, schema, is_csv=True).rows()
    assert found is not None
    first, *others = found["share"].to_pylist()
    assert math.isnan(first)
    assert others == [math.inf, None, -0.5]
