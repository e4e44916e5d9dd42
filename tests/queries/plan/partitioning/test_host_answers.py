"""What hosts answer and what the run evaluates, if packets are divided among the hosts by a set."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from gscope.queries.analysis.partitioning.given import given_set
from gscope.queries.analysis.partitioning.on_hosts import queries_on_hosts
from gscope.queries.compile import CompileContext, Compiled, QueryText, compile_queries
from gscope.queries.plan.partitioning.host_answers import (
    HostPlan,
    first_rows,
    host_plan,
    host_program,
    of_host,
    run_program,
)
from gscope.queries.plan.program import (
    AggregationNode,
    QueryInput,
    StreamInput,
    TopNode,
    node_inputs,
)
from gscope.queries.plan.program_file import read_program, write_program
from gscope.queries.plan.row_order import SortKey, is_hidden
from gscope.queries.plan.show_expressions import show

if TYPE_CHECKING:
    from pathlib import Path

FLOWS = """DEFINE { query_name flows; } SELECT tb, srcIP, destIP, count(*) AS packets FROM IP
GROUP BY time/10 AS tb, srcIP, destIP"""
HEAVY = """DEFINE { query_name heavy; } SELECT tb, srcIP, destIP, packets FROM flows
WHERE packets > 9"""
SOURCES = """DEFINE { query_name sources; } SELECT minute, srcIP, sum(packets) AS packets FROM flows
GROUP BY tb/6 AS minute, srcIP"""
PAIRS = """DEFINE { query_name pairs; } SELECT a.tb AS tb, a.srcIP, a.packets FROM flows a, flows b
WHERE a.srcIP = b.destIP and a.destIP = b.srcIP and a.tb = b.tb"""


def compiled(*queries: str, only: tuple[str, ...] = ()) -> Compiled:
    context = CompileContext(
        interfaces=("a.eth0", "a.eth1", "b.eth0"),
        hosts=("a", "b"),
        only=only,
        is_unbounded=True,
        is_resumable=True,
    )
    return compile_queries([QueryText("; ".join(queries), "query")], context)


def planned(found: Compiled, divided_by: str) -> HostPlan:
    results = tuple(name for name, _ in found.program.results)
    on_hosts = queries_on_hosts(found.stages[0][1], results, given_set(divided_by, "set"), 2)
    return host_plan(found.program, on_hosts, ("a", "b"))


@pytest.mark.parametrize(
    ("divided_by", "answered", "kept"),
    [
        ("srcIP", ("flows", "sources"), ("pairs",)),
        ("srcIP & 0xFFFFFF00", ("flows", "sources"), ("pairs",)),
        ("srcIP, destIP", ("flows",), ("sources", "pairs")),
        ("{srcIP, destIP}", ("flows", "pairs"), ("sources",)),
        ("srcPort", (), ("flows", "sources", "pairs")),
    ],
)
def test_the_last_compatible_operators_are_answered_on_hosts(
    divided_by: str, answered: tuple[str, ...], kept: tuple[str, ...]
) -> None:
    found = compiled(FLOWS, SOURCES, PAIRS, only=("flows", "sources", "pairs"))
    plan = planned(found, divided_by)
    assert plan.answered == answered
    assert tuple(plan.kept) == kept
    assert {each.query for each in plan.run.lftas if each.answers is not None} == set(answered)
    assert tuple(node.query for node in plan.run.nodes) == kept


def test_what_only_answered_operators_read_sends_nothing() -> None:
    plan = planned(compiled(FLOWS, SOURCES, only=("sources",)), "srcIP")
    assert plan.answered == ("sources",)
    assert not plan.run.nodes
    (stream,) = plan.run.lftas
    assert stream.streams == (
        "sources.answers@a.eth0",
        "sources.answers@a.eth1",
        "sources.answers@b.eth0",
    )
    assert plan.run.results == (("sources", StreamInput("sources.answers")),)
    # Hosts name the minute of a packet; the run needs that for epochs without a host.
    (column,) = stream.columns
    assert (column.name, show(column.expression)) == ("minute", "(time DIV 10) DIV 6")


def test_run_and_hosts_evaluate_each_operator_once() -> None:
    found = compiled(FLOWS, SOURCES, PAIRS, only=("sources", "pairs"))
    plan = planned(found, "srcIP")
    host = host_program(found.program, plan.answered)
    shared = {node.query for node in host.nodes} & {node.query for node in plan.run.nodes}
    assert not shared
    assert host.served == plan.run.lftas
    assert run_program(found.program, plan.answered) == plan.run
    sources = {i for node in plan.run.nodes for i in node_inputs(node)}
    assert sources == {StreamInput("flows.answers")}


def test_rows_of_packets_that_the_run_needs_are_served_beside_answers() -> None:
    ports = """DEFINE { query_name ports; } SELECT tb, destPort, count(*) AS packets FROM TCP
    GROUP BY time/10 AS tb, destPort"""
    found = compiled(FLOWS, ports)
    plan = planned(found, "srcIP")
    host = of_host(host_program(found.program, plan.answered), "b")
    assert host.served is not None
    assert [(each.name, each.answers is None) for each in host.served] == [
        ("ports", True),
        ("flows.answers", False),
    ]
    assert [each.streams for each in host.served] == [
        ("ports@b.eth0",),
        ("flows.answers@b.eth0",),
    ]
    assert {each.name for each in host.lftas} == {"ports", "flows"}
    assert [node.query for node in host.nodes] == ["flows"]


def test_a_host_writes_one_stream_of_answers_for_all_of_its_interfaces() -> None:
    found = compiled(FLOWS)
    host = of_host(host_program(found.program, ("flows",)), "a")
    (answers,) = host.answers
    assert answers.streams == ("flows.answers@a.eth0",)
    assert host.lfta("flows").interfaces == ("a.eth0", "a.eth1")


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        (
            "SELECT time, srcIP FROM IP WHERE len > 99 LIMIT 3",
            "its order or LIMIT is that of the whole input",
        ),
        (
            "SELECT srcIP, count(*) AS packets FROM IP GROUP BY time/10 AS tb, srcIP",
            "no column of its answer rises with time",
        ),
        (
            "SELECT tb, srcIP, count(*) AS packets FROM a.eth0.IP GROUP BY time/10 AS tb, srcIP",
            "it reads no interface of b",
        ),
        ("SELECT tb, count(*) AS packets FROM IP GROUP BY time/10 AS tb", "it needs packets of"),
    ],
)
def test_what_hosts_cannot_answer_stays_with_the_run(query: str, reason: str) -> None:
    found = compiled(query)
    plan = planned(found, "srcIP")
    assert plan.answered == ()
    assert plan.run == found.program
    assert [text for text in plan.kept.values() if text.startswith(reason)]


TOP = """DEFINE { query_name top; } SELECT tb, srcIP, sum(packets) AS packets FROM flows
GROUP BY tb, srcIP ORDER BY packets DESC LIMIT 3"""
OF_TOP = "DEFINE { query_name of_top; } SELECT tb, srcIP, packets FROM top WHERE packets > 9"


def test_the_run_chooses_from_the_first_rows_of_hosts() -> None:
    found = compiled(FLOWS, TOP, OF_TOP, only=("top", "of_top"))
    plan = planned(found, "srcIP")
    assert plan.answered == plan.chosen == ("top",)
    assert plan.kept == {"of_top": "the first rows of top are chosen by the run"}
    top, of_top = plan.run.nodes
    assert isinstance(top, TopNode)
    assert (top.query, top.input) == ("top", StreamInput("top.answers"))
    assert (top.order.keys, top.order.limit) == ((SortKey("packets", is_descending=True),), 3)
    assert top.order.epoch == "tb"
    assert node_inputs(of_top) == (QueryInput("top"),)
    assert plan.run.results == (("top", QueryInput("top")), ("of_top", QueryInput("of_top")))
    assert dict(plan.run.orders) == {"top": top.order}
    host = host_program(found.program, plan.answered)
    assert [node.query for node in host.nodes] == ["flows", "top"]
    assert first_rows(host.node("top")) == top.order
    assert host.served == plan.run.lftas
    assert run_program(found.program, plan.answered) == plan.run


@pytest.mark.parametrize(
    ("query", "parts", "hidden"),
    [
        (
            "SELECT tb, srcIP FROM IP GROUP BY time/10 AS tb, srcIP ORDER BY sum(len) DESC LIMIT 2",
            ("query",),
            ["$by1"],
        ),
        (
            "SELECT srcIP, count(*) AS n FROM IP GROUP BY time/10 AS tb, srcIP ORDER BY n LIMIT 2",
            ("query",),
            ["$order"],
        ),
        (
            "SELECT srcIP, count(*) AS n FROM IP [RANGE 30 SLIDE 10] GROUP BY srcIP LIMIT 2",
            ("query",),
            ["$order"],
        ),
        (
            "SELECT tb, srcIP, running_count(*) AS n FROM IP GROUP BY time/10 AS tb, srcIP"
            " CLOSING_WHEN count(*) = 0 ORDER BY n LIMIT 2",
            ("query.rows", "query"),
            [],
        ),
    ],
)
def test_streams_of_first_rows_have_what_orders_them(
    query: str, parts: tuple[str, ...], hidden: list[str]
) -> None:
    found = compiled(query)
    plan = planned(found, "srcIP")
    assert (plan.answered, plan.chosen, plan.kept) == (("query",), ("query",), {})
    (stream,) = plan.run.lftas
    (top,) = plan.run.nodes
    assert isinstance(top, TopNode)
    assert [name for name in stream.schema.names if is_hidden(name)] == hidden
    assert {top.order.epoch, *(key.name for key in top.order.keys)} <= {*stream.schema.names}
    host = host_program(found.program, plan.answered)
    assert tuple(node.query for node in host.nodes) == parts


def test_first_rows_of_what_needs_several_hosts_stay_with_the_run() -> None:
    found = compiled(FLOWS, TOP, only=("top",))
    plan = planned(found, "srcIP, destIP")
    assert (plan.answered, plan.chosen) == (("flows",), ())
    top = found.program.node("top")
    assert isinstance(top, AggregationNode)
    assert plan.run.node("top") == replace(top, input=StreamInput("flows.answers"))


def test_an_order_without_a_limit_is_left_to_delivery() -> None:
    found = compiled(f"{FLOWS} ORDER BY packets DESC")
    plan = planned(found, "srcIP")
    assert (plan.answered, plan.chosen, plan.run.nodes) == (("flows",), (), ())
    assert dict(plan.run.orders) == dict(found.program.orders)


def test_the_parts_of_a_query_are_where_the_query_is() -> None:
    joined = """DEFINE { query_name joined; } SELECT tb, srcIP, sum(packets) AS packets
    FROM flows a, flows b WHERE a.srcIP = b.srcIP and a.tb = b.tb
    GROUP BY a.tb AS tb, a.srcIP AS srcIP"""
    found = compiled(FLOWS, joined.replace("sum(packets)", "sum(b.packets)"), only=("joined",))
    plan = planned(found, "srcIP")
    assert (plan.answered, plan.kept) == (("joined",), {})
    host = host_program(found.program, plan.answered)
    assert [node.query for node in host.nodes] == ["flows", "joined.joined", "joined"]
    plan = planned(found, "destIP")
    assert plan.answered == ("flows",)
    assert tuple(plan.kept) == ("joined.joined", "joined")


def test_the_digest_tells_different_operators_apart() -> None:
    def digest(query: str) -> str | None:
        (stream,) = host_program(compiled(query).program, ("flows",)).answers
        return stream.answers

    assert digest(FLOWS) == digest(FLOWS)
    assert digest(FLOWS) != digest(f"{FLOWS} HAVING count(*) > 1")
    assert digest(FLOWS) != digest(FLOWS.replace("time/10", "time/20"))


def test_a_file_holds_what_is_served(tmp_path: Path) -> None:
    program = of_host(host_program(compiled(FLOWS).program, ("flows",)), "b")
    write_program(tmp_path / "program", program)
    assert read_program(tmp_path / "program") == program


def test_an_unknown_operator_is_an_error() -> None:
    with pytest.raises(KeyError):
        host_program(compiled(FLOWS).program, ("flow",))
