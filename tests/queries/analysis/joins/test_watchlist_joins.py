"""Watchlists: tables that streams are joined with, which need no time."""

from __future__ import annotations

from pathlib import Path

from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import (
    AggregationNode,
    Program,
    QueryInput,
    StreamInput,
    WatchlistJoinNode,
)
from gscope.queries.plan.show_expressions import show_equalities, show_of_sides

BAD = (
    "DEFINE { query_name 'bad'; filename 'lists/bad.csv'; }"
    " WATCHLIST FIELDS { IP addr; uint score; string why };"
)


def program(text: str, source: str = "q.gsql") -> Program:
    return compile_queries(
        [QueryText(f"{BAD} Query q: {text}", source)], CompileContext(("m",))
    ).program


def node(made: Program) -> WatchlistJoinNode:
    (found,) = (each for each in made.nodes if isinstance(each, WatchlistJoinNode))
    return found


def test_a_stream_is_joined_without_any_time() -> None:
    made = program(
        "SELECT time, why, len - score as over FROM TCP T, bad B"
        " WHERE T.srcIP = B.addr and B.score > 3 and T.SYN = 1 and len > score"
    )
    join = node(made)
    assert join.input == StreamInput("q.1")
    assert made.lfta("q.1").schema.names == ("time", "len", "srcIP")
    assert show_equalities(join.keys) == "left.srcIP = right.addr"
    assert join.residual is not None
    assert show_of_sides(join.residual) == "(left.len > right.score) AND (right.score > 3)"
    assert [show_of_sides(c.expression) for c in join.columns] == [
        "left.time",
        "right.why",
        "left.len - right.score",
    ]


def test_rows_pass_as_they_come_so_all_orders_survive() -> None:
    schema = program("SELECT time, timestamp, why FROM TCP, bad WHERE srcIP = addr").schema("q")
    assert [c.ordering.is_temporal for c in schema.columns] == [True, True, False]


def test_the_file_is_looked_up_beside_the_query() -> None:
    join = node(program("SELECT time, why FROM TCP, bad WHERE srcIP = addr", "some/where/q.gsql"))
    assert join.watchlist.name == "bad"
    assert Path(join.watchlist.path) == Path("some/where/lists/bad.csv").absolute()
    assert [c.type for c in join.watchlist.schema.columns] == [
        GsqlType.IP,
        GsqlType.INT,
        GsqlType.STRING,
    ]


def test_groups_stand_above_the_join() -> None:
    made = program(
        "SELECT tb, why, count(*) WATCHLIST_JOIN FROM TCP T, bad B WHERE T.srcIP = B.addr"
        " GROUP BY time/60 as tb, why HAVING why = 'x' and count(*) > 2"
    )
    join, group = made.nodes
    assert isinstance(join, WatchlistJoinNode)
    assert join.query == "q.joined"
    assert join.residual is not None
    assert show_of_sides(join.residual) == "right.why = 'x'"
    assert isinstance(group, AggregationNode)
    assert group.input == QueryInput("q.joined")


def test_joins_of_streams_and_queries_are_joined_as_well() -> None:
    made = program(
        "SELECT a.time, why FROM TCP a, UDP b, bad"
        " WHERE a.time = b.time and a.srcIP = b.destIP and addr = a.srcIP"
    )
    assert node(made).input == QueryInput("q.1")
    assert made.schema("q").columns[0].ordering.is_temporal


def test_a_watchlist_is_no_query_and_gives_no_result() -> None:
    made = program("SELECT time FROM TCP")
    assert made.results == (("q", StreamInput("q")),)
    assert [name for name, _ in made.schemas] == ["q"]
