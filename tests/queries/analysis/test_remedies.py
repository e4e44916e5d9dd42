"""What a remedy says to write is accepted."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.analysis.typing.foreign_functions import FOREIGN_AGGREGATES, FOREIGN_FUNCTIONS
from gscope.queries.compile import CompileContext, QueryText, compile_queries

FALLING = (
    "DEFINE { query_name 'x'; } SELECT -time AS down, srcPort FROM main0.TCP; "
    "DEFINE { query_name 'y'; } SELECT -time AS down, srcPort FROM main1.TCP; "
)
RISING = FALLING + (
    "DEFINE { query_name 'v'; } SELECT -down AS rising, srcPort FROM x; "
    "DEFINE { query_name 'w'; } SELECT -down AS rising, srcPort FROM y; "
)

SLICES = "WITH s AS (SELECT count(*) AS n FROM TCP [SLICES '12 sec', '3 sec']) "

CASES = [
    (
        SLICES + "SELECT sum(n) FROM s [RANGE '17 sec' SLIDE '15 sec']",
        "with SLIDE '15 sec', RANGE '15 sec' or '18 sec'",
        SLICES + "SELECT sum(n) FROM s [RANGE '18 sec' SLIDE '15 sec']",
    ),
    (
        SLICES + "SELECT sum(n) FROM s [RANGE '1 sec' SLIDE '15 sec']",
        "with SLIDE '15 sec', RANGE '3 sec'",
        SLICES + "SELECT sum(n) FROM s [RANGE '3 sec' SLIDE '15 sec']",
    ),
    (
        SLICES + "SELECT sum(n) FROM s [RANGE '20 sec' SLIDE '30 sec']",
        "with SLIDE '30 sec', RANGE '18 sec' or '30 sec'",
        SLICES + "SELECT sum(n) FROM s [RANGE '18 sec' SLIDE '30 sec']",
    ),
    (
        SLICES + "SELECT sum(n) FROM s [RANGE '20 sec' SLIDE '10 sec']",
        "multiples of '15 sec'",
        SLICES + "SELECT sum(n) FROM s [RANGE '45 sec' SLIDE '30 sec']",
    ),
    (
        "SELECT sum(len) FROM (SELECT time, timestamp, len FROM TCP) t [RANGE 60]",
        "[… ON time]",
        "SELECT sum(len) FROM (SELECT time, timestamp, len FROM TCP) t [RANGE 60 ON time]",
    ),
    (
        "SELECT count(*) FROM IPV4 [RANGE 100 ON id]",
        "SELECT increasing(id) AS n, …, and write the window over its result",
        "SELECT count(*) FROM (SELECT increasing(id) AS n FROM IPV4) t [RANGE 100]",
    ),
    (
        "SELECT srcIP, running_sum(len) FROM TCP [RANGE 60] GROUP BY srcIP",
        "GROUP BY minute(window_end), … CLOSING_WHEN count(*) = 0",
        "SELECT m, srcIP, running_sum(n) FROM (SELECT window_end, srcIP, sum(len) AS n FROM TCP "
        "[RANGE 60] GROUP BY srcIP) t GROUP BY minute(window_end) AS m, srcIP "
        "CLOSING_WHEN count(*) = 0",
    ),
    (
        "SELECT count(*) FROM TCP a [RANGE 60] JOIN UDP b ON a.time = b.time",
        "selects window_end, and write a join over its result, on window_end",
        "SELECT a.n, b.n FROM (SELECT window_end, count(*) AS n FROM TCP [RANGE 60]) a JOIN "
        "(SELECT window_end, count(*) AS n FROM UDP [RANGE 60]) b ON a.window_end = b.window_end",
    ),
    (
        "SELECT count(*) FROM TCP [RANGE 18 sec SLIDE 15 sec]",
        "put a length with its unit in quotes: '18 sec'",
        "SELECT count(*) FROM TCP [RANGE '18 sec' SLIDE '15 sec']",
    ),
    (
        "SELECT count(*) FROM TCP WHERE len > 60 [RANGE '1 min' SLIDE '10 sec']",
        "FROM TCP [RANGE '1 min' SLIDE '10 sec'] WHERE …",
        "SELECT count(*) FROM TCP [RANGE '1 min' SLIDE '10 sec'] WHERE len > 60",
    ),
    (
        "SELECT a.time FROM main0.TCP a CROSS JOIN main1.TCP b",
        "FROM a JOIN b ON a.time = b.time",
        "SELECT a.time FROM main0.TCP a JOIN main1.TCP b ON a.time = b.time",
    ),
    (
        "SELECT TCP.time FROM main0.TCP CROSS JOIN main1.UDP",
        "FROM a JOIN b ON a.time = b.time",
        "SELECT TCP.time FROM main0.TCP JOIN main1.UDP ON TCP.time = UDP.time",
    ),
    (
        "SELECT TCP.time FROM main0.TCP NATURAL JOIN main1.UDP",
        "ON a.time = b.time AND a.srcIP = b.srcIP",
        "SELECT a.time FROM main0.TCP a JOIN main1.UDP b ON a.time = b.time AND a.srcIP = b.srcIP",
    ),
    (
        "SELECT a.time FROM main0.TCP a JOIN main1.TCP b USING (time)",
        "ON a.time = b.time AND a.srcIP = b.srcIP",
        "SELECT a.time FROM main0.TCP a JOIN main1.TCP b ON a.time = b.time AND a.srcIP = b.srcIP",
    ),
    (
        "SELECT time, sum(len) OVER (PARTITION BY srcIP) FROM TCP",
        "running_sum(len) or moving_avg(len, 5) with GROUP BY time/60 AS tb, srcIP "
        "CLOSING_WHEN count(*) = 0",
        "SELECT tb, srcIP, running_sum(len), moving_avg(len, 5) FROM TCP "
        "GROUP BY time/60 AS tb, srcIP CLOSING_WHEN count(*) = 0",
    ),
    (
        FALLING + "MERGE a.down : b.down FROM x a, y b",
        "select -down AS rising from each input by a query, and merge on rising there",
        RISING + "MERGE a.rising : b.rising FROM v a, w b",
    ),
    (
        FALLING + "SELECT R.down FILTER_JOIN(down, 5) FROM x R, y S WHERE R.srcPort = S.srcPort",
        "select -down AS rising from each input by a query, and look back along rising there",
        RISING + "SELECT R.rising FILTER_JOIN(rising, 5) FROM v R, w S WHERE R.srcPort = S.srcPort",
    ),
    (
        "SELECT time FROM TCP WHERE SYN = 1 || ACK = 1",
        "between conditions write OR",
        "SELECT time FROM TCP WHERE SYN = 1 OR ACK = 1",
    ),
    (
        "SELECT time, srcPort || destPort AS p FROM TCP",
        "STRING(x) || STRING(y)",
        "SELECT time, STRING(srcPort) || STRING(destPort) AS p FROM TCP",
    ),
    (
        "SELECT time, CAST(srcIP AS VARCHAR(8)) FROM TCP",
        "substr(STRING(x), 1, n)",
        "SELECT time, substr(STRING(srcIP), 1, 8) FROM TCP",
    ),
    (
        "SELECT time, CAST(len AS DUBLE) FROM TCP",
        "did you mean DOUBLE",
        "SELECT time, CAST(len AS DOUBLE) FROM TCP",
    ),
    (
        "SELECT time, substr(TCP_data, -4) FROM TCP",
        "str_suffix(s, 4)",
        "SELECT time, str_suffix(TCP_data, 4) FROM TCP",
    ),
    (
        "SELECT time FROM TCP WHERE timestamp > timestamp + INTERVAL '1 ms' * len",
        "time_ns + len * 1000000",
        "SELECT time FROM TCP WHERE time_ns > time_ns + len * 1000000",
    ),
    (
        "SELECT t, count(*) FROM TCP GROUP BY timestamp / INTERVAL '1 min 2 min' AS t",
        "INTERVAL '1 min 30 sec'",
        "SELECT t, count(*) FROM TCP GROUP BY timestamp / INTERVAL '1 min 30 sec' AS t",
    ),
    (
        "SELECT time FROM TCP WHERE srcIP IN ('10.0.0.0/33')",
        "such as '10.0.0.0/8' or '2001:db8::/32'",
        "SELECT time FROM TCP WHERE srcIP IN ('10.0.0.0/8', '2001:db8::/32', 167772161)",
    ),
    (
        "SELECT time FROM TCP WHERE srcIP < '10.0.0.0/8'",
        "in_net[ip, '10.0.0.0/8']",
        "SELECT time FROM TCP WHERE in_net[srcIP, '10.0.0.0/8']",
    ),
    ("SELECT time, 7 MOD 2 FROM TCP", "mod(a, b)", "SELECT time, mod(7, 2), 7 % 2 FROM TCP"),
    (
        "SELECT time FROM TCP WHERE flags = 'SYNACK'",
        "flags = 'SA'",
        "SELECT time FROM TCP WHERE flags = 'SA'",
    ),
    (
        "SELECT time FROM TCP WHERE time > '2016-08-02 02:20:00.5'",
        "timestamp > '2016-08-02 02:20:00.5'",
        "SELECT time FROM TCP WHERE timestamp > '2016-08-02 02:20:00.5'",
    ),
    (
        "SELECT time FROM TCP WHERE time/60 > '2016-08-02'",
        "time >= '2016-08-02'",
        "SELECT time FROM TCP WHERE time >= '2016-08-02'",
    ),
    (
        "SELECT time FROM TCP WHERE protocol = 'http'",
        "protocol is what IP carries, such as 'tcp'; write the number of the port, such as "
        "destPort = 80",
        "SELECT time FROM TCP WHERE protocol = 'tcp' AND destPort = 80",
    ),
    (
        "SELECT time FROM TCP WHERE destPort = 'https'",
        "write the number of the port, such as destPort = 443",
        "SELECT time FROM TCP WHERE destPort = 443",
    ),
    (
        "SELECT time, -9223372036854775808 AS x FROM TCP",
        "write the least, -9223372036854775808, as 0x8000000000000000",
        "SELECT time, 0x8000000000000000 AS x FROM TCP",
    ),
    (
        "SELECT time, 0xFFFFFFFFFFFFFFFFF AS x FROM TCP",
        "in hexadecimal: 0xFFFFFFFFFFFFFFFF",
        "SELECT time, 0xFFFFFFFFFFFFFFFF AS x FROM TCP",
    ),
    (
        "SELECT time, TRY_CAST(TCP_data AS INT) AS x FROM TCP",
        "CAST(x AS INT)",
        "SELECT time, CAST(TCP_data AS INT) AS x FROM TCP",
    ),
    (
        "SELECT time FROM TCP WHERE TCP_data ~ 'GET'",
        "str_regex_match[x, 'pattern']",
        "SELECT time FROM TCP WHERE str_regex_match[TCP_data, 'pattern']",
    ),
    (
        "SELECT time, substring(TCP_data FROM 1 FOR 4) AS x FROM TCP",
        "substr(x, 1, 4)",
        "SELECT time, substr(TCP_data, 1, 4) AS x FROM TCP",
    ),
    (
        "SELECT time FROM TCP WHERE srcIP IN (SELECT srcIP FROM UDP)",
        "FILTER_JOIN(time, 5) FROM a, b WHERE a.srcIP = b.srcIP",
        "SELECT a.time FILTER_JOIN(time, 5) FROM TCP a, UDP b WHERE a.srcIP = b.srcIP",
    ),
    (
        "SELECT to_timestamp(time_ns) AS t FROM TCP",
        "TIMESTAMP(…) in place of to_timestamp(…)",
        "SELECT TIMESTAMP(time_ns) AS t FROM TCP",
    ),
    (
        "SELECT to_timestamp(INT(timestamp) / 1000000) AS t FROM TCP",
        "TIMESTAMP((…) * 1000000) in place of to_timestamp(…)",
        "SELECT TIMESTAMP((INT(timestamp) / 1000000) * 1000000) AS t FROM TCP",
    ),
    (
        "SELECT TIMESTAMP(time_ns / 1000) AS t FROM TCP",
        "TIMESTAMP((…) * 1000) in place of TIMESTAMP(…)",
        "SELECT TIMESTAMP((time_ns / 1000) * 1000) AS t FROM TCP",
    ),
    (
        "SELECT TIMESTAMP(time_ns / 1000000000) AS t FROM TCP",
        "to_timestamp(…) in place of TIMESTAMP(…)",
        "SELECT to_timestamp(time_ns / 1000000000) AS t FROM TCP",
    ),
    (
        "SELECT time FROM TCP WHERE (vlan = 7) IS UNKNOWN",
        "write IS NULL",
        "SELECT time FROM TCP WHERE (vlan = 7) IS NULL",
    ),
    *(
        (f"SELECT time, {name}(len) AS x FROM TCP", shown, f"SELECT time, {shown} AS x FROM TCP")
        for name, shown in FOREIGN_FUNCTIONS.items()
    ),
    *(
        (
            f"SELECT tb, {name}(len) AS x FROM TCP GROUP BY time/60 AS tb",
            shown,
            f"SELECT tb, {shown} AS x FROM TCP GROUP BY time/60 AS tb",
        )
        for name, shown in FOREIGN_AGGREGATES.items()
    ),
]


JOINED = "FROM main0.TCP a FULL JOIN main1.TCP b ON a.time/30 = b.time/30 AND a.srcIP = b.srcIP"


def compile_text(text: str, *, is_unbounded: bool = False) -> None:
    context = CompileContext(("main0", "main1"), {}, {}, (), is_unbounded)
    compile_queries([QueryText(text, "q")], context)


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT a.time/30 AS tb, count(*) AS n {JOINED} GROUP BY a.time/30",
        f"SELECT tb, count(*) n {JOINED} GROUP BY b.time/30 tb",
        "SELECT minute, count(*) n FROM TCP GROUP BY time - time % 60 minute",
        "SELECT tb, count(*) n FROM TCP GROUP BY timestamp / INTERVAL '1 min 30 sec' tb",
        "SELECT tb, count(*) n FROM TCP GROUP BY timestamp / (INTERVAL '1 min' * 3) tb",
    ],
)
def test_epochs_that_are_plain_close_groups_of_a_stream_without_end(text: str) -> None:
    compile_text(text, is_unbounded=True)


@pytest.mark.parametrize(("refused", "remedy", "followed"), CASES, ids=lambda text: text[:50])
def test_a_remedy_can_be_followed(refused: str, remedy: str, followed: str) -> None:
    with pytest.raises(GsqlError) as caught:
        compile_text(refused)
    assert remedy in caught.value.remedy
    compile_text(followed)
