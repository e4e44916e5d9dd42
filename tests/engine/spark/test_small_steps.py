"""Which queries start Spark in a replay, as docs/operations.md says."""

from __future__ import annotations

import pytest

from gscope.engine.spark.small_steps import needs_sql
from gscope.queries.compile import CompileContext, QueryText, compile_queries

GROUPED = "SELECT tb, srcIP, {} AS v FROM IP GROUP BY time/10 AS tb, srcIP"
SUBQUERY = "(SELECT time/10 AS tb, str_suffix(TCP_data, 2) AS s, interface AS i FROM TCP) AS t"


def needs(text: str) -> bool:
    return needs_sql(compile_queries([QueryText(text, "q")], CompileContext(("main",))).program)


@pytest.mark.parametrize(
    "aggregate",
    [
        "stddev(len)",
        "median(len) * 2",
        "quantile(len / 2.0, 0.9)",
        "first(destIP)",
        "count_diff(len)",
        "sum(DISTINCT len)",
        "avg(DISTINCT len)",
        "approx_top_k(destIP, 3)",
        "approx_count_distinct(destPort)",
        "max(destIP)",
        "bool_or(len > 100)",
        "round(avg(len))",
        "int(avg(len))",
        "sqrt(sum(len))",
        "min_of(max(len), 1000)",
        "log(sum(len))",
        "pow(sum(len), 2)",
        "concat('a', string(sum(len)))",
        "string(max(destIP))",
        "count(DISTINCT destIP) + count(DISTINCT len)",
    ],
)
def test_aggregates_of_numbers_and_addresses_need_no_spark(aggregate: str) -> None:
    assert not needs(GROUPED.format(aggregate))


def test_comparisons_of_addresses_and_texts_need_no_spark() -> None:
    assert not needs(GROUPED.format("count(*)") + " HAVING max(destIP) > '10.0.0.1'")
    assert not needs(f"SELECT tb, s FROM {SUBQUERY} WHERE s = i")


def test_texts_of_another_query_need_no_spark() -> None:
    assert not needs(f"SELECT tb, i, s, count(*) FROM {SUBQUERY} GROUP BY tb, i, s")


@pytest.mark.parametrize(
    "text",
    [
        GROUPED.format("last(len / 2.0)"),
        GROUPED.format("if_else(count(*) > 1, 'a', 'b')"),
        "SELECT tb, count(*) FROM IP GROUP BY len / 2.0 AS tb",
        f"SELECT tb, s, running_count(*) FROM {SUBQUERY} GROUP BY tb, s CLOSING_WHEN count(*) = 0",
    ],
)
def test_what_tasks_do_not_compute_starts_spark(text: str) -> None:
    assert needs(text)
