from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.storage import outputs
from gscope.engine.storage.outputs import read_output, remove_output
from gscope.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Sequence

_values = st.lists(st.one_of(st.none(), st.integers(0, 5)), max_size=12)


def _written(path: Path, parts: Sequence[Sequence[int | None]]) -> list[str]:
    """Write a folder of files; return their names."""
    path.mkdir()
    for number, values in enumerate(parts):
        counted = pa.array(range(len(values)), pa.int64())
        table = pa.table({"tb": pa.array(values, pa.int64()), "n": counted})
        pq.write_table(table, path / f"part-{number}.parquet", row_group_size=3)
    return [f"part-{number}.parquet" for number in range(len(parts))]


def _rank(value: int | None) -> int:
    return -1 if value is None else value


@given(st.lists(_values, min_size=1, max_size=4), st.integers(1, 20))
def test_a_large_step_comes_in_order_and_whole(
    parts: list[list[int | None]], rows_at_once: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        tables = list(read_output(path, ["tb"], _written(path, parts), rows_at_once))
    rows = [row for table in tables for row in zip(*table.to_pydict().values(), strict=True)]
    expected = [(value, n) for part in parts for n, value in enumerate(part)]
    assert rows == sorted(expected, key=lambda row: (_rank(row[0]), row[1]))


@given(st.lists(_values, min_size=1, max_size=4), st.integers(1, 20))
def test_a_falling_column_falls(parts: list[list[int | None]], rows_at_once: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        tables = list(read_output(path, ["-tb"], _written(path, parts), rows_at_once))
    values = [value for table in tables for value in table["tb"].to_pylist()]
    present = [value for value in values if value is not None]
    assert values == [None] * (len(values) - len(present)) + sorted(present, reverse=True)
    assert len(values) == sum(map(len, parts))


@given(st.lists(st.integers(0, 50), min_size=30, max_size=30, unique=True))
def test_no_more_rows_are_sorted_at_once_than_allowed(values: list[int]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out"
        tables = list(read_output(path, ["tb"], _written(path, [values]), 7))
    assert max(table.num_rows for table in tables) <= 7


def test_fewer_long_rows_are_sorted_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outputs, "BYTES_AT_ONCE", 64 << 10)
    data = [bytes([n]) * 8192 for n in range(32)]
    table = pa.table({"tb": pa.array(range(32))[::-1], "data": pa.array(data, pa.binary())})
    folder = tmp_path / "out"
    folder.mkdir()
    pq.write_table(table, folder / "part.parquet", compression="none", use_dictionary=False)
    pieces = list(read_output(folder, ["tb"], ["part.parquet"]))
    assert max(piece.num_rows for piece in pieces) <= 8
    assert pa.concat_tables(pieces)["data"].to_pylist() == data[::-1]


def test_without_temporal_columns_rows_ascend_by_the_others(tmp_path: Path) -> None:
    files = _written(tmp_path / "out", [[3, 1], [2]])
    tables = read_output(tmp_path / "out", (), files)
    assert [value for table in tables for value in table["tb"].to_pylist()] == [1, 2, 3]


def test_files_that_no_record_names_are_not_read(tmp_path: Path) -> None:
    files = _written(tmp_path / "out", [[1], [2], [3]])
    tables = read_output(tmp_path / "out", ["tb"], files[:2])
    assert [value for table in tables for value in table["tb"].to_pylist()] == [1, 2]


@pytest.mark.parametrize("files", [(), ("part-0.parquet",)])
def test_an_answer_that_is_missing_is_an_error(tmp_path: Path, files: tuple[str, ...]) -> None:
    with pytest.raises(EngineError, match=r"cannot read the answer .*out"):
        list(read_output(tmp_path / "out", ["tb"], files))


def test_a_small_step_is_one_arrow_file(tmp_path: Path) -> None:
    table = pa.table({"tb": [1, 2]})
    with pa.ipc.new_file(tmp_path / "out", table.schema) as writer:
        writer.write_table(table)
    assert list(read_output(tmp_path / "out", ["tb"], ())) == [table]


def test_a_removed_output_is_gone(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    _written(folder, [[1]])
    file = tmp_path / "file"
    file.write_bytes(b"")
    for path in (folder, file, tmp_path / "missing"):
        remove_output(path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("stored", [pa.binary(), pa.binary(16)])
@pytest.mark.parametrize("rows_at_once", [2, 100])
def test_addresses_are_of_fixed_width_however_they_are_stored(
    tmp_path: Path, stored: pa.DataType, rows_at_once: int
) -> None:
    known = [bytes([n]) * 16 for n in (3, 1, 2)]
    values = [*known, None]
    table = pa.table(
        {"tb": [1, 1, 1, 2], "at": pa.array(values, stored), "text": pa.array(values, pa.binary())}
    )
    pq.write_table(table, tmp_path / "part.parquet", row_group_size=3)
    with pa.ipc.new_file(tmp_path / "small.arrow", table.schema) as writer:
        writer.write_table(table)
    for path, files in ((tmp_path, ["part.parquet"]), (tmp_path / "small.arrow", [])):
        found = pa.concat_tables(read_output(path, ["tb"], files, rows_at_once, addresses={"at"}))
        assert found.schema.types == [pa.int64(), pa.binary(16), pa.binary()]
        assert found["at"].to_pylist() == found["text"].to_pylist()
        assert found["at"].to_pylist() == [*sorted(known), None]


def test_an_address_of_another_length_is_a_damaged_answer(tmp_path: Path) -> None:
    table = pa.table({"tb": [1], "at": pa.array([b"short"], pa.binary())})
    pq.write_table(table, tmp_path / "part.parquet")
    with pytest.raises(EngineError, match="cannot read the answer"):
        list(read_output(tmp_path, ["tb"], ["part.parquet"], addresses={"at"}))
