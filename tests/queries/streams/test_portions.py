"""Tables cut by the bytes of their texts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from unittest import mock

import pyarrow as pa
import pyarrow.parquet as pq
from hypothesis import given
from hypothesis import strategies as st

from gscope.capture.log.segments import SegmentFolder
from gscope.engine.storage.parquet_files import FileWriter
from gscope.queries.streams import portions
from gscope.queries.streams.portions import row_groups

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20


@given(
    st.lists(st.none() | st.integers(0, 30), max_size=40),
    st.sampled_from([pa.binary(), pa.string(), pa.large_binary()]),
    st.integers(0, 5),
)
def test_no_slice_is_larger_unless_it_is_one_row(
    lengths: list[int | None], kind: pa.DataType, skipped: int
) -> None:
    values = [None if length is None else "x" * length for length in lengths]
    table = pa.table({"n": range(len(values)), "data": pa.array(values, pa.string()).cast(kind)})
    table = table.slice(skipped)
    with mock.patch.object(portions, "GROUP_BYTES", 50):
        groups = list(row_groups(table))
    kept = lengths[skipped:]
    assert [n for group in groups for n in group["n"].to_pylist()] == table["n"].to_pylist()
    sizes = []
    for group in groups:
        taken, kept = kept[: group.num_rows], kept[group.num_rows :]
        sizes.append(sum(length or 0 for length in taken))
        assert sizes[-1] <= 50 or len(taken) == 1
    # What fits together is together.
    for size, group in zip(sizes, groups[1:], strict=False):
        assert size + len(group["data"][0].as_py() or "") > 50


def test_a_value_of_a_dictionary_counts_in_each_of_its_rows() -> None:
    values = pa.array(["x" * 300, None] * 10).dictionary_encode()
    table = pa.table({"data": values, "n": range(20)})
    groups = list(portions.portions(table, ["data"], 600))
    assert [group.num_rows for group in groups] == [4] * 5
    assert pa.concat_tables(groups)["n"].to_pylist() == list(range(20))


def test_rows_without_text_stay_together() -> None:
    table = pa.table({"time": pa.array(range(3 * MIB), pa.int64())})
    (whole,) = row_groups(table)
    assert whole is table


def test_a_file_of_a_step_has_row_groups_that_fit_into_memory(tmp_path: Path) -> None:
    writer = FileWriter(tmp_path, "file")
    writer.write(_long_rows())
    writer.close()
    _check(tmp_path / "file")


def test_a_segment_has_row_groups_that_fit_into_memory(tmp_path: Path) -> None:
    name, *_ = SegmentFolder(tmp_path).write("s", _long_rows().to_batches())
    _check(tmp_path / name)


def _long_rows() -> pa.Table:
    """20 MB of short rows and long ones, of which the average is short."""
    data = [b"", *[b"x"] * 50_000, *[b"y" * (256 << 10)] * 80]
    return pa.table({"n": range(len(data)), "data": pa.array(data, pa.binary())})


def _check(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        groups = [file.metadata.row_group(n) for n in range(file.num_row_groups)]
        assert [group.total_byte_size < 9 * MIB for group in groups] == [True] * 3
        assert file.read()["data"].to_pylist() == _long_rows()["data"].to_pylist()
