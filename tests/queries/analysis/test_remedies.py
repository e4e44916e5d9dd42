"""What a remedy says to write is accepted."""

from __future__ import annotations

import pytest

from gscope.errors import GsqlError
from gscope.queries.plan.compile import QueryText, Surroundings, compile_queries

FALLING = (
    "DEFINE { query_name 'x'; } SELECT -time AS down, srcPort FROM main0.TCP; "
    "DEFINE { query_name 'y'; } SELECT -time AS down, srcPort FROM main1.TCP; "
)
RISING = FALLING.replace("-time AS down", "-time AS down, -(-time) AS rising")

CASES = [
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
        "select -down AS rising in both inputs, and merge on rising",
        RISING + "MERGE a.rising : b.rising FROM x a, y b",
    ),
    (
        FALLING + "SELECT R.down FILTER_JOIN(down, 5) FROM x R, y S WHERE R.srcPort = S.srcPort",
        "select -down AS rising in both inputs, and look back along rising",
        RISING + "SELECT R.down FILTER_JOIN(rising, 5) FROM x R, y S WHERE R.srcPort = S.srcPort",
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
        "SELECT time FROM TCP WHERE srcIP = '10.0.0.0/8'",
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
        "SELECT time, lower(http_host(TCP_data)) ILIKE '%x%' AS y FROM TCP",
        "lower(x) LIKE 'pattern'",
        "SELECT time FROM TCP WHERE lower(http_host(TCP_data)) LIKE '%x%'",
    ),
]


JOINED = "FROM main0.TCP a FULL JOIN main1.TCP b ON a.time/30 = b.time/30 AND a.srcIP = b.srcIP"


def compile_text(text: str, *, is_unbounded: bool = False) -> None:
    surroundings = Surroundings(("main0", "main1"), {}, {}, (), is_unbounded)
    compile_queries([QueryText(text, "q")], surroundings)


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
