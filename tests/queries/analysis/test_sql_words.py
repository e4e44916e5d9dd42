"""Words that users of SQL bring: what they mean in GSQL, or a remedy that can be followed."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse

TWO = "main0.TCP a LEFT JOIN main1.TCP b ON a.time = b.time AND a.srcIP = b.srcIP"
SELECT = "SELECT time FROM TCP WHERE "
NO_COUNTERPART = ""


def shape(text: str) -> str:
    plan = analyze([parse(text)], ("main0", "main1"), {}, {})
    return str([(query.name, query.root, query.schema) for query in plan.queries])


@pytest.mark.parametrize(
    ("brought", "meant"),
    [
        ("SELECT len::FLOAT AS x FROM TCP", "SELECT FLOAT(len) AS x FROM TCP"),
        ("SELECT srcIP::text::inet AS x FROM TCP", "SELECT strtoip(STRING(srcIP)) AS x FROM TCP"),
        ("SELECT -len::float AS x FROM TCP", "SELECT -FLOAT(len) AS x FROM TCP"),
        ("SELECT sum(len)::float/3 AS x FROM TCP", "SELECT FLOAT(sum(len))/3 AS x FROM TCP"),
        (SELECT + "TCP_data ILIKE '%Get%'", SELECT + "lower(TCP_data) LIKE '%get%'"),
        (SELECT + "TCP_data NOT ILIKE 'É%'", SELECT + "lower(TCP_data) NOT LIKE 'É%'"),
        (SELECT + "len == 3 && SYN != 1", SELECT + "len = 3 AND SYN <> 1"),
        (
            "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY len) AS x FROM TCP",
            "SELECT quantile(len, 0.95) AS x FROM TCP",
        ),
        (
            "SELECT percentile_cont(0.5) within group (order by len asc) FILTER (WHERE SYN) AS x "
            "FROM TCP",
            "SELECT quantile(len, 0.5) FILTER (WHERE SYN) AS x FROM TCP",
        ),
        (
            SELECT + "timestamp > TIMESTAMP '2023-11-14 22:00:00'",
            SELECT + "timestamp > TIMEVAL'2023-11-14 22:00:00'",
        ),
        (SELECT + "timestamp > DATE '2023-11-14'", SELECT + "timestamp > TIMEVAL'2023-11-14'"),
        *(
            (
                f"SELECT timestamp + INTERVAL {length} AS x FROM TCP",
                "SELECT timestamp + INTERVAL '5 min' AS x FROM TCP",
            )
            for length in ("5 MINUTE", "'5' MINUTE", "'5' minutes", "5.0 min")
        ),
        (
            "SELECT srcIP, round(avg(len), 2) AS x FROM TCP GROUP BY srcIP",
            "SELECT srcIP, round(avg(len) * 100.0) / 100.0 AS x FROM TCP GROUP BY srcIP",
        ),
        ("SELECT round(len, 2) AS x FROM TCP", "SELECT len AS x FROM TCP"),
        ("SELECT round(len/3.0, 0) AS x FROM TCP", "SELECT round(len/3.0) AS x FROM TCP"),
        (
            "SELECT COUNT(DISTINCT srcIP) AS x FROM TCP",
            "SELECT count_distinct(srcIP) AS x FROM TCP",
        ),
        ("SELECT srcIP FROM TCP;; -- all\n", "SELECT srcIP /* all */ FROM TCP"),
        ("SELECT sum(len) AS sum, len AS within FROM TCP GROUP BY len", "SELECT sum(len) sum, "
         "len within FROM TCP GROUP BY len"),
    ],
)  # fmt: skip
def test_a_word_of_sql_has_its_meaning(brought: str, meant: str) -> None:
    assert shape(brought) == shape(meant)


CASES = [
    (
        "SELECT srcIP, row_number() OVER (ORDER BY len) FROM TCP",
        "write running_sum(len) or moving_avg(len, 5)",
        "SELECT tb, srcIP, moving_avg(len, 5) FROM TCP GROUP BY time/60 AS tb, srcIP "
        "CLOSING_WHEN count(*) = 0",
    ),
    (
        "SELECT srcIP, rank() FROM TCP GROUP BY srcIP",
        "ORDER BY sum(len) DESC LIMIT 10",
        "SELECT srcIP FROM TCP GROUP BY srcIP ORDER BY sum(len) DESC LIMIT 10",
    ),
    (
        "SELECT lag(len) FROM TCP",
        "ON now.tb = before.tb + 1",
        "WITH q AS (SELECT time/60 AS tb, sum(len) AS n FROM TCP GROUP BY tb) SELECT now.tb, "
        "now.n - before.n AS more FROM q AS now JOIN q AS before ON now.tb = before.tb + 1",
    ),
    (
        "SELECT count(DISTINCT srcIP, destIP) AS x FROM TCP",
        "count(DISTINCT srcIP || ' ' || destIP)",
        "SELECT count(DISTINCT srcIP || ' ' || destIP) AS x FROM TCP",
    ),
    (
        "SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY len) FROM TCP",
        "percentile_cont(0.95) WITHIN GROUP (ORDER BY len)",
        "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY len) FROM TCP",
    ),
    (
        "SELECT percentile_cont(0.95) WITHIN GROUP (ORDER BY len DESC) FROM TCP",
        "percentile_cont(0.05) for percentile_cont(0.95)",
        "SELECT percentile_cont(0.05) WITHIN GROUP (ORDER BY len) FROM TCP",
    ),
    (
        "SELECT extract(hour FROM timestamp) AS x FROM TCP",
        "write time / 3600 % 24",
        "SELECT time / 3600 % 24 AS x FROM TCP",
    ),
    (
        "SELECT extract(minute FROM timestamp) AS x FROM TCP",
        "write time / 60 % 60; date_trunc('minute', timestamp)",
        "SELECT date_trunc('minute', timestamp), time / 60 % 60 AS x FROM TCP",
    ),
    *(
        (
            f"{SELECT} TCP_data {word} 'GET'",
            "str_regex_match[x, 'pattern']",
            f"{SELECT} str_regex_match[TCP_data, 'pattern']",
        )
        for word in ("SIMILAR TO", "REGEXP", "RLIKE", "~", "~*")
    ),
    (SELECT + "TCP_data GLOB 'GET*'", "x LIKE 'GET%'", SELECT + "TCP_data LIKE 'GET%'"),
    (SELECT + "vlan ISNULL", "IS NULL", SELECT + "vlan IS NULL"),
    (SELECT + "vlan NOTNULL", "IS NOT NULL", SELECT + "vlan IS NOT NULL"),
    (
        SELECT + "len BETWEEN SYMMETRIC 5 AND 3",
        "BETWEEN least(a, b) AND greatest(a, b)",
        SELECT + "len BETWEEN least(5, 3) AND greatest(5, 3)",
    ),
    (
        "SELECT TOP 10 srcIP FROM TCP",
        "ORDER BY … DESC LIMIT 10",
        "SELECT srcIP FROM TCP ORDER BY len DESC LIMIT 10",
    ),
    (
        "SELECT TOP (10) srcIP FROM TCP",
        "ORDER BY … DESC LIMIT 10",
        "SELECT srcIP FROM TCP ORDER BY len DESC LIMIT 10",
    ),
    (
        "SELECT srcIP FROM TCP FETCH FIRST 10 ROWS ONLY",
        "LIMIT 10",
        "SELECT srcIP FROM TCP LIMIT 10",
    ),
    ("SELECT srcIP FROM TCP LIMIT 10 OFFSET 5", "LIMIT keeps", "SELECT srcIP FROM TCP LIMIT 10"),
    (
        "SELECT srcIP, count(*) AS n FROM TCP GROUP BY srcIP QUALIFY n > 3",
        "write HAVING for groups",
        "SELECT srcIP, count(*) AS n FROM TCP GROUP BY srcIP HAVING n > 3",
    ),
    *(
        (
            SELECT + condition,
            "FILTER_JOIN(time, 5) FROM a, b WHERE a.srcIP = b.srcIP",
            "SELECT a.time FILTER_JOIN(time, 5) FROM TCP a, UDP b WHERE a.srcIP = b.srcIP",
        )
        for condition in (
            "EXISTS (SELECT 1 FROM UDP)",
            "srcIP IN (SELECT srcIP FROM UDP)",
        )
    ),
    (
        SELECT + "len > (SELECT avg(len) FROM UDP)",
        "FROM a JOIN (SELECT time/60 AS tb, avg(len) AS mean FROM TCP GROUP BY tb) AS b "
        "ON a.time/60 = b.tb",
        "SELECT a.time FROM TCP AS a JOIN (SELECT time/60 AS tb, avg(len) AS mean FROM TCP "
        "GROUP BY tb) AS b ON a.time/60 = b.tb WHERE a.len > b.mean",
    ),
    (
        "SELECT srcIP FROM TCP EXCEPT SELECT srcIP FROM UDP",
        "FROM a LEFT JOIN b ON a.time = b.time AND a.srcIP = b.srcIP WHERE b.srcIP IS NULL",
        f"SELECT a.srcIP FROM {TWO} WHERE b.srcIP IS NULL",
    ),
    ("SELECT * EXCLUDE (TCP_data) FROM TCP", "name the columns", "SELECT time, srcIP FROM TCP"),
    ("SELECT [srcIP] FROM TCP", "names need no brackets", "SELECT srcIP FROM TCP"),
    ("SELECT `srcIP` FROM TCP", "names need no quotes", "SELECT srcIP FROM TCP"),
    ("SELECT srcIP FROM TCP # all", "begins with -- or //", "SELECT srcIP FROM TCP -- all"),
    ("SELECT time AS group FROM TCP", "write for example group_", "SELECT time AS group_ FROM TCP"),
    ("FROM TCP", "write SELECT * FROM TCP", "SELECT * FROM TCP"),
    ("FROM TCP SELECT srcIP", "SELECT comes first", "SELECT srcIP FROM TCP"),
    ("SELECT 1", "for example FROM TCP", "SELECT 1 AS x FROM TCP"),
    (
        "SELECT sum(len) FILTER (SYN = 1) FROM TCP",
        "sum(len) FILTER (WHERE SYN = 1)",
        "SELECT sum(len) FILTER (WHERE SYN = 1) FROM TCP",
    ),
    (
        "SELECT sum(len) FILTER WHERE SYN = 1 FROM TCP",
        "sum(len) FILTER (WHERE SYN = 1)",
        "SELECT sum(len) FILTER (WHERE SYN = 1) FROM TCP",
    ),
    (
        "SELECT DISTINCT ON (srcIP) srcIP, len FROM TCP",
        "first(len) and GROUP BY srcIP",
        "SELECT srcIP, first(len) FROM TCP GROUP BY srcIP",
    ),
    (
        SELECT + "len = ANY (1, 2)",
        "destPort IN (80, 443)",
        SELECT + "destPort IN (80, 443)",
    ),
    ("SELECT srcIP, 5 FROM TCP GROUP BY ROLLUP (srcIP)", "a query for each", NO_COUNTERPART),
    ("SELECT srcIP FROM TCP GROUP BY GROUPING SETS (srcIP)", "a query for each", NO_COUNTERPART),
    ("EXPLAIN SELECT srcIP FROM TCP", "gscope explain -e", NO_COUNTERPART),
    ("SHOW TABLES", "gscope schema lists the protocols", NO_COUNTERPART),
    ("DESCRIBE TCP", "gscope schema TCP", NO_COUNTERPART),
    ("VALUES (1, 2)", "WATCHLIST", NO_COUNTERPART),
    ("DELETE FROM TCP", "a query is SELECT, MERGE or WATCHLIST", NO_COUNTERPART),
    (
        "WITH RECURSIVE a AS (SELECT time FROM TCP) SELECT * FROM a",
        "CLOSING_WHEN",
        NO_COUNTERPART,
    ),
    ("SELECT round(len/3.0, 99) FROM TCP", "", "SELECT round(len/3.0, 15) FROM TCP"),
]


@pytest.mark.parametrize(("brought", "remedy", "followed"), CASES, ids=lambda text: text[:45])
def test_a_word_that_gsql_lacks_has_a_remedy_that_works(
    brought: str, remedy: str, followed: str
) -> None:
    with pytest.raises(GsqlError) as caught:
        shape(brought)
    assert remedy in caught.value.remedy
    assert caught.value.position is not None
    if followed:
        assert shape(followed)
