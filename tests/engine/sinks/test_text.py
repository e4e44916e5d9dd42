from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.sinks.text import csv_header, write_csv, write_ndjson

if TYPE_CHECKING:
    from collections.abc import Callable

_text = st.one_of(
    st.none(),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(['"', ",", 'a"b,c', "\r\n", "", " x "]),
)
_rows = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(-(2**63), 2**63 - 1)),
        _text,
        st.one_of(st.none(), st.floats()),
        st.one_of(st.none(), st.booleans()),
        _text,
    ),
    max_size=20,
)
_NAMES = ["n", 'odd "name"', "x", "b", "t"]
_TYPES = [pa.int64(), pa.string(), pa.float64(), pa.bool_(), pa.string()]


def _table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = [pa.array([r[i] for r in rows], kind) for i, kind in enumerate(_TYPES)]
    return pa.table(columns, names=_NAMES)


def _written(write: Callable[[pa.Table, io.BytesIO], None], table: pa.Table) -> str:
    file = io.BytesIO()
    write(table, file)
    return file.getvalue().decode()


@given(_rows)
def test_csv_is_read_back_by_the_csv_module(rows: list[tuple[Any, ...]]) -> None:
    text = csv_header(_NAMES).decode() + _written(write_csv, _table(rows))
    header, *lines = csv.reader(io.StringIO(text, newline=""))
    assert header == _NAMES
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        number, name, real, truth, last = row
        assert line[0] == ("" if number is None else str(number))
        assert line[1] == (name or "")
        assert line[3] == ("" if truth is None else str(truth).lower())
        assert line[4] == (last or "")
        if real is None:
            assert line[2] == ""
        else:
            assert math.isnan(real) == math.isnan(float(line[2]))
            assert math.isnan(real) or float(line[2]) == real


@given(_rows)
def test_ndjson_is_read_back_by_the_json_module(rows: list[tuple[Any, ...]]) -> None:
    lines = _written(write_ndjson, _table(rows)).split("\n")
    assert lines.pop() == ""
    assert len(lines) == len(rows)
    for row, line in zip(rows, lines, strict=True):
        real = row[2] if row[2] is not None and math.isfinite(row[2]) else None
        expected = dict(zip(_NAMES, (row[0], row[1], real, row[3], row[4]), strict=True))
        assert json.loads(line) == expected


@given(_rows, st.integers(0, 5))
def test_slices_are_written_as_they_stand(rows: list[tuple[Any, ...]], start: int) -> None:
    table = _table(rows)
    for write in (write_csv, write_ndjson):
        whole = _written(write, table.slice(start))
        again = _written(write, _table(rows[start:]))
        assert whole == again


def test_many_rows_are_written_piece_by_piece() -> None:
    table = pa.table({"n": range(150_000), "t": ['say "hi"'] * 150_000})
    for write in (write_csv, write_ndjson):
        assert _written(write, table).count("\n") == 150_000
