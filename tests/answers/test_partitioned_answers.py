"""DuckDB and Spark find every row in the folder of its hour.

They read only the folders they need.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import duckdb
import pytest
from tests.support.gscope_command import run

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

BEGIN = 1_795_556_400
"""2026-11-24 21:40 UTC."""

PACKETS = 180
STREAM = "DEFINE { query_name packets; } SELECT timestamp, id FROM UDP"
GROUPS = "DEFINE { query_name minutes; } SELECT tb, count(*) AS n FROM UDP GROUP BY time/60 AS tb"

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def out(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The answers on one packet each 100 s of five hours."""
    place = tmp_path_factory.mktemp("partitions")
    packets = []
    for number in range(PACKETS):
        udp = struct.pack(">HHHH", 7, 9, 8, 0)
        header = struct.pack(">BBHHHBBH", 0x45, 0, 28, number, 0, 64, 17, 0)
        packet = bytes(12) + b"\x08\x00" + header + bytes([10, 0, 0, 1, 10, 0, 0, 2]) + udp
        times = BEGIN + 100 * number, number
        packets.append(struct.pack("<IIII", *times, len(packet), len(packet)) + packet)
    header = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    (place / "c.pcap").write_bytes(header + b"".join(packets))
    done = run(
        *("replay", place / "c.pcap", "--quiet", "--work-dir", place / "work", "-e", STREAM),
        *("-e", GROUPS, "-o", "parquet", "-w", place / "out", "--partition-by", "hour"),
    )
    assert done.returncode == 0, done.stderr
    return place / "out"


def moments() -> list[datetime]:
    return [datetime.fromtimestamp(BEGIN + 100 * number, UTC) for number in range(PACKETS)]


def minutes() -> list[tuple[int, int, str, int]]:
    """The groups, each with its partition, as Python counts them."""
    counts = Counter((int(t.timestamp()) // 60, f"{t:%Y-%m-%d}", t.hour) for t in moments())
    return sorted((tb, n, date, hour) for (tb, date, hour), n in counts.items())


def partitioned(out: Path, query: str) -> str:
    return f"read_parquet('{out / query}/**/*.parquet', hive_partitioning = true)"


def asked(sql: str) -> Any:
    """What DuckDB answers."""
    return duckdb.connect().sql(sql).fetchall()


def test_duckdb_reads_every_row_in_its_partition(out: Path) -> None:
    shown = "epoch_us(timestamp), id, date::VARCHAR, hour"
    rows = asked(f"SELECT {shown} FROM {partitioned(out, 'packets')} ORDER BY timestamp")
    assert rows == [
        (1_000_000 * int(t.timestamp()) + n, n, f"{t:%Y-%m-%d}", t.hour)
        for n, t in enumerate(moments())
    ]
    shown = "tb, n, date::VARCHAR, hour"
    assert asked(f"SELECT {shown} FROM {partitioned(out, 'minutes')} ORDER BY ALL") == minutes()
    types = asked(f"SELECT DISTINCT typeof(date), typeof(hour) FROM {partitioned(out, 'minutes')}")
    assert types == [("DATE", "BIGINT")]
    assert sorted(path.name for path in out.iterdir()) == ["minutes", "packets"]


def test_duckdb_reads_only_the_files_of_the_partitions_that_it_needs(out: Path) -> None:
    needed = "date = DATE '2026-11-24' AND hour >= 22"
    ((_, plan),) = asked(
        f"EXPLAIN ANALYZE SELECT sum(id) FROM {partitioned(out, 'packets')} WHERE {needed}"
    )
    assert re.search(r"Scanning Files: 2/6", plan), plan


def test_spark_discovers_the_partitions_and_reads_only_those_that_it_needs(
    out: Path, spark: SparkSession
) -> None:
    frame = spark.read.parquet(str(out / "minutes"))
    assert frame.dtypes == [("tb", "bigint"), ("n", "bigint"), ("date", "date"), ("hour", "int")]
    rows = sorted((row.tb, row.n, str(row.date), row.hour) for row in frame.collect())
    assert rows == minutes()
    needed = frame.where("date = DATE '2026-11-25' AND hour = 1")
    assert len(needed.inputFiles()) == 6
    expected = [row for row in minutes() if row[2:] == ("2026-11-25", 1)]
    assert sorted((row.tb, row.n) for row in needed.collect()) == [row[:2] for row in expected]
    plan = needed._jdf.queryExecution().executedPlan().toString()
    filters = re.search(r"PartitionFilters: \[(.*?)\], PushedFilters", plan)
    assert filters is not None, plan
    assert "2026-11-25" in filters[1]
    assert re.search(r"hour#\d+ = 1\b", filters[1])


def test_without_a_time_or_without_parquet_the_command_says_what_to_do(tmp_path: Path) -> None:
    common = ("run", "-i", "lo", "--work-dir", tmp_path / "work", "--partition-by", "day")
    done = run(*common, "-e", "SELECT time FROM IP", "-w", tmp_path / "out")
    assert done.returncode == 2
    assert "--partition-by day requires folders of Parquet; add -o parquet -w DIR" in done.stderr
    done = run(*common, "-e", "SELECT srcIP FROM IP", "-w", tmp_path / "out", "-o", "parquet")
    assert done.returncode == 2
    assert "no column of the answer query is one; select time, time/60 AS tb" in done.stderr
    assert not (tmp_path / "out").exists()
