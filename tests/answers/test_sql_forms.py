"""Forms that SQL users write answer what DuckDB answers over the same packets, at both levels."""

from __future__ import annotations

from typing import TYPE_CHECKING

import dpkt
import duckdb
import pytest
from tests.golden.driver import COMPILED, INTERPRETED, answer
from tests.support.requirements import CAPTURES, needs_captures

from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from tests.golden.driver import Row, Variation

CAPTURE = CAPTURES / "ndpi-pcap-1kxun.pcap"

pytestmark = [pytest.mark.spark, needs_captures]

FORMS = {
    # GSQL → what DuckDB is asked; the columns of both are those of the TCP packets below
    "time - time % 60": "time - time % 60",
    "nullif(destPort, 80)": "nullif(destPort, 80)",
    "greatest(srcPort, destPort)": "greatest(srcPort, destPort)",
    "least(srcPort, destPort)": "least(srcPort, destPort)",
    "mod(srcPort, 7)": "mod(srcPort, 7)",
    "flags = 'SA'": "flags = 18",
    "flags & 'SA' = 'S'": "(flags & 18) = 2",
    "protocol = 'tcp'": "protocol = 6",
    "(nullif(destPort, 80) = 443) IS TRUE": "(nullif(destPort, 80) = 443) IS TRUE",
    "(nullif(destPort, 80) = 443) IS NOT FALSE": "(nullif(destPort, 80) = 443) IS NOT FALSE",
    "nullif(destPort, 80) IS DISTINCT FROM nullif(srcPort, 80)": (
        "nullif(destPort, 80) IS DISTINCT FROM nullif(srcPort, 80)"
    ),
    "nullif(destPort, 80) IS NOT DISTINCT FROM 443": (
        "nullif(destPort, 80) IS NOT DISTINCT FROM 443"
    ),
    "CAST(len AS FLOAT) > 100.5": "CAST(len AS DOUBLE) > 100.5",
    "CAST(srcPort AS STRING)": "CAST(srcPort AS VARCHAR)",
    "srcPort || ':' || destPort": "srcPort || ':' || destPort",
    "concat(srcPort, ' ', nullif(destPort, 80))": "concat(srcPort, ' ', nullif(destPort, 80))",
    "substr(STRING(srcPort), 2, 2)": "substr(srcPort::VARCHAR, 2, 2)",
    "substring(STRING(srcPort), 3)": "substring(srcPort::VARCHAR, 3)",
    "timestamp / (INTERVAL '30 sec' * 3)": "time // 90",
    "timestamp / INTERVAL '1 min 15 sec'": "time // 75",
}
HIGH_ONLY = ("||", "concat", "substr", "STRING")


def packets() -> list[tuple[int, ...]]:
    """Time, ports, flags, protocol and length of the TCP packets over plain Ethernet and IPv4."""
    rows: list[tuple[int, ...]] = []
    with CAPTURE.open("rb") as file:
        for at, frame in dpkt.pcap.Reader(file):
            ip = dpkt.ethernet.Ethernet(frame).data
            if isinstance(ip, dpkt.ip.IP) and isinstance(ip.data, dpkt.tcp.TCP):
                tcp = ip.data
                flags = frame[14 + 4 * ip.hl + 13]
                rows.append((int(at), tcp.sport, tcp.dport, flags, ip.p, len(frame)))
    return rows


def expected(forms: list[str]) -> list[Row]:
    """What DuckDB answers, as text."""
    database = duckdb.connect()
    names = "time BIGINT, srcPort INT, destPort INT, flags INT, protocol INT, len INT"
    database.execute(f"CREATE TABLE packets ({names})")
    database.executemany("INSERT INTO packets VALUES (?, ?, ?, ?, ?, ?)", packets())
    columns = ", ".join(f"coalesce(CAST(({FORMS[form]}) AS VARCHAR), '')" for form in forms)
    return sorted(database.execute(f"SELECT {columns} FROM packets").fetchall())


def answered(query: str, variation: Variation, spark: SparkSession | None) -> list[Row]:
    compiled = compile_queries([QueryText(query, "q")], CompileContext(("a",), {}, {}))
    (rows,) = answer(compiled.program, {"a": [CAPTURE]}, variation, spark).values()
    return rows


@pytest.mark.parametrize("variation", [COMPILED, INTERPRETED], ids=lambda v: v.name)
def test_forms_of_lftas_answer_as_duckdb_does(variation: Variation) -> None:
    forms = [form for form in FORMS if not any(word in form for word in HIGH_ONLY)]
    assert len(packets()) > 1000
    columns = ", ".join(f"{form} AS x{n}" for n, form in enumerate(forms))
    rows = answered(f"SELECT time, {columns} FROM TCP WHERE ipversion = 4", variation, None)
    assert sorted(row[1:] for row in rows) == expected(forms)


def test_forms_of_spark_answer_as_duckdb_does(spark: SparkSession) -> None:
    forms = [form for form in FORMS if any(word in form for word in HIGH_ONLY)]
    columns = ", ".join(f"{form} AS x{n}" for n, form in enumerate(forms))
    rows = answered(f"SELECT time, {columns} FROM TCP WHERE ipversion = 4", COMPILED, spark)
    assert sorted(row[1:] for row in rows) == expected(forms)


def test_minutes_that_show_their_beginning_count_every_packet(spark: SparkSession) -> None:
    rows = answered(
        "SELECT minute, count(*) n FROM TCP WHERE ipversion = 4 GROUP BY time - time % 60 minute",
        COMPILED,
        spark,
    )
    counts: dict[str, int] = {}
    for time, *_ in packets():
        minute = str(time // 60 * 60)
        counts[minute] = counts.get(minute, 0) + 1
    assert {minute: int(n) for minute, n in rows} == counts
