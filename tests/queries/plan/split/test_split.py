from __future__ import annotations

from dataclasses import replace

import pytest

from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    MergeNode,
    Program,
    QueryInput,
    SelectionNode,
    StreamInput,
)
from gscope.queries.plan.show_expressions import show

FLOW = "SELECT tb, srcIP, count(*) as cnt, avg(len) as size FROM IP GROUP BY time/10 as tb, srcIP"


def program(text: str, *interfaces: str, only: tuple[str, ...] = ()) -> Program:
    context = CompileContext(interfaces or ("main1",), only=only)
    return compile_queries([QueryText(text, "q.gsql")], context).program


def test_an_aggregation_is_partial_low_and_final_high() -> None:
    made = program(FLOW)
    (lfta,) = made.lftas
    assert [key.name for key in lfta.keys] == ["tb", "srcIP"]
    assert lfta.epoch == "tb"
    assert [p.op for p in lfta.partials] == [PartialOp.COUNT, PartialOp.SUM]
    (node,) = made.nodes
    assert isinstance(node, AggregationNode)
    assert node.input == StreamInput(lfta.name)
    assert [len(a.partials) for a in node.aggregates] == [1, 2]


def test_partials_are_shared() -> None:
    (lfta,) = program(
        "SELECT tb, count(*), avg(len), sum(len) FROM IP GROUP BY time/10 as tb"
    ).lftas
    assert len(lfta.partials) == 2


def test_the_argument_of_a_distinct_count_joins_the_low_key() -> None:
    made = program("SELECT tb, count_dups(sequence_number) FROM TCP GROUP BY time/60 as tb")
    assert [key.name for key in made.lftas[0].keys] == ["tb", "sequence_number"]


def test_the_interface_is_a_constant_column_of_the_stream() -> None:
    made = program("SELECT tb, interface, count(*) FROM IP GROUP BY time/10 as tb, interface")
    assert made.lftas[0].has_interface_column
    assert made.lftas[0].stream_schema["interface"].type is GsqlType.STRING
    assert "interface" not in [key.name for key in made.lftas[0].keys]


def test_no_lfta_computes_with_the_interface() -> None:
    made = program("SELECT time, length(interface) + len as x FROM IP WHERE len IN (1, 2)")
    assert [c.name for c in made.lftas[0].columns] == ["time", "len"]
    assert made.lftas[0].has_interface_column


def test_a_predicate_on_the_interface_chooses_where_the_lfta_runs() -> None:
    made = program(
        "SELECT tb, count(*) FROM IP WHERE interface <> 'b' GROUP BY time/10 as tb", "a", "b", "c"
    )
    assert made.lftas[0].interfaces == ("a", "c")
    assert made.lftas[0].predicate is not None
    assert "interface" not in show(made.lftas[0].predicate)


def test_a_selection_on_one_interface_needs_no_spark() -> None:
    made = program("SELECT time, srcIP FROM TCP WHERE SYN = 1")
    assert not made.needs_spark
    assert made.results == (("q", StreamInput("q")),)


def test_a_selection_over_several_interfaces_is_merged_in_time_order() -> None:
    (node,) = program("SELECT srcIP, time FROM TCP", "a", "b").nodes
    assert isinstance(node, MergeNode)
    assert node.on == ("time",)


def test_what_a_kernel_cannot_compute_is_computed_high_from_shipped_columns() -> None:
    made = program("SELECT time, str_extract_regex(TCP_data, 'a+') as x FROM TCP WHERE len > 9")
    (node,) = made.nodes
    assert isinstance(node, SelectionNode)
    assert made.lftas[0].schema.names == ("time", "TCP_data")
    assert made.lftas[0].predicate is not None


def test_a_grouping_by_text_ships_rows() -> None:
    made = program(
        "SELECT tb, host, count(*) FROM TCP WHERE len > 9"
        " GROUP BY time/60 as tb, str_extract_regex(TCP_data, 'a+') as host"
    )
    (node,) = made.nodes
    assert isinstance(node, AggregationNode)
    assert not made.lftas[0].is_aggregation
    assert made.lftas[0].schema["tb"].ordering.is_temporal


def test_unneeded_queries_are_left_out() -> None:
    text = f"DEFINE {{ query_name 'a'; }} {FLOW}; DEFINE {{ query_name 'b'; }} {FLOW};"
    assert [lfta.name for lfta in program(text, only=("b",)).lftas] == ["b"]


def test_a_query_over_a_query_reads_its_result() -> None:
    text = (
        f"DEFINE {{ query_name 'a'; }} {FLOW};"
        "DEFINE { query_name 'b'; } SELECT mb, sum(cnt) FROM a GROUP BY tb/6 as mb"
    )
    made = program(text)
    assert [node.query for node in made.nodes] == ["a", "b"]
    assert made.results == (("b", QueryInput("b")),)


@pytest.mark.parametrize("interfaces", [("r", "s"), ("r", "s", "t")])
def test_a_merge_of_interfaces_reads_each_stream(interfaces: tuple[str, ...]) -> None:
    text = "MERGE R.time : S.time FROM r.TCP R, s.TCP S"
    made = program(text, *interfaces)
    node = made.nodes[-1]
    assert isinstance(node, MergeNode)
    assert len(node.inputs) == 2


def test_the_parts_of_a_merge_have_schemas() -> None:
    parts = "SELECT time as t, lower(TCP_data) as x FROM r.TCP"
    text = (
        f"DEFINE {{ query_name 'a'; visibility 'internal'; }} {parts};"
        f"DEFINE {{ query_name 'b'; visibility 'internal'; }} {parts};"
        "DEFINE { query_name 'c'; } MERGE a.t : b.t FROM a, b"
    )
    made = program(text, "r")
    for node in made.nodes:
        # Which columns hold bytes or count time is known of results alone.
        columns = [replace(c, is_binary=False, clock=None) for c in made.schema(node.query).columns]
        assert columns == list(node.schema.columns)


def test_rows_of_constants_are_counted_by_their_time() -> None:
    made = program("SELECT 1 as one FROM TCP")
    assert made.lftas[0].schema.names == ("time",)
    assert made.schema("q").names == ("one",)


def test_columns_of_a_stream_never_share_a_name() -> None:
    (lfta,) = program(
        "SELECT time, srcPort AS ttl_4, destPort AS ttl FROM TCP "
        "WHERE length(http_host(TCP_data)) > ttl"
    ).lftas
    names = [c.name for c in lfta.columns]
    assert len(set(names)) == len(names) == 5


def test_interfaces_are_merged_on_a_column_that_goes_on_by_itself() -> None:
    (node,) = program(
        "SELECT 0 - time AS down, increasing(id) AS s, time, len FROM IP", "a", "b"
    ).nodes
    assert isinstance(node, MergeNode)
    assert node.on == ("time",)


@pytest.mark.parametrize("column", ["0 - time", "increasing(id)"])
def test_interfaces_without_such_a_column_are_not_merged(column: str) -> None:
    (node,) = program(f"SELECT {column} AS s, len FROM IP", "a", "b").nodes
    assert isinstance(node, SelectionNode)


@pytest.mark.parametrize("counted", ["*", "s"])
def test_a_declared_order_leaves_out_the_same_tuples_for_every_reader(counted: str) -> None:
    made = program(
        "DEFINE { query_name 'ids'; } SELECT increasing(id) AS s, time FROM IP; "
        f"SELECT tb, count({counted}) FROM ids GROUP BY time/10 AS tb"
    )
    assert [lfta.name for lfta in made.lftas] == ["ids"]
    assert len(made.lftas[0].declared) == 1
