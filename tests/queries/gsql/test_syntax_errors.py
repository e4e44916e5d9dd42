"""Wrong texts: each file names a part of its report in its first line.

Others are made up at random.
"""

from __future__ import annotations

from pathlib import Path
from time import process_time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gscope.errors import GsqlSyntaxError, Position
from gscope.queries.gsql.parser import parse, parse_expression
from gscope.queries.gsql.printer import print_file
from gscope.queries.gsql.scanner import MAX_DEPTH, MAX_TEXT

_CASES = sorted((Path(__file__).parents[1] / "refused").glob("syntax_*.gsql"))
_WHOLE = (
    "DEFINE { query_name 'flows'; PATTERN 0x29; } PARAM { n uint; }\n"
    "SELECT DISTINCT tb, S.*, sum(len) AS bytes OUTER_JOIN"
    " FROM [all].TCP S [RANGE '18 sec' SLIDE 15], lib/q AS r\n"
    "WHERE str_match_start[TCP_data, 'GET'] AND srcIP IN (IP_VAL'10.0.0.1', $n) OR NOT a BETWEEN 1"
    " AND #PATTERN#\n"
    "GROUP BY time/60 AS tb SUPERGROUP tb"
    " HAVING count(*) > 1.5 CLEANING_WHEN sum$(x) > 3 CLOSING_WHEN x IS NOT NULL;\n"
    "MERGE a.t : b.t SLACK 5 FROM a, (SELECT CASE WHEN @p THEN 1 ELSE -x END FROM h.i.UDP) b;\n"
    "PROTOCOL Snort (TCP) WHERE SYN = 1 { size = len * 2; } -- the end"
)
_PIECES = [
    "SELECT",
    "FROM",
    "WHERE",
    "GROUP",
    "BY",
    "AS",
    "AND",
    "OR",
    "NOT",
    "IN",
    "IS",
    "NULL",
    "CASE",
    "WHEN",
    "THEN",
    "ELSE",
    "END",
    "MERGE",
    "WITH",
    "DEFINE",
    "PARAM",
    "PROTOCOL",
    "QUERY",
    "JOIN",
    "OUTER_JOIN",
    "LEFT",
    "ON",
    "SLACK",
    "RANGE",
    "SLIDE",
    "SLICES",
    "WATCHLIST",
    "FIELDS",
    "x",
    "TCP",
    "a.b",
    "1",
    "2.5",
    "'text'",
    "'",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ";",
    ":",
    ".",
    "*",
    "/",
    "+",
    "-",
    "=",
    "<",
    ">",
    "<>",
    "!",
    "~",
    "&",
    "|",
    "$n",
    "#d#",
    "@p",
    "sum$(",
    "INTERVAL",
    "'5",
    "sec'",
    "IP_VAL'::1'",
    "HEX'ff'",
    "--",
    "/*",
    "*/",
    "\n",
    '"',
    "\u2019",
    "\x00",
    "é",
]


@pytest.mark.parametrize("case", _CASES, ids=lambda case: case.stem)
def test_a_wrong_text_is_refused_with_its_place_and_remedy(case: Path) -> None:
    text = case.read_text(encoding="utf-8")
    expected = text.splitlines()[0].removeprefix("-- fails: ")
    with pytest.raises(GsqlSyntaxError) as caught:
        parse(text, case.name)
    report = caught.value.report()
    assert expected in report
    assert "^" in report
    assert report.startswith(f"{case.name}:")


def _parses_or_complains(text: str) -> None:
    error = _complaint(text)
    if error is None:
        file = parse(text)
        assert parse(print_file(file)) == file
        return
    assert error.message
    assert error.report()
    assert error.position is None or error.position.line <= max(1, len(text.splitlines()))


def _complaint(text: str) -> GsqlSyntaxError | None:
    try:
        parse(text, "fuzz")
    except GsqlSyntaxError as error:
        return error
    return None


@given(st.text(max_size=60))
@settings(deadline=None)
def test_any_text_parses_or_gets_a_syntax_error(text: str) -> None:
    _parses_or_complains(text)


@given(st.lists(st.sampled_from(_PIECES), max_size=25), st.sampled_from([" ", ""]))
@settings(deadline=None, max_examples=300)
@example(["SELECT", "x", "FROM", "TCP", "\n"], " ")
def test_any_row_of_words_parses_or_gets_a_syntax_error(words: list[str], space: str) -> None:
    _parses_or_complains(space.join(words))


@given(
    st.integers(0, len(_WHOLE)),
    st.integers(0, 12),
    st.one_of(st.sampled_from(_PIECES), st.text(max_size=3), st.just("")),
)
@settings(deadline=None, max_examples=300)
@example(0, 0, "")
def test_a_damaged_query_parses_or_gets_a_syntax_error(at: int, cut: int, put: str) -> None:
    _parses_or_complains(_WHOLE[:at] + put + _WHOLE[at + cut :])


@pytest.mark.parametrize(
    "text",
    [
        "(" * 60_000,
        "-" + " -" * 60_000 + "x",
        "!" * 60_000 + "x",
        "NOT " * 60_000 + "x",
        "CASE " * 60_000,
        "f(" * 60_000,
        "1" + "+1" * 60_000,
        "x." * 60_000 + "x",
        "'" * 60_001,
        "a" * 240_000 + " b",
        "9" * 240_000,
        "/*" * 60_000,
        "/**/" * 60_000 + "#",
        "x IN (" + "1," * 60_000 + ")",
        "\n" * 240_000 + "?",
    ],
    ids=lambda text: text[:6],
)
def test_huge_wrong_texts_are_refused_soon(text: str) -> None:
    started = process_time()
    with pytest.raises(GsqlSyntaxError):
        parse_expression(text)
    assert process_time() - started < 20


def test_a_text_longer_than_the_limit_is_refused() -> None:
    with pytest.raises(GsqlSyntaxError, match="the text is too long"):
        parse("x" * (MAX_TEXT + 1))


def test_a_long_flat_text_is_no_trouble() -> None:
    file = parse("SELECT a, b FROM q WHERE c = 'x' AND d IN (1, 2, 3);\n" * 2_000)
    assert len(file.queries) == 2_000


def test_nesting_up_to_the_limit_parses_prints_and_compares() -> None:
    text = "NOT " * (MAX_DEPTH - 1) + "x"
    assert parse_expression(text) == parse_expression(text)
    assert parse_expression("(" * MAX_DEPTH + "x" + ")" * MAX_DEPTH) == parse_expression("x")
    with pytest.raises(GsqlSyntaxError, match="nested more than"):
        parse_expression("NOT " + text)


def test_an_error_at_the_end_points_behind_the_last_word() -> None:
    with pytest.raises(GsqlSyntaxError) as caught:
        parse("SELECT a FROM q WHERE\n\n -- and then?\n")
    assert caught.value.position == Position(1, 22)


def test_a_wrong_keyword_that_passed_for_a_name_is_pointed_at() -> None:
    with pytest.raises(GsqlSyntaxError) as caught:
        parse("SELECT a\nFROM q WEHRE a = 1")
    assert caught.value.position == Position(2, 8, 5)
