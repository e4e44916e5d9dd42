from __future__ import annotations

import csv
import io
import json
import math
import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
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


_FEW_INTEGERS: dict[str, list[int | None]] = {
    "the same": [170_000_001],
    "no others": [None],
    "few": [*range(5), None],
    "negative": [-3, -2, None],
    "least": [-(2**63), 1 - 2**63],
    "greatest": [2**63 - 1, None, 2**63 - 2],
    "ports": [0, 443, 65_535, None],
    "more": [0, 65_536],
    "any": [-(2**63), 0, None, 2**63 - 1],
    "unsigned": [2**64 - 1],
}


@pytest.mark.parametrize("rows", [7, 20_000])
@pytest.mark.parametrize("kind", _FEW_INTEGERS)
def test_integers_of_any_range_are_written_as_python_does(kind: str, rows: int) -> None:
    chance = random.Random(rows)
    values = chance.choices(_FEW_INTEGERS[kind], k=rows)
    numbers = pa.array(values, pa.uint64() if kind == "unsigned" else pa.int64())
    table = pa.table({'odd "n"': numbers, "m": numbers})
    cells = ["" if value is None else str(value) for value in values]
    assert _written(write_csv, table) == "".join(f"{cell},{cell}\n" for cell in cells)
    lines = [json.dumps({'odd "n"': value, "m": value}) for value in values]
    assert _written(write_ndjson, table).splitlines() == lines


@pytest.mark.parametrize("rows", [3, 20_000])
@pytest.mark.parametrize("odd", [None, "", "\x7f", "\x1f", "\\", '"', "é", "\U0001f600", ",", "\n"])
def test_a_single_odd_value_is_written_as_python_does(odd: str | None, rows: int) -> None:
    values = ["10.0.0.1", "~ !", *[odd] * (rows % 2 + 1), *["2001:db8::1"] * rows]
    table = pa.table({"t": pa.array(values, pa.string()), "n": range(len(values))})
    lines = [json.dumps({"t": value, "n": n}) for n, value in enumerate(values)]
    assert _written(write_ndjson, table).split("\n") == [*lines, ""]
    text = _written(write_csv, table)
    found = list(csv.reader(io.StringIO(text, newline="")))
    assert found == [[value or "", str(n)] for n, value in enumerate(values)]
    assert text.startswith("10.0.0.1,0\n~ !,1\n")
