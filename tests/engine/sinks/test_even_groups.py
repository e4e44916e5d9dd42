"""Columnar files: their bytes do not depend on the portions in which rows are written."""

from __future__ import annotations

import io
import itertools
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.even_groups import EvenGroups


def rows(count: int) -> pa.Table:
    """Return rows with values under their NULLs."""
    valid = pa.array([n % 3 != 0 for n in range(count)], pa.bool_())
    bits = valid.buffers()[1]
    garbage = np.random.default_rng().integers(0, 99, count)
    kept = np.where(valid.to_numpy(zero_copy_only=False), np.arange(count), garbage)
    numbers = pa.Array.from_buffers(pa.int64(), count, [bits, pa.py_buffer(kept.tobytes())])
    texts = pa.array([None if n % 5 == 1 else f"text {n % 7}" for n in range(count)], pa.string())
    return pa.table(
        {"n": numbers, "t": texts, "b": pa.array([n % 2 == 0 for n in range(count)], pa.bool_())}
    )


def written(kind: str, table: pa.Table, cuts: list[int], size: int = 1 << 20) -> bytes:
    file = io.BytesIO()
    writer: Any
    if kind == "parquet":
        writer = pq.ParquetWriter(file, table.schema, compression="zstd")
    else:
        writer = pa.ipc.new_file(file, table.schema)
    groups = EvenGroups(writer, 7, size)
    edges = [0, *sorted(cuts), table.num_rows]
    for begin, end in itertools.pairwise(edges):
        groups.write(table.slice(begin, end - begin))
    groups.close()
    return file.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
@given(count=st.integers(1, 40), data=st.data())
def test_portions_do_not_show_in_the_bytes(kind: str, count: int, data: st.DataObject) -> None:
    cuts = data.draw(st.lists(st.integers(0, count), max_size=6))
    size = data.draw(st.sampled_from([1, 13, 1 << 20]))
    assert written(kind, rows(count), cuts, size) == written(kind, rows(count), [], size)


def test_groups_hold_the_same_number_of_rows_but_the_last() -> None:
    file = pq.ParquetFile(io.BytesIO(written("parquet", rows(17), [1, 2, 16])))
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    assert sizes == [7, 7, 3]
    assert file.read().equals(rows(17))


def test_a_group_ends_with_the_row_that_makes_it_large() -> None:
    file = pq.ParquetFile(io.BytesIO(written("parquet", rows(9), [4], size=13)))
    sizes = [file.metadata.row_group(n).num_rows for n in range(file.num_row_groups)]
    # Texts of six bytes, and NULL in each fifth row.
    assert sizes == [4, 4, 1]
    assert file.read().equals(rows(9))
