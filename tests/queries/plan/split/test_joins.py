"""The split of joins: what is composed into a node, what runs low, what is shared."""

from __future__ import annotations

from pathlib import Path

import pytest

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import (
    AggregationNode,
    JoinNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
)
from gscope.queries.plan.show_expressions import show, show_equalities, show_of_sides

PUBLISHED = Path(__file__).parents[4] / "queries" / "library" / "published"
INPUTS = """
Query a: SELECT tb, srcIP, count(*) as cnt FROM TCP GROUP BY time/60 as tb, srcIP;
Query b: SELECT tb, srcIP, count(*) as n FROM UDP GROUP BY time/60 as tb, srcIP;
"""
SYN = """
Query syn: SELECT time, time/60 as tb, srcIP, destIP, ttl FROM TCP WHERE SYN = 1;
"""


def program(text: str, *interfaces: str, only: tuple[str, ...] = ()) -> Program:
    context = CompileContext(interfaces or ("m",), {"s": ("m", "n")}, only=only)
    return compile_queries([QueryText(text, "q.gsql")], context).program


def join_node(made: Program) -> JoinNode:
    (node,) = (node for node in made.nodes if isinstance(node, JoinNode))
    return node


def test_a_join_of_queries_reads_their_results() -> None:
    made = program(
        f"{INPUTS} Query q: SELECT tb, cnt + n as both FROM a LEFT JOIN b ON a.tb = b.tb"
    )
    node = join_node(made)
    assert node.query == "q"
    assert node.inputs == (QueryInput("a"), QueryInput("b"))
    assert [show_of_sides(c.expression) for c in node.columns] == ["left.tb", "left.cnt + right.n"]
    assert made.results == (("q", QueryInput("q")),)
    assert [type(n) for n in made.nodes] == [AggregationNode, AggregationNode, JoinNode]


def test_filters_of_sides_are_predicates_of_the_node() -> None:
    text = f"{INPUTS} Query q: SELECT a.tb FROM a, b WHERE a.tb = b.tb and cnt > 1 and n > 2"
    left, right = join_node(program(text)).predicates
    assert left is not None
    assert right is not None
    assert show_of_sides(left) == "left.cnt > 1"
    assert show_of_sides(right) == "right.n > 2"


def test_an_aggregation_over_a_join_reads_a_hidden_node() -> None:
    text = f"{INPUTS} Query q: SELECT tb, sum(n) FROM a, b WHERE a.tb = b.tb GROUP BY tb"
    *_, joined, group = program(text).nodes
    assert isinstance(joined, JoinNode)
    assert joined.query == "q.joined"
    assert joined.schema.names == ("tb", "n")
    assert joined.schema["tb"].ordering.is_temporal
    assert isinstance(group, AggregationNode)
    assert group.input == QueryInput("q.joined")


def test_packets_are_selected_and_projected_low() -> None:
    made = program(
        "SELECT x.len, y.len FROM m.TCP x, n.UDP y WHERE x.time = y.time and x.SYN = 1"
        " and str_regex_match[y.UDP_data, 'a+']",
        "m",
        "n",
    )
    left, right = made.lftas
    assert (left.name, left.interfaces) == ("q.1", ("m",))
    assert left.predicate is not None
    assert "SYN = 1" in show(left.predicate)
    assert left.schema.names == ("time", "len")
    assert right.schema.names == ("UDP_data", "time", "len")
    node = join_node(made)
    assert node.inputs == (StreamInput("q.1"), StreamInput("q.2"))
    assert node.predicates[0] is None
    assert node.predicates[1] is not None
    assert show(node.predicates[1]) == "str_regex_match(UDP_data, 'a+')"


def test_both_sides_of_a_self_join_read_one_stream() -> None:
    made = program(
        "SELECT x.time, y.len FROM TCP x, TCP y WHERE x.time = y.time and x.srcIP = y.destIP"
    )
    (lfta,) = made.lftas
    assert lfta.schema.names == ("time", "srcIP", "len", "destIP")
    assert join_node(made).inputs == (StreamInput("q.1"), StreamInput("q.1"))


def test_sides_that_choose_other_packets_have_streams_of_their_own() -> None:
    made = program(
        "SELECT x.time FROM TCP x, TCP y WHERE x.time = y.time and x.SYN = 1 and y.ACK = 1"
    )
    assert [lfta.name for lfta in made.lftas] == ["q.1", "q.2"]


def test_a_selection_that_is_delivered_serves_joins_as_well() -> None:
    text = f"{SYN} Query q: SELECT x.srcIP FROM syn x, syn y WHERE x.tb = y.tb and x.ttl < y.ttl"
    made = program(text, only=("syn", "q"))
    assert [lfta.name for lfta in made.lftas] == ["syn"]
    assert join_node(made).inputs == (StreamInput("syn"), StreamInput("syn"))
    assert dict(made.results)["syn"] == StreamInput("syn")


def test_a_delivered_stream_is_never_widened() -> None:
    text = (
        "Query s: SELECT time FROM TCP; Query q: SELECT x.len FROM s JOIN TCP x ON s.time = x.time"
    )
    made = program(text, only=("s", "q"))
    assert [(lfta.name, lfta.schema.names) for lfta in made.lftas] == [
        ("s", ("time",)),
        ("q.2", ("time", "len")),
    ]


def test_a_stream_that_leaves_out_tuples_serves_no_join_of_all_packets() -> None:
    made = program(
        "DEFINE { query_name 'ids'; } SELECT increasing(id) AS s, time, len FROM IP; "
        "SELECT a.time FROM IP a, IP b WHERE a.time = b.time AND a.len = b.len"
    )
    assert [bool(lfta.declared) for lfta in made.lftas] == [True, False]


def test_joins_of_one_selection_share_its_stream() -> None:
    text = (
        f"{SYN} Query p: SELECT x.srcIP FROM syn x, a WHERE x.tb = a.tb;"
        " Query q: SELECT x.destIP FROM syn x, a WHERE x.tb = a.tb;"
    )
    made = program(INPUTS + text, only=("p", "q"))
    assert [(lfta.name, lfta.schema.names) for lfta in made.lftas] == [
        ("a", ("tb", "srcIP", "count0")),
        ("p.1", ("tb", "srcIP", "destIP")),
    ]


def test_what_is_not_null_of_nulls_is_computed_below_an_outer_join() -> None:
    text = (
        "Query s: SELECT time, 5 as five, coalesce(vlan, 0) as v FROM TCP;"
        "Query q: SELECT x.time, five, v FROM s RIGHT JOIN UDP x ON s.time = x.time;"
    )
    made = program(text)
    assert isinstance(made.nodes[0], SelectionNode)
    node = join_node(made)
    assert node.inputs[0] == QueryInput("q.1")
    assert [show_of_sides(c.expression) for c in node.columns] == [
        "right.time",
        "left.five",
        "left.v",
    ]


def test_a_chain_of_joins_has_a_hidden_node_for_each_but_the_last() -> None:
    text = (
        f"{INPUTS} Query q: SELECT x.tb, y.n, z.n FROM a x, b y, b z"
        " WHERE x.tb = y.tb and y.tb = z.tb + 1"
    )
    *_, first, last = program(text).nodes
    assert isinstance(first, JoinNode)
    assert isinstance(last, JoinNode)
    assert first.query == "q.1"
    assert last.inputs == (QueryInput("q.1"), QueryInput("b"))
    assert show_equalities([last.epochs]) == "left.tb = right.tb + 1"


def test_joins_of_joins_and_of_merges_read_them_by_name() -> None:
    text = (
        f"{INPUTS} Query ab: SELECT tb, cnt, n FROM a, b WHERE a.tb = b.tb;"
        "Query m: MERGE a.tb : x.tb FROM a, (SELECT tb, srcIP, n FROM b) x;"
        "Query q: SELECT ab.tb, m.cnt FROM ab FULL JOIN m ON ab.tb = m.tb"
    )
    node = program(text).nodes[-1]
    assert isinstance(node, JoinNode)
    assert node.inputs == (QueryInput("ab"), QueryInput("m"))
    assert node.schema["tb"].ordering.is_temporal


PUBLISHED_JOINS = {
    "pair_len": ("m",),
    "full_flow": ("main0", "main1", "control"),
    "syn_ack_delay": ("m", "n"),
    "matched_syn_count": ("m", "n"),
    "matched_syn_ratio": ("m", "n"),
    "jitter": ("m",),
    "flow_pairs": ("m", "n"),
    "traffic_share": ("b", "c"),
}


@pytest.mark.parametrize("name", PUBLISHED_JOINS)
def test_published_joins_become_programs_whose_results_are_temporal(name: str) -> None:
    text = (PUBLISHED / f"{name}.gsql").read_text()
    context = CompileContext(PUBLISHED_JOINS[name], {"main0_and_control": ("main0", "control")})
    made = compile_queries([QueryText(text, f"{name}.gsql")], context).program
    assert [result for result, _ in made.results] == [name]
    assert any(isinstance(node, JoinNode) for node in made.nodes)
    assert made.schema(name).columns[0].ordering.is_temporal
