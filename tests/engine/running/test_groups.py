"""Numbers of groups against a dictionary of rows."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.running.groups import number_groups

NAN = math.nan
COLUMNS = {
    "near": (st.integers(0, 3), pa.int64()),
    "far": (st.sampled_from([0, 1, -(2**63), 2**63 - 1, 70_000]), pa.int64()),
    "unsigned": (st.sampled_from([2**64 - 1, 2**64 - 2]), pa.uint64()),
    "small": (st.integers(-2, 2), pa.int8()),
    "nullable": (st.none() | st.integers(0, 2), pa.int32()),
    "float": (st.none() | st.sampled_from([0.0, -0.0, NAN, 1.5]), pa.float64()),
    "truth": (st.none() | st.booleans(), pa.bool_()),
    "text": (st.none() | st.sampled_from([b"", b"a", b"b"]), pa.binary()),
    "address": (st.sampled_from([bytes(16), b"\x01" * 16]), pa.binary(16)),
}


def as_key(value: object) -> object:
    """Return a value as GROUP BY compares it."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value + 0.0
    return value


def check(rows: list[tuple[object, ...]], columns: list[pa.ChunkedArray], count: int) -> None:
    known: dict[object, int] = {}
    expected = [known.setdefault(tuple(map(as_key, row)), len(known)) for row in rows]
    numbers, groups = number_groups(columns, count)
    assert numbers.dtype == np.int64
    assert numbers.tolist() == expected
    assert groups == len(known)


@given(data=st.data(), names=st.lists(st.sampled_from(sorted(COLUMNS)), max_size=5))
def test_groups_are_numbered_as_they_appear(data: st.DataObject, names: list[str]) -> None:
    values = [COLUMNS[name][0] for name in names]
    rows = data.draw(st.lists(st.tuples(*values), max_size=20))
    begin = data.draw(st.integers(0, 20))
    columns = []
    for place, name in enumerate(names):
        whole = pa.array([row[place] for row in rows], COLUMNS[name][1])
        columns.append(pa.chunked_array([whole[:begin], whole[begin:]]))
    check(rows, columns, len(rows))


@pytest.mark.parametrize("wide", [1, 2, 5])
def test_keys_of_more_than_64_bits_together_are_told_apart(wide: int) -> None:
    rng = np.random.default_rng(wide)
    values = rng.integers(0, 1 << 16, (wide, 70_000))
    values[:, 0], values[:, 1] = 0, (1 << 16) - 1
    # Four later keys would shift the first one out of a word.
    values[:, 35_000:] = values[:, :35_000]
    values[0, 60_000:] ^= 1
    rows = list(zip(*values.tolist(), strict=True))
    check(rows, [pa.chunked_array([pa.array(each)]) for each in values], 70_000)
