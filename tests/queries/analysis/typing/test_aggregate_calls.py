"""What calls of aggregates become: constants, conversions, and the order that some look at."""

from __future__ import annotations

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Expression, Literal
from gscope.queries.plan.program import Aggregate, AggregationNode
from gscope.queries.plan.show_expressions import show

INTERFACES = CompileContext(("eth0", "eth1"))


def aggregates(text: str, query: str = "q") -> dict[str, Aggregate]:
    """The aggregates of the HFTA node of ``query``, by their function."""
    texts = [QueryText(text, "q.gsql")]
    program = compile_queries(texts, INTERFACES).program
    nodes = [n for n in program.nodes if n.query == query]
    assert isinstance(nodes[0], AggregationNode)
    return {a.function: a for a in nodes[0].aggregates}


def over_rows(call: str) -> tuple[Expression, ...]:
    """The arguments of ``call`` beside one that has no low half."""
    made = aggregates(f"SELECT tb, count_diff(len), {call} FROM IP GROUP BY time/60 as tb")
    return next(a.arguments for f, a in made.items() if f != "count_diff")


def test_packets_are_ordered_by_their_time() -> None:
    assert [show(a) for a in over_rows("first(srcIP)")] == ["srcIP", "time_ns"]


def test_a_stream_is_ordered_by_its_first_timestamp() -> None:
    made = aggregates(
        "DEFINE { query_name 'm'; } MERGE a.timestamp : b.timestamp FROM eth0.TCP a, eth1.TCP b;"
        "DEFINE { query_name 'q'; }"
        " SELECT tb, last(len) FROM m GROUP BY timestamp / INTERVAL '60 sec' as tb"
    )
    assert [show(a) for a in made["last"].arguments] == ["len", "timestamp"]


def test_a_stream_without_timestamps_is_ordered_by_all_that_is_temporal() -> None:
    made = aggregates(
        "DEFINE { query_name 'a'; }"
        " SELECT tb, srcIP, count(*) FROM IP GROUP BY time/10 as tb, srcIP;"
        "DEFINE { query_name 'q'; } SELECT t, first(cnt) FROM a GROUP BY tb/6 as t"
    )
    assert [show(a) for a in made["first"].arguments] == ["cnt", "tb"]


def test_first_values_join_the_low_key_and_send_their_least_time() -> None:
    first = aggregates("SELECT tb, first(ttl) FROM IP GROUP BY time/60 as tb")["first"]
    assert [show(a) for a in first.arguments] == ["ttl"]
    assert first.partials == ("min0",)


def test_constants_are_converted_and_stay_with_both_halves() -> None:
    (value, part) = over_rows("quantile(len, 1)")
    assert isinstance(value, Column)
    assert isinstance(part, Literal)
    assert repr(part.value) == "1.0"
    low = aggregates("SELECT tb, quantile(len, 0.5) FROM IP GROUP BY time/60 as tb")["quantile"]
    assert [show(a) for a in low.arguments] == ["len", "0.5"]


@pytest.mark.parametrize(
    ("call", "function"),
    [
        ("sum(DISTINCT len)", "sum_distinct"),
        ("avg(DISTINCT len)", "avg_distinct"),
        ("count(DISTINCT len)", "count_distinct"),
        ("max(DISTINCT len)", "max"),
        ("bool_or(SYN)", "bool_or"),
        ("sum(len > 100)", "sum"),
    ],
)
def test_calls_become_entries_of_the_catalog(call: str, function: str) -> None:
    assert function in aggregates(f"SELECT tb, {call} FROM TCP GROUP BY time/60 as tb")


def test_long_integers_and_text_go_up_as_rows() -> None:
    for call in ("var(time_ns)", "first(TCP_data)", "median(len / 3.0)"):
        made = aggregates(f"SELECT tb, {call} FROM TCP GROUP BY time/60 as tb")
        is_low = call.startswith("median")
        assert all(bool(a.partials) is is_low for a in made.values()), call


def test_distinct_rows_of_groups_are_groups_of_groups() -> None:
    text = "SELECT DISTINCT tb, count(*) FROM IP GROUP BY time/60 as tb, srcIP"
    program = compile_queries([QueryText(text, "q.gsql")], INTERFACES).program
    assert [node.query for node in program.nodes] == ["q.groups", "q"]
    same = "SELECT DISTINCT tb, srcIP, count(*) FROM IP GROUP BY time/60 as tb, srcIP"
    program = compile_queries([QueryText(same, "q.gsql")], INTERFACES).program
    assert [node.query for node in program.nodes] == ["q"]
