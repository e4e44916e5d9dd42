"""Outer joins in SQL's spelling against DuckDB.

Those in Gigascope's are held against the same with early filters.
"""

from __future__ import annotations

from collections import Counter

import duckdb
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.queries.analysis.plan_rows import Row, rows_of

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.printer import print_file
from gscope.queries.plan.rules.optimize import optimize

INPUTS = """
Query a: SELECT t, k, count(*) as x FROM IP GROUP BY time as t, vlan as k;
Query b: SELECT t, k, count(*) as y FROM IP GROUP BY time as t, vlan as k;
Query c: SELECT t, k, count(*) as z FROM IP GROUP BY time as t, vlan as k;
"""
Numbers = tuple[int, "int | None", int]
ROWS = st.lists(
    st.tuples(st.integers(0, 5), st.none() | st.integers(0, 2), st.integers(0, 3)), max_size=6
)
MATCHES = ["a.k = b.k", "a.x < b.y", "a.x > 1", "b.y > 1", "b.k IS NULL", "1 = 1", "1 = 2"]
CHOICES = [
    "a.x > 1",
    "b.y < 3",
    "b.y IS NULL",
    "a.k IS NULL",
    "(a.x > 1 OR b.y IS NULL)",
    "a.x = b.y",
    "coalesce(b.y, 7) > 2",
    "1 = 1",
]
TIMES = ["a.t = b.t", "a.t = b.t + 1", "b.t BETWEEN a.t AND a.t + 2", "a.t - b.t BETWEEN -1 AND 1"]


DUCKDB = duckdb.connect(config={"threads": 1})
THIRD = ["", "", "LEFT JOIN c ON c.t = a.t AND a.x > 1 AND c.z < 3"]

Streams = dict[str, list[Row]]


@settings(max_examples=150, deadline=None)
@given(
    kind=st.sampled_from(["LEFT", "RIGHT", "FULL", "LEFT OUTER", "INNER"]),
    time=st.sampled_from(TIMES),
    on=st.lists(st.sampled_from(MATCHES), max_size=2, unique=True),
    where=st.lists(st.sampled_from(CHOICES), max_size=2, unique=True),
    third=st.sampled_from(THIRD),
    rows=st.tuples(ROWS, ROWS, ROWS),
)
def test_on_and_where_mean_what_they_mean_in_sql(
    kind: str,
    time: str,
    on: list[str],
    where: list[str],
    third: str,
    rows: tuple[list[Numbers], ...],
) -> None:
    columns = ["a.k AS ak", "b.k AS bk", "x", "y"]
    is_filled = kind == "FULL" and "BETWEEN" not in time
    if not is_filled:
        columns += ["a.t AS at", "b.t AS bt"]
    source = f"a {kind} JOIN b ON {' AND '.join([time, *on])}"
    if third and kind not in ("RIGHT", "FULL"):
        source, columns = f"{source} {third}", [*columns, "z"]
    chosen = f" WHERE {' AND '.join(where)}" if where else ""
    text = f"SELECT {', '.join(columns)} FROM {source}{chosen}"
    streams: Streams = {
        name: [{"t": t, "k": k, value: v} for t, k, v in each]
        for name, value, each in zip("abc", "xyz", rows, strict=True)
    }
    assert by_gscope(text, streams) == by_duckdb(text, streams)


def by_gscope(text: str, streams: Streams) -> Counter[tuple[object, ...]]:
    """The rows of the plan, and of what the rules make of it."""
    file = parse(f"{INPUTS} Query q: {text}")
    assert parse(print_file(file)) == file
    plan = analyze([file], ("m",), {}, {})
    stages = [plan, *(stage for _, stage in optimize(plan))]
    found: list[Counter[tuple[object, ...]]] = [
        Counter(tuple(row.values()) for row in rows_of(each.queries[-1].root, streams))
        for each in stages
    ]
    assert all(rows == found[0] for rows in found)
    return found[0]


def by_duckdb(text: str, streams: Streams) -> Counter[tuple[object, ...]]:
    tables = [
        f"{name} AS (SELECT * FROM (VALUES {', '.join(map(_values, [*rows, None]))}) AS {name}"
        f"(t, k, {value}) WHERE t IS NOT NULL)"
        for (name, rows), value in zip(streams.items(), "xyz", strict=True)
    ]
    return Counter(DUCKDB.execute(f"WITH {', '.join(tables)} {text}").fetchall())


def _values(row: Row | None) -> str:
    """A row of a table of integers, NULLs for none: no table may be empty."""
    values = [None] * 3 if row is None else list(row.values())
    return f"({', '.join('NULL::BIGINT' if v is None else str(v) for v in values)})"


A: list[Row] = [{"t": 1, "k": 1, "x": 5}, {"t": 40, "k": 2, "x": 0}, {"t": 70, "k": None, "x": 1}]
B: list[Row] = [{"t": 2, "k": 1, "y": 0}, {"t": 100, "k": 1, "y": 9}]


@pytest.mark.parametrize(
    ("source", "rows"),
    [
        (
            "a LEFT JOIN b ON a.t/30 = b.t/30 AND a.x > 9 AND a.k = b.k",
            [(1, 5, None), (40, 0, None)],
        ),
        ("a LEFT JOIN b ON a.t/30 = b.t/30 AND a.k = b.k WHERE y > 3", []),
        ("a LEFT_OUTER_JOIN b ON a.t/30 = b.t/30 AND a.x > 9 AND a.k = b.k", []),
        (
            "a LEFT_OUTER_JOIN b ON a.t/30 = b.t/30 AND a.k = b.k WHERE y > 3",
            [(1, 5, None), (40, 0, None)],
        ),
    ],
)
def test_each_spelling_has_its_rule(source: str, rows: list[tuple[object, ...]]) -> None:
    plan = analyze([parse(f"{INPUTS} Query q: SELECT a.t, x, y FROM {source}")], ("m",), {}, {})
    streams = {"a": A[:2], "b": B}
    found = rows_of(plan.queries[-1].root, streams)
    assert [tuple(row.values()) for row in found] == rows


@pytest.mark.parametrize("spelling", ["FULL JOIN b ON", "OUTER_JOIN b ON"])
@pytest.mark.parametrize("term", ["a.t/30", "b.t/30"])
def test_the_equated_time_of_a_full_join_can_be_grouped_by(spelling: str, term: str) -> None:
    text = (
        f"SELECT tb, max(x) AS x, max(y) AS y FROM a {spelling} a.t/30 = b.t/30"
        f" GROUP BY {term} AS tb"
    )
    plan = analyze([parse(f"{INPUTS} Query q: {text}")], ("m",), {}, {})
    assert plan.queries[-1].schema["tb"].ordering.is_temporal
    found = rows_of(plan.queries[-1].root, {"a": A, "b": B})
    assert sorted(map(tuple, (row.values() for row in found)), key=str) == [
        (0, 5, 0),
        (1, 0, None),
        (2, 1, None),
        (3, None, 9),
    ]


def test_a_name_of_both_sides_is_that_of_the_side_that_is_there() -> None:
    text = "SELECT t, k, a.k AS ak FROM a FULL JOIN b ON a.t = b.t AND a.k = b.k"
    plan = analyze([parse(f"{INPUTS} Query q: {text}")], ("m",), {}, {})
    found = rows_of(plan.queries[-1].root, {"a": A[:1], "b": B[1:]})
    assert [tuple(row.values()) for row in found] == [(1, 1, 1), (100, 1, None)]


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("a LEFT JOIN b WHERE a.t = b.t", "needs ON"),
        ("a LEFT JOIN b ON a.t = b.t LEFT_OUTER_JOIN c ON c.t = a.t", "write both in one spelling"),
        ("a LEFT JOIN b ON a.t = b.t AND c.z = 1 LEFT JOIN c ON c.t = a.t", "joined later"),
        ("a FULL JOIN b ON a.t = b.t WHERE a.t IS NULL", "test another column of that side"),
        ("a LEFT JOIN b ON a.k = b.k WHERE a.t = b.t", "add a.t = b.t"),
    ],
)
def test_what_has_no_meaning_in_sql_is_refused_with_a_remedy(source: str, message: str) -> None:
    with pytest.raises(GsqlError) as caught:
        analyze([parse(f"{INPUTS} Query q: SELECT x FROM {source}")], ("m",), {}, {})
    assert message in caught.value.report()
