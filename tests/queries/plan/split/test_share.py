"""Queries that ask the same share what answers them."""

from __future__ import annotations

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program, QueryInput, StreamInput, node_inputs

FLOWS = "SELECT tb, srcIP, count(*) as cnt FROM TCP GROUP BY time/60 as tb, srcIP"


def program(*texts: str, only: tuple[str, ...] = ()) -> Program:
    queries = [QueryText(text, f"q{number}") for number, text in enumerate(texts)]
    return compile_queries(queries, CompileContext(("main",), only=only)).program


def named(name: str, text: str) -> str:
    return f"DEFINE {{ query_name '{name}'; }} {text};"


def test_equal_aggregations_have_one_lfta_and_each_delivered_one_its_node() -> None:
    made = program(named("a", FLOWS), named("b", FLOWS))
    assert [lfta.name for lfta in made.lftas] == ["a"]
    assert [(node.query, node_inputs(node)) for node in made.nodes] == [
        ("a", (StreamInput("a"),)),
        ("b", (StreamInput("a"),)),
    ]
    assert made.results == (("a", QueryInput("a")), ("b", QueryInput("b")))


def test_a_part_of_a_query_that_is_delivered_elsewhere_is_made_once_under_the_delivered_name() -> (
    None
):
    busiest = "SELECT tb, max(cnt) as most FROM {} GROUP BY tb"
    made = program(
        named("inner", FLOWS), named("most", busiest.format("inner")), named("flows", FLOWS)
    )
    assert [lfta.name for lfta in made.lftas] == ["inner"]
    assert [(node.query, node_inputs(node)) for node in made.nodes] == [
        ("flows", (StreamInput("inner"),)),
        ("most", (QueryInput("flows"),)),
    ]
    assert made.results == (("most", QueryInput("most")), ("flows", QueryInput("flows")))


def test_what_equal_parts_feed_is_equal_too() -> None:
    least = "SELECT tb, min(cnt) as least FROM {} GROUP BY tb"
    above = "SELECT tb, least + 1 as more FROM {} WHERE least > {}"
    made = program(
        *(named(f"flows{n}", FLOWS) for n in (1, 2)),
        *(named(f"least{n}", least.format(f"flows{n}")) for n in (1, 2)),
        *(named(f"above{n}", above.format(f"least{n}", n)) for n in (1, 2)),
    )
    sources = {node.query: node_inputs(node) for node in made.nodes}
    assert len({sources[f"above{n}"] for n in (1, 2)}) == 1
    assert len(made.lftas) == 1


def test_different_predicates_interfaces_or_columns_share_nothing() -> None:
    other = FLOWS.replace("GROUP", "WHERE len > 99 GROUP")
    more = FLOWS.replace("count(*) as cnt", "count(*) as cnt, sum(len) as bytes")
    assert len(program(*(named(f"q{n}", t) for n, t in enumerate((FLOWS, other, more)))).lftas) == 3


def test_a_selection_that_is_an_answer_keeps_its_stream() -> None:
    rows = "SELECT time, srcIP FROM TCP WHERE SYN = 1"
    made = program(named("a", rows), named("b", rows))
    assert [lfta.name for lfta in made.lftas] == ["a", "b"]
    assert made.results == (("a", StreamInput("a")), ("b", StreamInput("b")))
