"""Reading a Parquet file that is in place, with the rules of ``pyarrow.parquet.read_table``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.storage.transfer.access import parquet_rows, read_parquet

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = pa.table(
    {
        "time": pa.array([3, 4, 5, None], pa.int32()),
        "address": pa.array([bytes([n] * 16) for n in range(4)], pa.binary(16)),
        "name": pa.array(["a", None, "c", "a"]).dictionary_encode(),
        "values": pa.array([[1], [], None, [2, 3]], pa.list_(pa.int64())),
        "text": pa.array([b"w", b"x", b"", None], pa.binary()),
    }
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    pq.write_table(ROWS, tmp_path / "rows.parquet", row_group_size=3, compression="none")
    return str(tmp_path / "rows.parquet")


@pytest.mark.parametrize(
    "columns",
    [None, [], ["time"], ["text", "values", "name", "address", "time"], ["text", "time", "text"]],
)
def test_rows_are_those_of_pyarrow_in_the_order_that_is_asked_for(
    path: str, columns: list[str] | None
) -> None:
    found = read_parquet(path, columns)
    expected = pq.read_table(path, columns=columns)
    assert found.num_rows == expected.num_rows == 4
    assert found.equals(expected)
    if columns is not None:
        assert found.schema.names == columns


def test_a_column_that_the_file_lacks_is_refused(path: str) -> None:
    with pytest.raises(pa.ArrowInvalid, match=r"rows\.parquet has no column rate, size"):
        read_parquet(path, ["time", "size", "rate"])


def test_filters_choose_rows(path: str) -> None:
    assert read_parquet(path, ["text"], [("time", "=", 4)])["text"].to_pylist() == [b"x"]
    assert read_parquet(path, None, [("time", "=", 9)]).num_rows == 0


def test_rows_are_counted_without_reading_them(path: str) -> None:
    assert parquet_rows(path) == 4


@pytest.mark.parametrize("read", [read_parquet, parquet_rows])
def test_a_file_that_is_missing_is_an_error_of_the_system(
    tmp_path: Path, read: Callable[[str], object]
) -> None:
    with pytest.raises(FileNotFoundError):
        read(str(tmp_path / "none.parquet"))
