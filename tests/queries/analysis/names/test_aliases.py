"""Aliases of SELECT in other clauses, GROUP BY ALL and positions mean what they stand for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.gsql.parser import parse

if TYPE_CHECKING:
    from gscope.queries.plan.logical import LogicalQuery

COUNTS = "(SELECT time/60 AS tb, srcIP, count(*) AS n FROM TCP GROUP BY time/60, srcIP) AS q"
PAIRS = "FROM main0.TCP a JOIN main1.TCP b ON a.time = b.time"


def queries(text: str, *, is_unbounded: bool = False) -> tuple[LogicalQuery, ...]:
    plan = analyze([parse(text)], ("main0", "main1"), {}, {}, is_unbounded=is_unbounded)
    return plan.queries


def shape(text: str) -> list[object]:
    return [(query.name, query.root, query.schema) for query in queries(text)]


@pytest.mark.parametrize(
    ("short", "written_out"),
    [
        (
            "SELECT time/60 AS tb, srcIP AS src, sum(len) AS bytes FROM IP "
            "GROUP BY tb, src HAVING bytes > 1000",
            "SELECT time/60 AS tb, srcIP AS src, sum(len) AS bytes FROM IP "
            "GROUP BY time/60 AS tb, srcIP AS src HAVING sum(len) > 1000",
        ),
        (  # a quotient of an aggregate is FLOAT behind an alias, too
            "SELECT srcIP, sum(len) AS bytes FROM IP GROUP BY srcIP HAVING bytes/1000 > 1.5",
            "SELECT srcIP, sum(len) AS bytes FROM IP GROUP BY srcIP HAVING sum(len)/1000 > 1.5",
        ),
        (
            "SELECT time/60 AS tb, srcIP, count(*) FROM IP GROUP BY 1, 2",
            "SELECT time/60 AS tb, srcIP, count(*) FROM IP GROUP BY time/60 AS tb, srcIP",
        ),
        (
            "SELECT count(*), prefix(srcIP, 24), 'x' AS what FROM IP GROUP BY ALL",
            "SELECT count(*), prefix(srcIP, 24), 'x' AS what FROM IP GROUP BY prefix(srcIP, 24)",
        ),
        (
            "SELECT sum(len) AS bytes, bytes*8 AS bits, srcIP FROM IP GROUP BY all",
            "SELECT sum(len) AS bytes, sum(len)*8 AS bits, srcIP FROM IP GROUP BY srcIP",
        ),
        ("SELECT count(*) AS n FROM IP GROUP BY ALL", "SELECT count(*) AS n FROM IP"),
        (  # a call without an alias is called by the name of its column
            "SELECT minute(time), count(*) FROM IP GROUP BY minute",
            "SELECT minute, count(*) FROM IP GROUP BY minute(time) AS minute",
        ),
        (
            "SELECT srcIP, sum(len), count(*) FROM IP GROUP BY srcIP"
            " HAVING sum_len > 9 AND cnt > 1",
            "SELECT srcIP, sum(len), count(*) FROM IP GROUP BY srcIP"
            " HAVING sum(len) > 9 AND count(*) > 1",
        ),
        (
            "SELECT len*8 AS bits, bits/2 AS half FROM IP WHERE half > 100 AND BITS < 900",
            "SELECT len*8 AS bits, len*8/2 AS half FROM IP WHERE len*8/2 > 100 AND len*8 < 900",
        ),
        (
            "SELECT tb, count(*) AS n FROM TCP WHERE tb > 28333320 GROUP BY time/60 AS tb",
            "SELECT tb, count(*) AS n FROM TCP WHERE time/60 > 28333320 GROUP BY time/60 AS tb",
        ),
        (
            "SELECT tb, count(*) AS n FROM TCP GROUP BY time/60 AS tb CLOSING_WHEN n = 0",
            "SELECT tb, count(*) AS n FROM TCP GROUP BY time/60 AS tb CLOSING_WHEN count(*) = 0",
        ),
        (  # where there are groups, a column that is not a term has no other meaning
            "SELECT tb, max(len) AS len FROM TCP GROUP BY time/60 AS tb HAVING len > 100",
            "SELECT tb, max(len) AS len FROM TCP GROUP BY time/60 AS tb HAVING max(len) > 100",
        ),
        (  # inside an aggregate the column of the input is meant
            "SELECT tb, max(len) AS len FROM TCP GROUP BY time/60 AS tb HAVING sum(len) > 100",
            "SELECT tb, max(len) AS len FROM TCP GROUP BY time/60 AS tb HAVING sum(TCP.len) > 100",
        ),
        (  # a term has precedence over the alias of the same name
            "SELECT tb*60 AS tb, count(*) AS n FROM TCP GROUP BY time/60 AS tb HAVING tb > 5",
            "SELECT tb*60 AS tb, count(*) AS n FROM TCP GROUP BY time/60 AS tb HAVING time/60 > 5",
        ),
        (  # as has the column that it is, under another name
            "SELECT k, sum(caplen) AS len FROM TCP GROUP BY len AS k HAVING len > 5",
            "SELECT k, sum(caplen) AS len FROM TCP GROUP BY len AS k HAVING k > 5",
        ),
        (  # a column of the input has precedence over an alias in GROUP BY and WHERE
            "SELECT time/60 AS time, count(*) AS n FROM TCP WHERE time > 9 GROUP BY time",
            "SELECT TCP.time/60 AS time, count(*) AS n FROM TCP WHERE TCP.time > 9 "
            "GROUP BY TCP.time",
        ),
        (  # but one that differs in case or spelling does not
            "SELECT ack_number AS seq, count(*) AS n FROM TCP WHERE seq > 5 GROUP BY seq",
            "SELECT ack_number AS seq, count(*) AS n FROM TCP WHERE ack_number > 5 "
            "GROUP BY ack_number AS seq",
        ),
        (
            "SELECT seq AS s, count(*) AS n FROM TCP WHERE seq > 5 GROUP BY s",
            "SELECT seq AS s, count(*) AS n FROM TCP WHERE sequence_number > 5 "
            "GROUP BY sequence_number AS s",
        ),
        (
            f"SELECT a.srcIP AS src, count(*) AS n {PAIRS} WHERE src <> '10.0.0.1' "
            "GROUP BY a.time/60 AS tb, src HAVING n > 3",
            f"SELECT a.srcIP AS src, count(*) AS n {PAIRS} WHERE a.srcIP <> '10.0.0.1' "
            "GROUP BY a.time/60 AS tb, a.srcIP AS src HAVING count(*) > 3",
        ),
        (
            f"SELECT n/4 AS fours, fours*2 AS x FROM {COUNTS} WHERE fours > 1",
            f"SELECT n/4 AS fours, n/4*2 AS x FROM {COUNTS} WHERE n/4 > 1",
        ),
        (
            f"SELECT tb, n/4 AS bucket, count(*) AS times FROM {COUNTS} GROUP BY 1, bucket",
            f"SELECT tb, bucket, count(*) AS times FROM {COUNTS} GROUP BY tb, n/4 AS bucket",
        ),
        (
            "SELECT len*8 AS bits, sum(bits) FROM IP GROUP BY 1",
            "SELECT len*8 AS bits, sum(len*8) AS sum_bits FROM IP GROUP BY len*8 AS bits",
        ),
    ],
    ids=lambda text: text[:60],
)
def test_a_short_form_means_what_it_stands_for(short: str, written_out: str) -> None:
    mine, theirs = shape(short), shape(written_out)
    # The names of columns inside the plan are gscope's own choice; the result's are not.
    assert str(mine).replace("sum_bits", "sum_len_8") == str(theirs).replace(
        "sum_bits", "sum_len_8"
    )


def test_a_column_called_all_is_the_column() -> None:
    text = "SELECT all, count(*) AS n FROM (SELECT srcIP AS all FROM TCP) AS q GROUP BY all"
    assert queries(text)[-1].schema.names == ("all", "n")
    text = "SELECT srcIP AS all, destIP, count(*) AS n FROM TCP GROUP BY destIP, all"
    assert queries(text)[-1].schema.names == ("all", "destIP", "n")


def test_the_meaning_is_kept_for_explain_only_where_it_differs() -> None:
    (query,) = queries("SELECT time/60 AS tb, sum(len) AS n FROM IP GROUP BY 1 HAVING n > 1")
    assert "GROUP BY 1\nHAVING n > 1" in query.text
    assert "GROUP BY time / 60 AS tb\nHAVING sum(len) > 1" in query.meaning
    (query,) = queries("SELECT time/60, sum(len) AS n FROM IP GROUP BY time/60")
    assert query.meaning == ""


@pytest.mark.parametrize(
    ("text", "message", "remedy"),
    [
        (
            "SELECT srcIP, sum(len) AS bytes FROM IP GROUP BY srcIP, bytes",
            "bytes is the aggregate sum(len), which is not allowed in GROUP BY",
            "leave bytes out",
        ),
        (
            "SELECT srcIP, sum(len) AS bytes FROM IP WHERE bytes > 9 GROUP BY srcIP",
            "bytes is the aggregate sum(len), which is not allowed in WHERE",
            "write HAVING bytes",
        ),
        (
            "SELECT srcIP, sum(len) AS bytes, max(bytes) FROM IP GROUP BY srcIP",
            "bytes is the aggregate sum(len), which is not allowed in the argument of max",
            "aggregate its result in another",
        ),
        (
            "SELECT srcIP, sum(len) AS b, b*8 AS bits FROM IP GROUP BY srcIP, bits",
            "bits is the aggregate b * 8",
            "leave bits out",
        ),
        ("SELECT srcIP, sum(len) FROM IP GROUP BY 2", "GROUP BY 2 is sum(len), an aggregate", "2"),
        ("SELECT srcIP, sum(len) FROM IP GROUP BY 3", "expected 1 to 2, got 3", "position"),
        ("SELECT srcIP, sum(len) FROM IP GROUP BY 0", "expected 1 to 2, got 0", "position"),
        ("SELECT 'x', sum(len) FROM IP GROUP BY 1", "GROUP BY 1 is a constant", "leave 1 out"),
        ("SELECT 'x' FROM IP GROUP BY ALL", "but these are constants", "count(*)"),
        ("SELECT *, sum(len) FROM IP GROUP BY 1", "cannot count columns behind *", "name the"),
        ("SELECT *, sum(len) FROM IP GROUP BY ALL", "cannot group by *", "name the columns"),
        (
            "SELECT time/60 AS tb, srcIP, 'x' AS x, count(*) FROM TCP",
            "time is neither grouped by nor inside an aggregate",
            "add GROUP BY tb, srcIP, which is GROUP BY ALL",
        ),
        ("SELECT x+1 AS x, x+2 AS y FROM IP WHERE y > 1", "IP has no column x", ""),
        (
            "SELECT bytes*8 AS bits, sum(len) AS bytes FROM IP GROUP BY ALL",
            "IP has no column bytes",
            "named further on in SELECT",
        ),
        (
            f"SELECT tb, b FROM {COUNTS} WHERE b > 1 GROUP BY tb, n/4 AS b",
            "no column b",
            "repeat its expression here",
        ),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused(text: str, message: str, remedy: str) -> None:
    with pytest.raises(GsqlError) as caught:
        queries(text)
    assert message in str(caught.value)
    assert remedy in caught.value.remedy


@pytest.mark.parametrize("clause", ["", "WHERE a40 > 1", "GROUP BY a40", "GROUP BY ALL"])
def test_aliases_of_aliases_cannot_grow_without_limit(clause: str) -> None:
    items = ", ".join(f"a{n} + a{n} AS a{n + 1}" for n in range(40))
    with pytest.raises(GsqlError, match=r"too long|nested"):
        queries(f"SELECT len AS a0, {items} FROM IP {clause}")


def test_without_an_end_a_grouping_by_all_needs_a_time() -> None:
    text = "SELECT {}srcIP, count(*) AS n FROM IP GROUP BY ALL"
    with pytest.raises(GsqlError) as caught:
        queries(text.format(""), is_unbounded=True)
    assert "add minute(time)" in caught.value.remedy
    assert queries(text.format("time/60 AS tb, "), is_unbounded=True)
