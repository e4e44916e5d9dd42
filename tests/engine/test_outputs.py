from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.outputs import read_output, remove_output

if TYPE_CHECKING:
    from collections.abc import Sequence

_values = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=12)


def _folder(path: Path, parts: Sequence[Sequence[int | None]]) -> Path:
    path.mkdir()
    for number, values in enumerate(parts):
        counted = pa.array(range(len(values)), pa.int64())
        table = pa.table({"tb": pa.array(values, pa.int64()), "n": counted})
        pq.write_table(table, path / f"part-{number}.parquet", row_group_size=3)
    return path


def _rank(value: int | None) -> int:
    return -1 if value is None else value


@given(st.lists(_values, min_size=1, max_size=4), st.integers(1, 20))
def test_a_large_step_comes_in_order_and_whole(
    parts: list[list[int | None]], rows_at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _folder(Path(folder) / "out", parts)
        tables = list(read_output(path, ["tb", "n"], rows_at_once))
    ranks = [_rank(value) for table in tables for value in table["tb"].to_pylist()]
    assert ranks == sorted(_rank(value) for part in parts for value in part)


@given(st.lists(_values, min_size=1, max_size=4), st.integers(1, 20))
def test_a_falling_column_falls(parts: list[list[int | None]], rows_at_once: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = _folder(Path(folder) / "out", parts)
        tables = list(read_output(path, ["-tb"], rows_at_once))
    values = [value for table in tables for value in table["tb"].to_pylist()]
    present = [value for value in values if value is not None]
    assert values == [None] * (len(values) - len(present)) + sorted(present, reverse=True)
    assert len(values) == sum(map(len, parts))


@given(st.lists(st.integers(0, 50), min_size=30, max_size=30, unique=True))
def test_no_more_rows_are_sorted_at_once_than_told(values: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        tables = list(read_output(_folder(Path(folder) / "out", [values]), ["tb"], 7))
    assert max(table.num_rows for table in tables) <= 7


def test_without_an_order_rows_come_as_they_are(tmp_path: Path) -> None:
    path = _folder(tmp_path / "out", [[3, 1], [2]])
    rows = [value for table in read_output(path) for value in table["tb"].to_pylist()]
    assert rows == [3, 1, 2]


def test_a_small_step_is_one_arrow_file(tmp_path: Path) -> None:
    table = pa.table({"tb": [1, 2]})
    with pa.ipc.new_file(tmp_path / "out", table.schema) as writer:
        writer.write_table(table)
    assert list(read_output(tmp_path / "out", ["tb"])) == [table]


def test_a_removed_output_is_gone(tmp_path: Path) -> None:
    folder = _folder(tmp_path / "folder", [[1]])
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path in (folder, file, tmp_path / "missing"):
        remove_output(path)
    assert list(tmp_path.iterdir()) == []
