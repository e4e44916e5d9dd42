from __future__ import annotations

import io

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from gscope.cli.sinks.table import TableSink


def _shown(
    *deliveries: tuple[str, pa.Table], width: int | None = 80, is_styled: bool = False
) -> str:
    file = io.StringIO()
    queries = list(dict.fromkeys(query for query, _ in deliveries))
    sink = TableSink(file, queries, width, is_styled=is_styled)
    for query in queries:
        sink.begin(query, dict(deliveries)[query].schema)
    for query, table in deliveries:
        sink.write(query, table)
    sink.close(is_complete=True)
    return file.getvalue()


def test_numbers_stand_right_and_text_left() -> None:
    table = pa.table({"srcIP": ["10.0.0.1", "1.1.1.1"], "cnt": [5, 12345], "x": [0.5, None]})
    assert _shown(("q", table)) == (
        "srcIP       cnt     x\n10.0.0.1      5   0.5\n1.1.1.1   12345  NULL\n(2 rows)\n"
    )


def test_later_rows_keep_the_widths_of_the_first() -> None:
    first, later = pa.table({"a": ["abcdef"], "n": [1]}), pa.table({"a": ["xy"], "n": [2]})
    assert _shown(("q", first), ("q", later)).splitlines()[1:3] == ["abcdef  1", "xy      2"]


def test_later_rows_that_need_more_room_get_it_below_a_new_heading() -> None:
    first, later = (
        pa.table({"a": ["10.0.0.1"], "n": [1]}),
        pa.table({"a": ["100.64.0.100"], "n": [2]}),
    )
    assert _shown(("q", first), ("q", later), ("q", first)).splitlines()[2:5] == [
        "a             n",
        "100.64.0.100  2",
        "10.0.0.1      1",
    ]


def test_rows_that_cannot_get_more_room_repeat_no_heading() -> None:
    tables = [pa.table({"a": ["x" * length]}) for length in (40, 50)]
    assert (
        _shown(*(("q", table) for table in tables), width=20).splitlines()[1:3]
        == ["x" * 19 + "…"] * 2
    )


def test_each_of_several_results_has_a_title() -> None:
    a, b = pa.table({"n": [1]}), pa.table({"m": [2]})
    assert _shown(("a", a), ("b", b), ("a", a)) == (
        "a\nn\n1\n\nb\nm\n2\n\na\nn\n1\n(a: 2 rows, b: 1 row)\n"
    )


def test_an_empty_answer_has_its_heading() -> None:
    assert _shown(("q", pa.table({"n": pa.array([], pa.int64())}))) == "n\n(0 rows)\n"


def test_only_a_terminal_gets_colours() -> None:
    table = pa.table({"n": [1]})
    assert "\x1b" in _shown(("q", table), is_styled=True)
    assert "\x1b" not in _shown(("q", table))


def test_an_incomplete_answer_has_no_count() -> None:
    file = io.StringIO()
    sink = TableSink(file, ["q"], 80, is_styled=False)
    sink.begin("q", pa.schema([("n", pa.int64())]))
    sink.close(is_complete=False)
    assert file.getvalue() == ""


def test_a_narrow_terminal_cuts_text_but_never_numbers() -> None:
    table = pa.table({"host": ["a" * 60], "n": [1234567890123]})
    _heading, row, _ = _shown(("q", table), width=30).splitlines()
    assert len(row) <= 30
    assert "…" in row
    assert row.endswith("1234567890123")


@given(
    st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), max_size=30), min_size=1),
    st.integers(12, 60),
)
def test_columns_stand_below_each_other_in_any_script(values: list[str], width: int) -> None:
    table = pa.table({"t": values, "n": [7] * len(values)})
    rows = _shown(("q", table), width=width).splitlines()[1:-1]
    assert len(rows) == len(values)
    assert len({cell_len(row) for row in rows}) == 1
    assert cell_len(rows[0]) <= width
