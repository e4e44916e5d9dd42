"""Tables at every width: whole values, aligned columns, headings where a reader needs them."""

from __future__ import annotations

import io
import os
import re
from itertools import takewhile

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from gscope.cli.config.time_style import TimeStyle
from gscope.cli.sinks.table import TableSink, TableStyle
from gscope.cli.sinks.table_times import time_formatter
from gscope.queries.expressions.schema import ClockUnit, ColumnSchema
from gscope.queries.expressions.types import GsqlType

NAME = ".".join(str(number) * 62 for number in range(1, 5))[:251] + "zz"
TIME = pa.timestamp("ns")


def _shown(
    *deliveries: tuple[str, pa.Table],
    width: int | None = 80,
    height: int = 1_000,
    is_styled: bool = False,
    is_vertical: bool = False,
    encoding: str | None = None,
) -> str:
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding) if encoding else io.StringIO()
    queries = list(dict.fromkeys(query for query, _ in deliveries))
    size = None if width is None else os.terminal_size((width, height))
    style = TableStyle(None if size is None else lambda: size, is_vertical, is_styled)
    sink = TableSink(file, queries, style)
    for query in queries:
        sink.begin(query, dict(deliveries)[query].schema)
    for query, table in deliveries:
        sink.write(query, table)
    sink.close(is_complete=True)
    return raw.getvalue().decode(encoding) if encoding else file.getvalue()  # type: ignore[union-attr]


def _of(kind: str, name: str) -> pa.Field:
    return pa.field(name, pa.string(), metadata={"gscope.type": kind})


def test_numbers_stand_right_and_text_left() -> None:
    table = pa.table({"srcIP": ["10.0.0.1", "1.1.1.1"], "cnt": [5, 12345], "x": [0.5, None]})
    assert _shown(("q", table)) == (
        "srcIP       cnt     x\n10.0.0.1      5   0.5\n1.1.1.1   12345  NULL\n(2 rows)\n"
    )


def test_later_rows_keep_the_widths_of_the_first() -> None:
    first, later = pa.table({"a": ["abcdef"], "n": [1]}), pa.table({"a": ["xy"], "n": [2]})
    assert _shown(("q", first), ("q", later)).splitlines()[1:3] == ["abcdef  1", "xy      2"]


def test_later_rows_that_need_more_room_get_it_with_some_to_spare_below_a_new_heading() -> None:
    tables = [pa.table({"a": [text], "n": [1]}) for text in ("10.0.0.1", "100.64.0.10", "1" * 13)]
    assert _shown(*(("q", table) for table in tables)).splitlines()[2:5] == [
        "a              n",
        "100.64.0.10    1",
        "1111111111111  1",
    ]


def test_a_rising_counter_changes_the_heading_a_few_times_only() -> None:
    tables = [pa.table({"a": ["x"], "n": [10**power]}) for power in range(19)]
    shown = _shown(*(("q", table) for table in tables))
    assert len(re.findall(r"(?m)^a +n$", shown)) == 7


def test_a_pipe_gets_one_heading_and_lines_of_any_length() -> None:
    tables = [pa.table({"a": ["x" * length], "n": [1]}) for length in (5, 500)]
    lines = _shown(*(("q", table) for table in tables), width=None).splitlines()
    assert [line.split()[0] for line in lines] == ["a", "x" * 5, "x" * 500, "(2"]


def test_the_heading_comes_again_on_each_screen() -> None:
    table = pa.table({"n": range(7)})
    lines = _shown(("q", table.slice(0, 2)), ("q", table.slice(2)), height=5).splitlines()
    assert lines == ["n", "0", "1", "2", "n", "3", "4", "5", "n", "6", "(7 rows)"]
    assert _shown(("q", table), width=None).count("n\n") == 1


def test_a_terminal_that_becomes_narrower_gets_another_layout() -> None:
    size = 80

    def screen() -> os.terminal_size:
        return os.terminal_size((size, 50))

    file = io.StringIO()
    table = pa.table(
        [["fe80::1"], ["fe80::2"], [1234567]],
        schema=pa.schema([_of("IP", "srcIP"), _of("IP", "destIP"), ("bytes", pa.int64())]),
    )
    sink = TableSink(file, ["q"], TableStyle(screen))
    sink.begin("q", table.schema)
    sink.write("q", table)
    size = 20
    sink.write("q", table)
    assert file.getvalue().splitlines() == [
        "srcIP    destIP     bytes",
        "fe80::1  fe80::2  1234567",
        "-[ row 2 ]----------",
        "srcIP   fe80::1",
        "destIP  fe80::2",
        "bytes   1234567",
    ]


def test_each_of_several_results_has_a_title() -> None:
    a, b = pa.table({"n": [1]}), pa.table({"m": [2]})
    assert _shown(("a", a), ("b", b), ("a", a)) == (
        "a\nn\n1\n\nb\nm\n2\n\na\nn\n1\n(a: 2 rows, b: 1 row)\n"
    )


def test_an_empty_answer_has_its_heading() -> None:
    empty = pa.table({"n": pa.array([], pa.int64())})
    assert _shown(("q", empty)) == "n\n(0 rows)\n"
    assert _shown(("q", empty), is_vertical=True) == "(0 rows)\n"


def test_only_a_terminal_gets_colours() -> None:
    table = pa.table({"n": [1]})
    assert "\x1b" in _shown(("q", table), is_styled=True)
    assert "\x1b" not in _shown(("q", table))


def test_an_incomplete_answer_has_no_count() -> None:
    file = io.StringIO()
    sink = TableSink(file, ["q"], TableStyle())
    sink.begin("q", pa.schema([("n", pa.int64())]))
    sink.close(is_complete=False)
    assert file.getvalue() == ""


def test_free_text_is_folded_within_its_column() -> None:
    table = pa.table({"host": ["a" * 30, "b"], "n": [1234567890123, 2]})
    assert _shown(("q", table), width=35).splitlines() == [
        "host                              n",
        "aaaaaaaaaaaaaaaaaaaa  1234567890123",
        "  aaaaaaaaaa",
        "b                                 2",
        "(2 rows)",
    ]


def test_columns_move_together_and_headings_take_lines_before_anything_is_folded() -> None:
    fields = [
        _of("IP", "srcIP"),
        ("srcPort", pa.int64()),
        _of("IP", "destIP"),
        ("destPort", pa.int64()),
    ]
    row = [["192.168.100.200"], [53105], ["192.168.100.201"], [443]]
    table = pa.table(row, schema=pa.schema(fields))
    assert _shown(("q", table), width=51).splitlines()[:2] == [
        "srcIP            srcPort  destIP           destPort",
        "192.168.100.200    53105  192.168.100.201       443",
    ]
    assert _shown(("q", table), width=50).splitlines()[:2] == [
        "srcIP           srcPort destIP          destPort",
        "192.168.100.200   53105 192.168.100.201      443",
    ]
    assert _shown(("q", table), width=47).splitlines()[:3] == [
        "                   src                   dest",
        "srcIP             Port  destIP           Port",
        "192.168.100.200  53105  192.168.100.201   443",
    ]
    assert _shown(("q", table), width=43).splitlines()[:3] == [
        "                  src                 dest",
        "srcIP            Port destIP          Port",
        "192.168.100.200 53105 192.168.100.201  443",
    ]
    assert _shown(("q", table), width=40).startswith("-[ row 1 ]")


def test_further_text_to_fold_changes_no_widths() -> None:
    tables = [pa.table({"a": ["x" * n], "b": ["y" * (90 - n)]}) for n in (30, 50, 40, 80)]
    shown = _shown(*(("q", table) for table in tables), width=40)
    assert len(re.findall(r"(?m)^a +b$", shown)) == 1


def test_text_that_would_be_folded_into_a_tower_makes_the_table_vertical() -> None:
    table = pa.table({"host": ["a" * 300], "n": [1234567890123]})
    lines = _shown(("q", table), width=40).splitlines()
    assert lines[0] == "-[ row 1 ]".ljust(40, "-")
    assert lines[1] == "host  " + "a" * 34
    assert lines[-2] == "n     1234567890123"


def test_an_integer_that_counts_time_is_shown_as_a_time() -> None:
    column = ColumnSchema("tb", GsqlType.INT, clock=ClockUnit(60 * 10**9, 60 * 10**9))
    formatter = time_formatter(column, TimeStyle.UTC)
    assert formatter is not None
    file = io.StringIO()
    sink = TableSink(file, ["q"], TableStyle(), {"q": {"tb": formatter}})
    table = pa.table({"tb": [28_333_333, None], "n": [1, 2]})
    sink.begin("q", table.schema)
    sink.write("q", table)
    assert file.getvalue() == (
        "tb                    n\n2023-11-14 22:13:00Z  1\nNULL                  2\n"
    )


def test_what_the_encoding_lacks_is_escaped_as_a_character() -> None:
    table = pa.table({"é": ["ñ", "漢😀"], "n": [1, 2]})
    assert _shown(("q", table), encoding="iso-8859-1").splitlines()[:3] == [
        "é                 n",
        "ñ                 1",
        "\\u6f22\\U0001f600  2",
    ]
    assert _shown(("q", table), encoding="ascii").splitlines()[1] == "\\u00f1            1"


def test_the_vertical_layout_can_be_chosen() -> None:
    table = pa.table({"srcIP": ["10.0.0.1", None], "cnt": [5, 12345]})
    assert _shown(("q", table), width=30, is_vertical=True).splitlines() == [
        "-[ row 1 ]--------------------",
        "srcIP  10.0.0.1",
        "cnt    5",
        "-[ row 2 ]--------------------",
        "srcIP  NULL",
        "cnt    12345",
        "(2 rows)",
    ]


HOSTILE = st.text(max_size=40) | st.sampled_from(
    [
        "\x1b[2J\x1b]0;owned\x07",
        "a\nb\rc\td",
        "\u202egnp.exe",
        "é" * 9,
        "e\u0301" * 9,
        "漢字" * 9,
        "",
    ]
)
IPV6 = "2001:db8:1234:5678:9abc:def0:1234:5678"
PAYLOAD = "GET /" + "abcdefghij" * 20
WIDE: list[tuple[pa.Field, str, object]] = [
    (pa.field("timestamp", TIME), "2023-11-14 22:13:20.123456789Z", 1_700_000_000_123_456_789),
    (_of("IP", "srcIP"), IPV6, IPV6),
    (_of("IP", "destIP"), IPV6[:-1] + "9", IPV6[:-1] + "9"),
    (_of("MAC", "mac"), "aa:bb:cc:dd:ee:ff", "aa:bb:cc:dd:ee:ff"),
    (_of("STRING", "name"), NAME, NAME),
    (pa.field("count", pa.int64()), str(-(2**63)), -(2**63)),
    (pa.field("data", pa.binary()), PAYLOAD, PAYLOAD.encode()),
    *((pa.field(f"column{i}", pa.int64()), str(2**62 + i), 2**62 + i) for i in range(36)),
]


@pytest.mark.parametrize("places", [[0], [0, 1, 2, 3], [4], [1, 4, 5], [3, 4, 5, 6], range(43)])
def test_every_value_is_whole_at_every_width(places: list[int]) -> None:
    chosen = [WIDE[place] for place in places]
    table = pa.table(
        [pa.array([value], field.type) for field, _, value in chosen],
        schema=pa.schema([field for field, _, _ in chosen]),
    )
    for width in range(20, 201, 9 if len(places) > 9 else 1):
        lines = _shown(("q", table), width=width).splitlines()
        assert max(map(len, lines)) <= width
        for field, text, _ in chosen:
            assert any(_continues(lines, at, text) for at in range(len(lines))), (field.name, width)


def _continues(lines: list[str], at: int, text: str) -> bool:
    """Whether a text begins somewhere on a line and goes on below, two cells further right."""
    begin = lines[at].find(text[:4])
    while begin >= 0:
        rest, number, place = text, at, begin
        while rest and number < len(lines):
            pairs = zip(lines[number][place:], rest, strict=False)
            taken = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
            if not taken:
                break
            rest, number, place = rest[taken:], number + 1, begin + 2
        if not rest:
            return True
        begin = lines[at].find(text[:4], begin + 1)
    return False


def _cells(line: str) -> int:
    """The cells of a line on a terminal that shows each character for itself."""
    return sum(map(cell_len, line))


@settings(max_examples=60)
@given(
    st.lists(HOSTILE, min_size=1, max_size=5),
    st.integers(24, 60),
    st.sampled_from([None, "ascii", "iso-8859-1"]),
)
def test_hostile_text_stays_in_its_column(
    values: list[str], width: int, encoding: str | None
) -> None:
    table = pa.table({"n": [7] * len(values), "t": values, "m": [8] * len(values)})
    shown = _shown(("q", table), width=width, encoding=encoding)
    lines = shown.split("\n")[1:-2]
    assert all(line.isprintable() for line in lines)
    assert max(map(_cells, lines)) <= width
    if shown.startswith("-["):
        return
    assert sum(line.startswith("7 ") for line in lines) == len(values)
    assert len({_cells(line) for line in lines if line.startswith("7 ")}) == 1
