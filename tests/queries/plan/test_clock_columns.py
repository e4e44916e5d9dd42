"""Which columns of results count time, and in which unit; compared with packets of known times."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.schema import ClockUnit, ColumnSchema

SECOND = 10**9
MINUTE = 60 * SECOND


def column(text: str, name: str) -> ColumnSchema:
    made = compile_queries([QueryText(text, "test")], CompileContext(("up", "down")))
    (query, _) = made.program.results[-1]
    return made.program.schema(query)[name]


@pytest.mark.parametrize(
    ("expression", "unit", "grain"),
    [
        ("time", SECOND, SECOND),
        ("time_ns", 1, 1),
        ("timestamp", 1, 1),
        ("time/60", MINUTE, MINUTE),
        ("time/60*60", SECOND, MINUTE),
        ("time - time % 60", SECOND, MINUTE),
        ("60*(time/60)", SECOND, MINUTE),
        ("time DIV 60", MINUTE, MINUTE),
        ("time/60/60", 60 * MINUTE, 60 * MINUTE),
        ("time >> 6", 64 * SECOND, 64 * SECOND),
        ("time*1000", SECOND // 1000, SECOND),
        ("time_ns/1000", 1000, 1000),
        ("(time + 30)/60", MINUTE, MINUTE),
        ("time/60 + 1", MINUTE, MINUTE),
        ("time + 3600", SECOND, SECOND),
        ("timestamp/INTERVAL '10 sec'", 10 * SECOND, 10 * SECOND),
        ("timestamp + INTERVAL '1 min'", 1, 1),
        ("to_timestamp(time)", 1, SECOND),
        ("to_timestamp(time/60*60) + INTERVAL '1 ms'", 1, 10**6),
        ("date_trunc('minute', timestamp)", 1, MINUTE),
        ("date_trunc('week', timestamp)", 1, 86_400 * SECOND),
        ("time_bucket('250 ms', timestamp)", 1, 250 * 10**6),
        ("non_temporal(time)", SECOND, SECOND),
        ("coalesce(time, NULL)", SECOND, SECOND),
        ("if_else(SYN = 1, time, time/60*60)", SECOND, SECOND),
        ("CASE WHEN SYN = 1 THEN time END", SECOND, SECOND),
        ("TIMEVAL'2023-11-14 22:13:20'", 1, 1_700_000_000 * SECOND),
    ],
)
def test_a_time_is_known_by_its_unit(expression: str, unit: int, grain: int) -> None:
    assert column(f"SELECT {expression} AS x FROM TCP", "x").clock == ClockUnit(unit, grain)


@pytest.mark.parametrize(
    "expression",
    [
        "time % 60",
        "time & 63",
        "-time",
        "(1700002800 - time)/60",
        "time - 1700000000",
        "time + 2208988800",
        "time*60",
        "time*3/2",
        "time/60.0",
        "time + len",
        "time/len",
        "abs(time)",
        "min_of(time, 5)",
        "coalesce(time, 0)",
        "if_else(SYN = 1, time, time/60)",
        "INT(time/3.0)",
        "timestamp - TIMEVAL'2023-11-14 22:13:20'",
        "increasing(sequence_number)/50",
        "len",
        "1700000000",
        "STRING(timestamp)",
    ],
)
def test_other_numbers_are_not_times(expression: str) -> None:
    text = f"SELECT {expression} AS x FROM up.TCP"
    assert column(text, "x").clock is None


def test_an_aggregate_that_chooses_a_value_keeps_its_unit() -> None:
    text = (
        "SELECT tb, min(time) AS since, last(time_ns) AS until, sum(time) AS total,"
        " max(time) - min(time) AS life, count(*) AS n, count_distinct(time/60) AS minutes"
        " FROM TCP GROUP BY time/60 AS tb"
    )
    assert column(text, "tb").clock == ClockUnit(MINUTE, MINUTE)
    assert column(text, "since").clock == ClockUnit(SECOND, SECOND)
    assert column(text, "until").clock == ClockUnit(1, 1)
    for name in ("total", "life", "n", "minutes"):
        assert column(text, name).clock is None


FIRST = "DEFINE { query_name 'q'; } SELECT tb, srcIP, count(*) AS n FROM up.TCP GROUP BY {}, srcIP;"


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("SELECT tb AS x FROM q", MINUTE),
        ("SELECT tb*60 AS x FROM q", SECOND),
        ("SELECT x, sum(n) FROM q GROUP BY tb/60 AS x", 60 * MINUTE),
        ("SELECT A.tb AS x FROM q A, q B WHERE A.tb = B.tb AND A.srcIP = B.srcIP", MINUTE),
        ("SELECT DISTINCT tb AS x, n FROM q", MINUTE),
        ("SELECT n AS x FROM q", None),
        ("SELECT n*tb AS x FROM q", None),
    ],
)
def test_a_column_of_another_query_keeps_its_unit(text: str, unit: int | None) -> None:
    first = FIRST.replace("{}", "time/60 AS tb")
    found = column(f"{first} DEFINE {{ query_name 'last'; }} {text}", "x").clock
    assert (None if found is None else found.unit_ns) == unit


def test_a_merge_keeps_the_unit_that_all_inputs_have() -> None:
    seconds = "DEFINE { query_name '%s'; } SELECT %s AS x, len FROM %s.TCP;"
    merge = "DEFINE { query_name 'm'; } MERGE a.x : b.x FROM a, b"
    same = seconds % ("a", "time", "up") + seconds % ("b", "time", "down") + merge
    assert column(same, "x").clock == ClockUnit(SECOND, SECOND)
    mixed = seconds % ("a", "time", "up") + seconds % ("b", "time/60", "down") + merge
    assert column(mixed, "x").clock is None


@pytest.mark.parametrize(
    ("window", "grains"),
    [
        ("RANGE '1 min' SLIDE '10 sec'", (10 * SECOND, 10 * SECOND)),
        ("RANGE 18 SLIDE 15", (3 * SECOND, 15 * SECOND)),
        ("RANGE '1500 ms' SLIDE '1 sec'", (SECOND // 2, SECOND)),
        ("SLICES 12, 3", (3 * SECOND, 3 * SECOND)),
    ],
)
def test_windows_begin_and_end_at_multiples(window: str, grains: tuple[int, int]) -> None:
    text = f"SELECT window_start, window_end FROM IP [{window}] GROUP BY srcIP"
    starts, ends = column(text, "window_start"), column(text, "window_end")
    assert (starts.clock, ends.clock) == tuple(ClockUnit(1, grain) for grain in grains)


def test_windows_along_a_column_that_counts_minutes() -> None:
    text = (
        "Query per_minute: SELECT tb, count(*) as n FROM IP GROUP BY time/60 as tb;"
        "Query q: SELECT window_end, max(n) FROM per_minute [RANGE 6 SLIDE 4]"
    )
    assert column(text, "window_end").clock == ClockUnit(1, 4 * MINUTE)
