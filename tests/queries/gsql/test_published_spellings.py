"""Every published query parses as it was published."""

from __future__ import annotations

import pytest

from gscope.queries.gsql import nodes
from gscope.queries.gsql.parser import parse
from gscope.queries.gsql.printer import print_file

_FLOW_KEYS = "protocol, srcIP, destIP, srcPort, destPort"
_HOSTHEADER = r"str_extract_regex(TCP_data, '[Hh][Oo][Ss][Tt]:[0-9A-Z\\.\\: ]*') as hostheader"
_HTTP_GET = "WHERE ipversion=4 and offset=0 and protocol=6 and str_match_start[TCP_data, 'GET']"
_SYN_ACK_JOIN = (
    "FROM tcp_syn S JOIN tcp_syn_ack A"
    " WHERE S.srcIP = A.destIP and S.destIP = A.srcIP and S.srcPort = A.destPort"
    " and S.destPort = A.srcPort and S.tb = A.tb and S.timestamp <= A.timestamp and"
    " (S.sequence_number + 1) = A.ack_number"
)

PUBLISHED = {
    "per_source": "SELECT tb, srcIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP",
    "per_pair": "SELECT tb, srcIP, destIP, count(*) FROM TCP GROUP BY time/60 as tb, srcIP, destIP",
    "dup_seq": "SELECT tb, srcIP, dstIP, sum_of_dups(seq) FROM TCP"
    " GROUP BY time/60 as tb, srcIP, dstIP"
    " CLOSING_WHEN Or_aggr(FYN) = TRUE or count(*) = 0",
    "merged_tcp": "MERGE R.timestamp : S.timestamp FROM interface1.TCP R, interface2.TCP S",
    "pair_len": "SELECT time, PKT1.srcIP, PKT1.destIP, PKT1.len + PKT2.len FROM PKT1 JOIN PKT2"
    " WHERE PKT1.time = PKT2.time and PKT1.srcIP = PKT2.srcIP and PKT1.destIP = PKT2.destIP",
    "hostnames": f"SELECT tb*60, destIP, dest_port, {_HOSTHEADER} FROM TCP {_HTTP_GET}",
    "hostname_counts": f"SELECT tb, hostheader, count(*) FROM TCP {_HTTP_GET}"
    f" GROUP BY time/60 as tb, {_HOSTHEADER}",
    "flow": f"SELECT tb, {_FLOW_KEYS}, count(*) FROM DataProtocol"
    f" GROUP BY time/10 as tb, {_FLOW_KEYS}",
    "flow1": f"SELECT tb, {_FLOW_KEYS}, count(*) as cnt FROM [main0_and_control].DataProtocol"
    f" GROUP BY time/10 as tb, {_FLOW_KEYS}",
    "flow2": f"SELECT tb, {_FLOW_KEYS}, count(*) as cnt FROM main1.DataProtocol"
    f" GROUP BY time/10 as tb, {_FLOW_KEYS}",
    "full_flow": "SELECT flow1.tb, flow1.protocol, flow1.srcIP, flow1.destIP, flow1.srcPort,"
    " flow1.destPort, flow1.cnt,"
    " flow2.cnt OUTER_JOIN FROM flow1, flow2"
    " WHERE flow1.srcIP=flow2.srcIP and flow1.destIP=flow2.destIP and"
    " flow1.srcPort=flow2.srcPort and flow1.destPort=flow2.destPort"
    " and flow1.protocol=flow2.protocol and flow1.tb = flow2.tb",
    "dup_all_count": "SELECT tb, count_dups(sequence_number) as dup_cnt,"
    " count(*) as full_cnt FROM TCP"
    " GROUP BY time/60 as tb, srcIP, destIP, srcPort, destPort",
    "dup_ratio": "SELECT tb, sum(dup_cnt) / sum(full_cnt) FROM dup_all_count GROUP BY tb",
    "flow_dup_count": "SELECT tb, srcIP, destIP, srcPort, destPort, count_dups(seq_nbr) as dup_cnt"
    " FROM TCP"
    " GROUP BY time/60 as tb, srcIP, destIP, srcPort, destPort",
    "max_dups": "SELECT tb, srcIP, destIP, MAX(dup_cnt) FROM flow_dup_count"
    " GROUP BY tb, srcIP, destIP",
    "tcp_syn": "DEFINE { query_name 'tcp_syn'; }"
    " SELECT time/60 as tb, timestamp, srcIP, destIP, srcPort, destPort,"
    " sequence_number, ack_number FROM TCP WHERE SYN = 1 and ACK = 0",
    "syn_ack_delay": "SELECT S.tb, S.srcIP, S.destIP, S.srcPort, S.destPort,"
    " (A.timestamp - S.timestamp) as rtt"
    f" {_SYN_ACK_JOIN}",
    "matched_syn_count": f"SELECT tb, count(*) {_SYN_ACK_JOIN} GROUP BY S.tb as tb",
    "all_syn_count": "SELECT tb, count(*) as cnt FROM tcp_syn S GROUP BY time/60 as tb",
    "matched_syn_ratio": "SELECT A.tb, M.cnt / A.cnt as ratio FROM all_syn_count A"
    " OUTER_JOIN matched_syn_count M"
    " WHERE A.tb = M.tb",
    "suspicious": "DEFINE { PATTERN '41'; }"
    " SELECT tb, srcIP, destIP, srcPort, destPort, OR_AGGR(flags) as orflag, COUNT(*),"
    " SUM(len) FROM TCP GROUP BY time as tb, srcIP, destIP, srcPort, destPort"
    " HAVING OR_AGGR(flags) = #PATTERN#",
    "jitter": "SELECT S1.tb, S1.srcIP, S1.destIP, S1.srcPort, S1.destPort,"
    " (S2.timestamp-S1.timestamp) as delay"
    " FROM TCP as S1, TCP as S2"
    " WHERE S1.tb=S2.tb and S1.srcIP=S2.srcIP and S1.destIP=S2.destIP and S1.srcPort=S2.srcPort"
    " and S1.destPort=S2.destPort and (S1.seq_number+1)=S2.seq_number"
    " and (S2.timestamp - S1.timestamp) > 1000",
    "flows": "SELECT tb,srcIP,destIP,COUNT(*) as cnt FROM TCP GROUP BY time/60 as tb,srcIP,destIP",
    "heavy_flows": "SELECT tb,srcIP,max(cnt) as max_cnt FROM flows GROUP BY tb, srcIP",
    "flow_pairs": "SELECT S1.tb, S1.srcIP, S1.max_cnt, S2.max_cnt"
    " FROM heavy_flows S1, heavy_flows S2"
    " WHERE S1.srcIP = S2.srcIP and S1.tb = S2.tb+1",
    "tcp_flows": "SELECT tb, srcIP, destIP, srcPort, destPort, COUNT(*), SUM(len) FROM TCP"
    " GROUP BY time/60 as tb, srcIP, destIP, srcPort, destPort",
    "flow_cnt": "SELECT tb, srcIP, destIP, count(*) FROM tcp_flows GROUP BY tb, srcIP, destIP",
    "subnet_stats": "SELECT tb, subnet, destIP, count(*), sum(len) FROM TCP"
    " GROUP BY time/60 as tb, srcIP & 0xFFFFFFF0 as subnet, destIP",
    "tcp_count": "SELECT time, srcIP, destIP, srcPort, COUNT(*) FROM TCP"
    " GROUP BY time, srcIP, destIP, srcPort",
    "snort_sources": "SELECT SrcIP, count(*) FROM Snort S [RANGE 'r' SLIDE 's'] GROUP BY S.SrcIP",
    "snort_all": "SELECT count(*) FROM Snort S [RANGE 'r' SLIDE 's']",
    "snort_paned": "WITH sub AS (SELECT count(*) as cnt FROM Snort [SLICES '12 sec','3 sec'])"
    " (SELECT sum(cnt) FROM sub [RANGE '18 sec' SLIDE '15 sec'])",
    "union_filtered": "Query left_part:"
    " SELECT time, srcIP FROM main0.TCP WHERE srcPort % 20 <> 0;\n"
    "Query right_part: SELECT time, srcIP FROM main1.TCP WHERE destPort % 20 <> 0;\n"
    "MERGE left_part.time : right_part.time FROM left_part, right_part",
    "traffic_share": "Query both: SELECT B.time as time FROM main0.IP B, main1.IP C"
    " WHERE B.srcIP = C.srcIP"
    " and B.destIP = C.destIP and B.id = C.id and B.time = C.time;\n"
    "Query shared: SELECT tb, count(*) as cnt FROM both GROUP BY time/60 as tb;\n"
    "Query every: SELECT tb, count(*) as cnt FROM main0.IP GROUP BY time/60 as tb;\n"
    "SELECT e.tb, s.cnt / e.cnt as share FROM every e LEFT OUTER JOIN shared s ON e.tb = s.tb",
}


@pytest.mark.parametrize("text", PUBLISHED.values(), ids=PUBLISHED.keys())
def test_a_published_query_parses_and_survives_printing(text: str) -> None:
    file = parse(text)
    assert file.queries
    assert parse(print_file(file)) == file


def test_full_flow_is_an_outer_join_of_two_streams() -> None:
    (query,) = parse(PUBLISHED["full_flow"]).queries
    assert isinstance(query.body, nodes.Select)
    assert [join.kind for join in query.body.joins] == [nodes.JoinKind.OUTER]


def test_hostnames_keeps_the_backslashes_of_its_regex() -> None:
    (query,) = parse(PUBLISHED["hostnames"]).queries
    assert isinstance(query.body, nodes.Select)
    item = query.body.outputs[3]
    assert isinstance(item, nodes.OutputItem)
    assert isinstance(item.expression, nodes.FunctionCall)
    pattern = item.expression.args[1]
    assert isinstance(pattern, nodes.LiteralSyntax)
    assert pattern.value == r"[Hh][Oo][Ss][Tt]:[0-9A-Z\\.\\: ]*"


def test_snort_windows_take_their_lengths_from_parameters() -> None:
    (query,) = parse(PUBLISHED["snort_all"]).queries
    assert isinstance(query.body, nodes.Select)
    window = query.body.inputs[0].window
    assert isinstance(window, nodes.RangeWindow)
    assert isinstance(window.range, nodes.ParameterReference)
    assert isinstance(window.slide, nodes.ParameterReference)
    assert (window.range.name, window.slide.name) == ("r", "s")
