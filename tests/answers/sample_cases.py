"""Queries that are sampled, each with its full answer in SQL and the terms that samples keep."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain

from tests.answers.sample_oracle import Term


@dataclass(frozen=True)
class WholeCase:
    """A query whose rows are whole.

    Attributes:
        gsql: its text.
        sql: the full answer: its columns, then those that ``terms`` read but it does not show.
        columns: the columns of the answer, in SQL.
        terms: the terms of the sample as columns of ``sql``.
        shown: the terms of each LFTA in GSQL.
    """

    gsql: str
    sql: str
    columns: str
    terms: tuple[Term, ...]
    shown: dict[str, str]


@dataclass(frozen=True)
class ScaledCase:
    """A query with scaled columns.

    Attributes:
        gsql: its text; its first column is the time ``tb``.
        units: in SQL, what a sample keeps or leaves out as one in each epoch: ``tb``, and for each
            column of the answer what a unit adds to it, as ``x0``, ``x1``, …; then the columns of
            the terms, or the ``number`` and ``link`` of a packet.
        columns: the columns of the answer behind ``tb``, in SQL over the sums ``x0``, ``x1``, …; a
            scaled one is only the name of its sum.
        terms: the terms of the sample; () if it is one of packets.
        shown: the terms of the only LFTA in GSQL; "tuples" if it is one of packets.
    """

    gsql: str
    units: str
    columns: tuple[str, ...]
    terms: tuple[Term, ...]
    shown: str

    @property
    def sums(self) -> list[str]:
        """The names of what units add."""
        return [name for name in ("x0", "x1", "x2") if f" AS {name}" in self.units]


_SRC, _DST = Term("src", is_address=True), Term("dst", is_address=True)
_FOUR = (_SRC, _DST, Term("sport"), Term("dport"))
_SRC_COLUMNS = "src_high, src_low"
_TCP = "packet WHERE proto = 6 AND flags IS NOT NULL"
_IP = "packet WHERE version > 0"
_PARTS = "any_value(src_high) AS src_high, any_value(src_low) AS src_low"
_BOTH = f"{_PARTS}, any_value(dst_high) AS dst_high, any_value(dst_low) AS dst_low"
_ASKED = "FROM TCP WHERE SYN = 1 and ACK = 0 GROUP BY time/2 AS tb, srcIP, destIP"
_ANSWERED = "FROM TCP WHERE SYN = 1 and ACK = 1 GROUP BY time/2 AS tb, srcIP, destIP"

WHOLE = {
    "flows": WholeCase(
        "SELECT tb, srcIP, destIP, srcPort, destPort, count(*) AS packets, max(len) AS longest "
        "FROM TCP GROUP BY time/2 AS tb, srcIP, destIP, srcPort, destPort HAVING sum(len) > 100",
        f"SELECT t // 2 AS tb, src, dst, sport, dport, count(*) AS packets, max(len) AS longest, "
        f"{_BOTH} FROM {_TCP} GROUP BY ALL HAVING sum(len) > 100",
        "tb, src, dst, sport, dport, packets, longest",
        _FOUR,
        {"flows": "srcIP, destIP, srcPort, destPort"},
    ),
    "busiest": WholeCase(
        "SELECT tb, srcIP, max(packets) AS most, count(*) AS partners FROM "
        "(SELECT tb, srcIP, destIP, count(*) AS packets FROM IP GROUP BY time/3 AS tb, srcIP, "
        "destIP) AS p GROUP BY tb, srcIP HAVING count(*) > 1",
        "SELECT tb, src, max(packets) AS most, count(*) AS partners, "
        f"{_PARTS} FROM (SELECT t // 3 AS tb, src, dst, count(*) AS packets, {_PARTS} FROM {_IP} "
        "GROUP BY ALL) GROUP BY tb, src HAVING count(*) > 1",
        "tb, src, most, partners",
        (_SRC,),
        {"busiest.p": "srcIP"},
    ),
    "answered": WholeCase(
        "SELECT S.time, S.srcIP, S.destIP, S.srcPort, A.len FROM TCP S, TCP A "
        "WHERE S.time = A.time and S.srcIP = A.destIP and S.destIP = A.srcIP "
        "and S.srcPort = A.destPort and S.destPort = A.srcPort "
        "and S.sequence_number + 1 = A.ack_number and S.SYN = 1 and S.ACK = 0 and A.SYN = 1",
        f"SELECT s.t, s.src, s.dst, s.sport, s.dport, (s.seq + 1) AS following, a.len, "
        f"s.src_high, s.src_low, s.dst_high, s.dst_low "
        f"FROM (SELECT * FROM {_TCP} AND flags & 18 = 2) s, "
        f"(SELECT * FROM {_TCP} AND flags & 2 = 2) a "
        "WHERE s.t = a.t AND s.src = a.dst AND s.dst = a.src AND s.sport = a.dport "
        "AND s.dport = a.sport AND s.seq + 1 = a.ack",
        "t, src, dst, sport, len",
        (*_FOUR, Term("following")),
        {
            "answered.1": "srcIP, destIP, srcPort, destPort, sequence_number + 1",
            "answered.2": "destIP, srcIP, destPort, srcPort, ack_number",
        },
    ),
    "unanswered": WholeCase(
        f"SELECT S.tb, S.srcIP, S.destIP, S.n, A.n FROM (SELECT tb, srcIP, destIP, count(*) AS n "
        f"{_ASKED}) AS S LEFT JOIN (SELECT tb, srcIP, destIP, count(*) AS n {_ANSWERED}) AS A "
        "ON S.tb = A.tb and S.srcIP = A.destIP and S.destIP = A.srcIP WHERE S.n > 0",
        "SELECT s.tb, s.src, s.dst, s.n, a.n AS m, s.src_high, s.src_low, s.dst_high, s.dst_low "
        f"FROM (SELECT t // 2 AS tb, src, dst, count(*) AS n, {_BOTH} FROM {_TCP} "
        f"AND flags & 18 = 2 GROUP BY ALL) s LEFT JOIN (SELECT t // 2 AS tb, src, dst, "
        f"count(*) AS n FROM {_TCP} AND flags & 18 = 18 GROUP BY ALL) a "
        "ON s.tb = a.tb AND s.src = a.dst AND s.dst = a.src",
        "tb, src, dst, n, m",
        (_SRC, _DST),
        {"unanswered.S": "srcIP, destIP", "unanswered.A": "destIP, srcIP"},
    ),
    "ports": WholeCase(
        "SELECT tb, range, max(packets) AS most, sum(bytes) AS bytes FROM (SELECT tb, hundred, "
        "count(*) AS packets, sum(len) AS bytes FROM IP GROUP BY time/3 AS tb, "
        "destPort/100 AS hundred) AS h GROUP BY tb, hundred/3 AS range",
        "SELECT tb, dport // 300 AS range, max(packets) AS most, sum(bytes) AS bytes FROM "
        "(SELECT t // 3 AS tb, dport // 100 * 100 AS dport, count(*) AS packets, "
        f"sum(len) AS bytes FROM {_IP} GROUP BY ALL) GROUP BY ALL",
        "tb, range, most, bytes",
        (Term("range"),),
        {"ports.h": "destPort DIV 300"},
    ),
    "nets": WholeCase(
        "SELECT tb, net, count_distinct(destPort) AS ports, count_dups(len) AS repeated "
        "FROM TCP GROUP BY time/5 AS tb, prefix(destIP, 24) AS net",
        "SELECT t // 5 AS tb, dst_net, count(DISTINCT dport) AS ports, "
        "count(len) - count(DISTINCT len) AS repeated, any_value(dst_net_high) AS dst_net_high, "
        f"any_value(dst_net_low) AS dst_net_low FROM {_TCP} GROUP BY tb, dst_net",
        "tb, dst_net, ports, repeated",
        (Term("dst_net", is_address=True),),
        {"nets": "prefix(destIP, 24, 128)"},
    ),
    "sliding": WholeCase(
        "SELECT window_end, srcIP, count(*) AS packets, max(len) AS longest FROM IP "
        "[RANGE 4 SLIDE 2] GROUP BY srcIP",
        "SELECT shown(fin) AS fin, src, count(*) AS packets, max(len) AS longest, "
        f"{_PARTS} FROM (SELECT *, unnest([t // 2 * 2 + 2, t // 2 * 2 + 4]) AS fin FROM {_IP}) "
        "GROUP BY fin, src",
        "fin, src, packets, longest",
        (_SRC,),
        {"sliding": "srcIP"},
    ),
    "both_ways": WholeCase(
        "SELECT tb, host, count(*) AS packets, min(len) AS least FROM (SELECT time, srcIP AS host, "
        "len FROM one.TCP UNION ALL SELECT time, destIP AS host, len FROM two.UDP) AS u "
        "GROUP BY time/2 AS tb, host",
        "SELECT t // 2 AS tb, host AS src, count(*) AS packets, min(len) AS least, "
        "any_value(high) AS src_high, any_value(low) AS src_low FROM (SELECT t, src AS host, len, "
        f"src_high AS high, src_low AS low FROM {_TCP} AND link = 'one' UNION ALL SELECT t, dst, "
        "len, dst_high, dst_low FROM packet WHERE proto = 17 AND link = 'two') GROUP BY ALL",
        "tb, src, packets, least",
        (_SRC,),
        {"both_ways.u.1": "srcIP", "both_ways.u.2": "destIP"},
    ),
    "running": WholeCase(
        "SELECT tb, srcIP, count(*) AS packets, running_sum(len) AS bytes FROM IP "
        "GROUP BY time/2 AS tb, srcIP CLOSING_WHEN count(*) = 0",
        # a group lives from an epoch with packets until one without, which has a row as well
        f"WITH spans AS (SELECT t // 2 AS tb, src, count(*) AS n, sum(len) AS bytes, {_PARTS} "
        f"FROM {_IP} GROUP BY tb, src), lives AS (SELECT *, tb - row_number() OVER (PARTITION BY "
        "src ORDER BY tb) AS life FROM spans), sums AS (SELECT *, sum(bytes) OVER (PARTITION BY "
        "src, life ORDER BY tb) AS total, lead(tb) OVER (PARTITION BY src, life ORDER BY tb) AS "
        f"next FROM lives) SELECT tb, src, n, total, {_SRC_COLUMNS} FROM sums UNION ALL SELECT "
        f"tb + 1, src, 0, total, {_SRC_COLUMNS} FROM sums WHERE next IS NULL AND tb < (SELECT "
        "max(t) // 2 FROM packet)",
        "tb, src, n, total",
        (_SRC,),
        {"running": "srcIP"},
    ),
    "running_flows": WholeCase(
        "SELECT tb, destIP, count(*) AS flows, running_sum(packets) AS packets FROM (SELECT tb, "
        "srcIP, destIP, count(*) AS packets FROM IP GROUP BY time/3 AS tb, srcIP, destIP) AS f "
        "GROUP BY tb, destIP CLOSING_WHEN count(*) = 0",
        "WITH spans AS (SELECT t // 3 AS tb, dst, count(DISTINCT src) AS n, count(*) AS packets, "
        "any_value(dst_high) AS dst_high, any_value(dst_low) AS dst_low "
        f"FROM {_IP} GROUP BY tb, dst), lives AS (SELECT *, tb - row_number() OVER (PARTITION BY "
        "dst ORDER BY tb) AS life FROM spans), sums AS (SELECT *, sum(packets) OVER (PARTITION BY "
        "dst, life ORDER BY tb) AS total, lead(tb) OVER (PARTITION BY dst, life ORDER BY tb) AS "
        "next FROM lives) SELECT tb, dst, n, total, dst_high, dst_low FROM sums UNION ALL SELECT "
        "tb + 1, dst, 0, total, dst_high, dst_low FROM sums WHERE next IS NULL AND tb < (SELECT "
        "max(t) // 3 FROM packet)",
        "tb, dst, n, total",
        (_DST,),
        # an instance of its own of the LFTA that "busiest" reads as well
        {"busiest.p_2": "destIP"},
    ),
}

SCALED = {
    "of_sources": ScaledCase(
        "SELECT tb, count(*) AS sources, sum(packets) AS packets, count_distinct(srcIP) AS hosts, "
        "sum(bytes) / sum(packets) AS mean FROM (SELECT tb, srcIP, count(*) AS packets, "
        "sum(len) AS bytes FROM IP GROUP BY time/4 AS tb, srcIP) AS s GROUP BY tb",
        f"SELECT t // 4 AS tb, 1 AS x0, count(*) AS x1, sum(len) AS x2, {_PARTS} FROM {_IP} "
        "GROUP BY tb, src",
        ("x0", "x1", "x0", "scaled(x2)::DOUBLE / scaled(x1)"),
        (_SRC,),
        "srcIP",
    ),
    "totals": ScaledCase(
        "SELECT tb, count(*) AS packets, sum(len) AS bytes, avg(len) AS mean FROM IP "
        "GROUP BY time/6 AS tb",
        f"SELECT t // 6 AS tb, 1 AS x0, len AS x1, number, link FROM {_IP}",
        ("x0", "x1", "x1::DOUBLE / x0"),
        (),
        "tuples",
    ),
}


def text() -> str:
    """Return the text of all queries."""
    named = chain(
        ((name, each.gsql) for name, each in WHOLE.items()),
        ((name, each.gsql) for name, each in SCALED.items()),
    )
    return ";\n".join(f"DEFINE {{ query_name '{name}'; }} {gsql}" for name, gsql in named)
