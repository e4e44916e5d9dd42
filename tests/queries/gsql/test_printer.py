from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings
from tests.queries.gsql.strategies import expressions, files, queries

from gscope.queries.gsql.parser import parse, parse_expression
from gscope.queries.gsql.printer import print_expression, print_file, print_query

if TYPE_CHECKING:
    from gscope.queries.gsql.nodes import Expression, File, Query

_CALM = settings(deadline=None, max_examples=60, suppress_health_check=list(HealthCheck))


@given(expressions)
@_CALM
def test_an_expression_survives_printing_and_parsing(expression: Expression) -> None:
    assert parse_expression(print_expression(expression)) == expression


@given(queries)
@_CALM
def test_a_query_survives_printing_and_parsing(query: Query) -> None:
    assert parse(print_query(query)).items == (query,)


@given(files)
@_CALM
def test_a_file_survives_printing_and_parsing(file: File) -> None:
    assert parse(print_file(file)) == file


@pytest.mark.parametrize(
    ("written", "canonical"),
    [
        ("((a))", "a"),
        ("(a + b) + c", "a + b + c"),
        ("a + (b + c)", "a + (b + c)"),
        ("a + b * c", "a + b * c"),
        ("(a + b) * c", "(a + b) * c"),
        ("not (a = 1) or not b", "NOT a = 1 OR NOT b"),
        ("not (a or b)", "NOT (a OR b)"),
        ("!a = b", "(NOT a) = b"),
        ("(a = b) = c", "(a = b) = c"),
        ("a & 0xF0 | b << 2", "a & 240 | b << 2"),
        ("- - a", "-(-a)"),
        ("a - -1", "a - -1"),
        ("-(a.b)", "-a.b"),
        ("-(a + b)", "-(a + b)"),
        ("a != b", "a <> b"),
        ("a between 1 and 2 and b", "a BETWEEN 1 AND 2 AND b"),
        ("a between (b = c) and (d and e)", "a BETWEEN (b = c) AND (d AND e)"),
        ("a not in (1, 'it''s')", "a NOT IN (1, 'it''s')"),
        ("(a is not null) is null", "(a IS NOT NULL) IS NULL"),
        ("case when a then 1 else 2 end", "CASE WHEN a THEN 1 ELSE 2 END"),
        ("sum$(x) + count(*)", "sum$(x) + count(*)"),
        ("str_match_start[ TCP_data,'GET' ]", "str_match_start[TCP_data, 'GET']"),
        ("interval '90 seconds'", "INTERVAL '90 sec'"),
        ("interval '1.5 min'", "INTERVAL '90 sec'"),
        ("ip_val'::1'", "IPV6_VAL'::1'"),
        ("hex'FF'", "255"),
        ("1e3", "1000.0"),
        ("#A", "#A#"),
    ],
)
def test_expressions_are_printed_with_the_brackets_they_need(written: str, canonical: str) -> None:
    assert print_expression(parse_expression(written)) == canonical


def test_a_query_is_printed_clause_by_clause() -> None:
    text = (
        "Query flows: param {n uint} define {visibility external; PATTERN 41}"
        " select distinct time/60 as tb, S.*, count(*) outer_join"
        " from eth0.TCP S, (merge a.t:b.t slack 5 from a, b) as m"
        " [range 18 slide '15 sec'] where x = $n group by time/60 as tb having count(*) > 1"
        " closing when count(*) = 0"
    )
    assert print_file(parse(text)) == (
        "DEFINE {\n  query_name 'flows';\n  visibility 'external';\n  PATTERN 41;\n}\n"
        "PARAM {\n  n uint;\n}\n"
        "SELECT DISTINCT time / 60 AS tb, S.*, count(*)\n"
        "FROM eth0.TCP AS S"
        " OUTER_JOIN (MERGE a.t : b.t SLACK 5\n  FROM a, b) AS m [RANGE 18 SLIDE '15 sec']\n"
        "WHERE x = $n\n"
        "GROUP BY time / 60 AS tb\n"
        "HAVING count(*) > 1\n"
        "CLOSING_WHEN count(*) = 0;\n"
    )


def test_a_text_over_several_lines_is_not_changed_by_indenting() -> None:
    text = "SELECT a FROM (SELECT a FROM (SELECT a FROM q WHERE b = 'x\n''y\nz' AND c) i) o"
    assert parse(print_file(parse(text))) == parse(text)
