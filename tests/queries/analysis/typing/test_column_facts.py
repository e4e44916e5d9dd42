"""Aggregates and units of time are known of a query's columns, however many queries they pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.errors import TypeMismatchError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.types import GsqlType
from gscope.queries.gsql.parser import parse

if TYPE_CHECKING:
    from gscope.queries.plan.logical import LogicalQuery

COUNTS = (
    "DEFINE { query_name 'counts'; } SELECT tb, time_ns, cnt FROM"
    " (SELECT time/60 AS tb, max(time_ns) AS time_ns, count(*) AS cnt FROM TCP "
    "GROUP BY time/60) AS c; "
)
"""Columns: an epoch, a time in nanoseconds, an aggregate; those of a query that reads a query."""

TIMES = (
    "DEFINE { query_name 'times'; }"
    " SELECT tb, tb*60 AS minute, time_ns AS time, last, srcIP, n FROM"
    " (SELECT tb, srcIP, max(time) AS last, max(time_ns) AS time_ns, count(*) AS n"
    " FROM TCP GROUP BY time/60 AS tb, srcIP) AS t; "
)


def last_of(*texts: str) -> LogicalQuery:
    return analyze([parse("".join(texts))], ("a",), {}, {}).queries[-1]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("SELECT cnt/60 AS x FROM counts", GsqlType.FLOAT),
        ("SELECT (cnt + 1)*8/60 AS x FROM counts", GsqlType.FLOAT),
        ("SELECT cnt DIV 60 AS x FROM counts", GsqlType.INT),
        ("SELECT tb/60 AS x FROM counts", GsqlType.INT),
        ("SELECT tb, max(cnt/60) AS x FROM counts GROUP BY tb", GsqlType.FLOAT),
        ("SELECT tb, cnt/60 AS x FROM counts GROUP BY tb, cnt", GsqlType.FLOAT),
        ("SELECT tb, bucket, count(*) FROM counts GROUP BY tb, cnt/60 AS bucket", GsqlType.INT),
        ("SELECT tb, cnt/60 AS x, count(*) FROM counts GROUP BY tb, cnt/60", GsqlType.INT),
        ("SELECT a.cnt/60 AS x FROM counts AS a, counts AS b WHERE a.tb = b.tb", GsqlType.FLOAT),
        ("SELECT a.tb/60 AS x FROM counts AS a, counts AS b WHERE a.tb = b.tb", GsqlType.INT),
        (
            "SELECT a.len/60 AS x FROM TCP AS a, counts AS b WHERE a.time/60 = b.tb",
            GsqlType.INT,
        ),
        (
            "SELECT m.cnt/60 AS x FROM (MERGE a.tb : b.tb FROM counts a, counts b) AS m",
            GsqlType.FLOAT,
        ),
    ],
)
def test_a_quotient_of_another_query_s_aggregate_keeps_its_fraction(
    text: str, kind: GsqlType
) -> None:
    schema = last_of(COUNTS, text).schema
    name = "bucket" if "bucket" in schema else "x"
    assert schema[name].type is kind


def test_conditions_divide_as_columns_do() -> None:
    for text in (
        "SELECT tb FROM counts WHERE cnt/60 > 0.5",
        "SELECT a.tb FROM counts AS a, counts AS b WHERE a.tb = b.tb AND a.cnt/60 > b.cnt",
        "SELECT tb, count(*) FROM counts GROUP BY tb, cnt HAVING cnt/60 > 0.5",
    ):
        assert "div_float" in repr(last_of(COUNTS, text).root)
        assert "idiv_int" not in repr(last_of(COUNTS, text).root)


SECONDS = [
    "SELECT TIMESTAMP(tb*60) AS t FROM times",
    "SELECT TIMESTAMP(minute) AS t FROM times",
    "SELECT TIMESTAMP(last) AS t FROM times",
    "SELECT TIMESTAMP(minute + 1) AS t FROM (SELECT minute FROM times) AS again",
    "SELECT TIMESTAMP(tb*60) AS t, count(*) FROM times GROUP BY tb",
    "SELECT TIMESTAMP(max(minute)) AS t FROM times GROUP BY tb",
    "SELECT tb, count(*) FROM times WHERE TIMESTAMP(minute) > timestamp '2020-01-01' GROUP BY tb",
    "SELECT TIMESTAMP(a.tb*60) AS t FROM times AS a, times AS b WHERE a.tb = b.tb",
    "SELECT a.srcIP FROM times AS a, times AS b"
    " WHERE a.tb = b.tb AND TIMESTAMP(a.last) > TIMESTAMP(b.last)",
    "SELECT TIMESTAMP(m.minute) AS t FROM (MERGE a.tb : b.tb FROM times a, times b) AS m",
]


@pytest.mark.parametrize("text", SECONDS)
def test_seconds_of_another_query_are_no_nanoseconds(text: str) -> None:
    with pytest.raises(TypeMismatchError, match="its argument counts seconds") as refused:
        last_of(TIMES, text.replace("timestamp '2020-01-01'", "TIMEVAL'2020-01-01 00:00:00'"))
    assert "to_timestamp" in refused.value.remedy


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TIMESTAMP(time) AS t FROM times",
        "SELECT TIMESTAMP(tb*60000000000) AS t FROM times",
        "SELECT TIMESTAMP(n) AS t FROM times",
        "SELECT TIMESTAMP(last*1000000000) AS t FROM times",
        "SELECT TIMESTAMP(us*1000) AS t FROM (SELECT minute*1000000 AS us FROM times) AS u",
        "SELECT to_timestamp(tb*60) AS t FROM times",
    ],
)
def test_nanoseconds_of_another_query_are(text: str) -> None:
    assert last_of(TIMES, text).schema["t"].type is GsqlType.TIMESTAMP


def test_a_column_of_a_watchlist_has_no_origin() -> None:
    lists = (
        "DEFINE { query_name 'w'; filename 'w.csv'; } WATCHLIST FIELDS { IP ip; INT time; }; ",
        "DEFINE { query_name 'named'; } SELECT tb, max(w.time) AS time FROM times, w"
        " WHERE times.srcIP = w.ip GROUP BY tb; ",
    )
    schema = last_of(
        TIMES, *lists, "SELECT tb, TIMESTAMP(time) AS t, time/60 AS x FROM named"
    ).schema
    assert (schema["t"].type, schema["x"].type) == (GsqlType.TIMESTAMP, GsqlType.FLOAT)


def test_columns_that_double_from_query_to_query_cost_no_more() -> None:
    chain = ["DEFINE { query_name 'q0'; } SELECT time, len AS x FROM TCP; "]
    for number in range(40):
        head = f"DEFINE {{ query_name 'q{number + 1}'; }} SELECT time, x + x AS x FROM q{number}; "
        chain.append(head)
    assert last_of(*chain).schema["x"].type is GsqlType.INT
