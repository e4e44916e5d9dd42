"""Query texts become logical plans."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError, ResolveError
from gscope.queries.analysis.analyze import analyze
from gscope.queries.expressions.expressions import Column, PacketField
from gscope.queries.expressions.types import INCREASING, VARYING, GsqlType
from gscope.queries.gsql.parser import parse
from gscope.queries.plan.logical import (
    Filter,
    GroupBy,
    LogicalPlan,
    Merge,
    Node,
    Project,
    QueryScan,
    Scan,
)

INTERFACES = ("main0", "main1")


def plan(*texts: str, only: tuple[str, ...] = ()) -> LogicalPlan:
    files = [parse(text, f"q{number}.gsql") for number, text in enumerate(texts)]
    return analyze(files, INTERFACES, {"both": INTERFACES}, {}, only)


def root(text: str) -> Node:
    return plan(text).queries[-1].root


def columns(text: str) -> tuple[str, ...]:
    return root(text).schema.names


def test_a_selection_is_project_over_filter_over_scan() -> None:
    match root("SELECT time, len FROM TCP WHERE len > 5"):
        case Project(Filter(Scan("TCP", interfaces, _, _), _, _), made, schema):
            assert interfaces == INTERFACES
            assert made[1].expression == PacketField("len", GsqlType.INT, False)
            assert schema["time"].ordering == INCREASING
            assert schema["len"].ordering == VARYING
        case other:
            pytest.fail(repr(other))


def test_groups_share_their_aggregates() -> None:
    match root(
        "SELECT tb, srcIP, count(*), sum(len)/count(*) FROM TCP "
        "GROUP BY time/60 AS tb, srcIP HAVING Count(*) > 1"
    ):
        case Project(Filter(GroupBy(Scan(), keys, epoch, aggregates, schema), _, _), made, _):
            assert [k.name for k in keys] == ["tb", "srcIP"]
            assert epoch == "tb"
            assert [(a.name, a.function) for a in aggregates] == [
                ("cnt", "count"),
                ("sum_len", "sum"),
            ]
            assert schema.names == ("tb", "srcIP", "cnt", "sum_len")
            assert made[2].expression == Column("cnt", GsqlType.INT, False)
            assert made[3].expression.type is GsqlType.FLOAT
        case other:
            pytest.fail(repr(other))


@pytest.mark.parametrize(
    ("select", "names"),
    [
        ("S.time, time/60, srcIP", ("time", "time_60", "srcIP")),
        ("len, len, len AS len_2", ("len", "len_3", "len_2")),
        ("inner.srcIP, dstIP", ("inner_srcIP", "dstIP")),
        ("5, len > 5", ("column_5", "len_5")),
    ],
)
def test_unnamed_columns_get_names(select: str, names: tuple[str, ...]) -> None:
    assert columns(f"SELECT {select} FROM TCP S") == names


def test_unnamed_aggregates_get_names() -> None:
    text = (
        "SELECT tb*60, Count(*), OR_AGGR(flags), count(DISTINCT srcIP) FROM TCP GROUP BY time AS tb"
    )
    assert columns(text) == ("tb_60", "cnt", "or_aggr_flags", "count_distinct_srcIP")


def test_a_key_is_recognised_however_it_is_written() -> None:
    text = (
        "SELECT time/60, S.dstIP, max(len) FROM TCP S GROUP BY S.time/60 AS tb, destIP "
        "HAVING S.destIP > 5"
    )
    assert columns(text) == ("time_60", "dstIP", "max_len")


def test_group_by_takes_names_that_select_gives() -> None:
    assert columns("SELECT time/60 AS tb, count(*) FROM TCP GROUP BY tb") == ("tb", "cnt")


def test_only_the_epoch_of_groups_and_what_moves_with_it_stays_temporal() -> None:
    text = (
        "SELECT a, b, c, count(*) FROM TCP GROUP BY time/60 AS a, time/7 AS b, increasing(id) AS c"
    )
    assert [c.name for c in root(text).schema.temporal] == ["a", "b"]
    text = "SELECT a, b, srcIP, count(*) FROM IP GROUP BY time/60 AS a, time/7 AS b, srcIP"
    assert [c.name for c in root(text).schema.temporal] == ["a", "b"]


@pytest.mark.parametrize(
    ("terms", "epoch"),
    [
        ("time/60 AS a, time/10 AS b", "b"),
        ("time AS a, timestamp/INTERVAL '1 ms' AS b", "b"),
        ("banded(id, 5) AS a, time/60 AS b", "b"),
        ("-time/60 AS a, time/3600 AS b", "b"),
        ("srcIP AS a, -time/60 AS b", "b"),
    ],
)
def test_the_finest_term_closes_groups(terms: str, epoch: str) -> None:
    match root(f"SELECT a, b, count(*) FROM IP GROUP BY {terms}"):
        case Project(GroupBy(epoch=chosen), _, _):
            assert chosen == epoch
        case other:
            pytest.fail(repr(other))


def test_the_interface_is_constant_on_one_only() -> None:
    for source, direction in (
        ("main0.IP", "constant"),
        ("[both].IP", "varying"),
        ("IP", "varying"),
    ):
        schema = root(f"SELECT time, interface FROM {source}").schema
        assert schema["interface"].ordering.direction.value == direction


def test_distinct_groups_by_all_columns() -> None:
    node = root("SELECT DISTINCT time/60 AS tb, srcIP FROM TCP")
    assert isinstance(node, GroupBy)
    assert node.epoch == "tb"
    assert node.aggregates == ()


def test_queries_come_before_those_who_read_them() -> None:
    made = plan(
        "Query c: SELECT tb, max(cnt) FROM b GROUP BY tb",
        "Query b: SELECT tb, srcIP, count(*) AS cnt FROM a GROUP BY time/60 AS tb, srcIP;"
        "DEFINE { query_name 'a'; visibility 'external'; } SELECT time, srcIP FROM TCP",
    )
    assert [q.name for q in made.queries] == ["a", "b", "c"]
    assert [q.is_external for q in made.queries] == [True, False, False]


def test_unnamed_queries_are_called_like_their_file() -> None:
    assert [q.name for q in plan("SELECT time FROM IP").queries] == ["q0"]
    several = plan("SELECT time FROM IP; SELECT len FROM IP")
    assert [q.name for q in several.queries] == ["q0_1", "q0_2"]


def test_only_what_is_wanted_is_planned() -> None:
    text = "Query a: SELECT time FROM IP; Query b: SELECT time FROM a; Query c: SELECT time FROM a"
    assert [q.name for q in plan(text, only=("b",)).queries] == ["a", "b"]
    with pytest.raises(ResolveError, match="unknown query d"):
        plan(text, only=("d",))


def test_subqueries_are_queries_of_their_own() -> None:
    made = plan(
        "WITH s AS (SELECT time, len FROM IP), t AS (SELECT time/60 AS tb, len FROM s) "
        "SELECT tb, sum(len) FROM t GROUP BY tb"
    )
    assert [q.name for q in made.queries] == ["q0.s", "q0.t", "q0"]
    made = plan("SELECT time FROM (SELECT time FROM IP WHERE len > 5) big")
    assert [q.name for q in made.queries] == ["q0.big", "q0"]


def test_a_parameter_that_no_query_declares_is_refused() -> None:
    with pytest.raises(ResolveError, match="no query declares a parameter x"):
        analyze([parse("SELECT time FROM IP")], INTERFACES, {}, {"x": "1"})


def test_a_merge_reads_packets_as_tuples_of_all_fields() -> None:
    node = root("MERGE R.timestamp : S.timestamp SLACK 5 FROM main0.TCP R, main1.TCP S")
    assert isinstance(node, Merge)
    assert node.on == ("timestamp", "timestamp")
    assert node.slack == 5
    assert [c.name for c in node.schema.temporal] == ["timestamp"]
    assert all(isinstance(one, Project) and isinstance(one.input, Scan) for one in node.inputs)


def test_a_merge_of_queries_takes_columns_in_any_order() -> None:
    made = plan(
        "Query a: SELECT time AS t, len FROM TCP; Query b: SELECT time AS u, len FROM UDP;"
        "Query m: MERGE b.u : a.t FROM a, b"
    )
    node = made.queries[-1].root
    assert isinstance(node, Merge)
    assert node.on == ("t", "u")
    assert node.schema.names == ("t", "len")
    assert all(isinstance(one, QueryScan) for one in node.inputs)


def test_a_protocol_of_the_file_is_its_expressions() -> None:
    node = root(
        "PROTOCOL Web (TCP) WHERE destPort = 80 { minute = time/60; host = prefix(srcIP, 24); }"
        "SELECT minute, host, count(*) FROM Web GROUP BY minute, host"
    )
    match node:
        case Project(GroupBy(Scan("Web", _, membership, schema), _, epoch, _, _), _, _):
            assert epoch == "minute"
            assert membership is not None
            assert "host" in schema
        case other:
            pytest.fail(repr(other))


def test_errors_name_their_file_and_line() -> None:
    with pytest.raises(GsqlError) as caught:
        plan("SELECT time FROM IP", "SELECT time,\n  lne FROM IP")
    assert str(caught.value).startswith("q1.gsql:2:3: IP has no column lne\n")


PUBLISHED = """
Query per_source: SELECT tb, srcIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP;
Query merged_tcp: MERGE R.timestamp : S.timestamp FROM main0.TCP R, main1.TCP S;
Query hostnames: SELECT tb*60, destIP, dest_port,
  str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\\\.\\\\: ]*') as hostheader
  FROM TCP WHERE ipversion=4 and offset=0 and protocol=6 and str_match_start[TCP_data, 'GET'];
Query flow1: SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) as cnt
  FROM [both].DataProtocol GROUP BY time/10 as tb, protocol, srcIP, destIP, srcPort, destPort;
Query dup_all_count: SELECT tb, count_dups(sequence_number) as dup_cnt, count(*) as full_cnt
  FROM TCP GROUP BY time/60 as tb, srcIP, destIP, srcPort, destPort;
Query dup_ratio: SELECT tb, sum(dup_cnt) / sum(full_cnt) FROM dup_all_count GROUP BY tb;
Query flow_dup_count: SELECT tb, srcIP, destIP, srcPort, destPort, count_dups(seq_nbr) as dup_cnt
  FROM TCP GROUP BY time/60 as tb, srcIP, destIP, srcPort, destPort;
Query max_dups: SELECT tb, srcIP, destIP, MAX(dup_cnt) FROM flow_dup_count GROUP BY tb, srcIP, destIP;
Query tcp_syn: SELECT time/60 as tb, timestamp, srcIP, destIP, sequence_number, ack_number
  FROM TCP WHERE SYN = 1 and ACK = 0;
Query all_syn_count: SELECT tb, count(*) as cnt FROM tcp_syn S GROUP BY tb;
DEFINE { query_name 'suspicious'; PATTERN '41'; }
  SELECT tb, srcIP, destIP, srcPort, destPort, OR_AGGR(flags) as orflag, COUNT(*), SUM(len)
  FROM TCP GROUP BY time as tb, srcIP, destIP, srcPort, destPort HAVING OR_AGGR(flags) = #PATTERN#;
Query flows: SELECT tb,srcIP,destIP,COUNT(*) as cnt FROM TCP GROUP BY time/60 as tb,srcIP,destIP;
Query heavy_flows: SELECT tb,srcIP,max(cnt) as max_cnt FROM flows GROUP BY tb, srcIP;
Query subnet_stats: SELECT tb, subnet, destIP, count(*), sum(len) FROM TCP
  GROUP BY time/60 as tb, srcIP & 0xFFFFFFF0 as subnet, destIP;
Query tcp_count: SELECT time, srcIP, destIP, srcPort, COUNT(*) FROM TCP
  GROUP BY time, srcIP, destIP, srcPort
"""  # noqa: E501


def test_published_queries_are_understood() -> None:
    published = PUBLISHED.replace("SELECT tb*60", "SELECT time/60*60 AS tb")
    made = plan(published)
    assert len(made.queries) == 15
    ratio = next(q for q in made.queries if q.name == "dup_ratio")
    assert ratio.schema.columns[1].type is GsqlType.FLOAT


@pytest.mark.parametrize(
    "text",
    [
        "SELECT TB, max(Tb) FROM TCP GROUP BY time/60 AS tb HAVING tB > 0",
        "SELECT time/60 AS tb, count(*) FROM TCP GROUP BY TB",
    ],
)
def test_group_by_terms_are_found_in_another_case(text: str) -> None:
    root(text)


def test_a_column_is_not_taken_for_a_term_in_another_case() -> None:
    with pytest.raises(GsqlError, match="LEN is neither grouped by nor inside an aggregate"):
        root("SELECT LEN FROM TCP GROUP BY time/60 AS tb, ttl AS Len")
