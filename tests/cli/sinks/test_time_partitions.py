"""The partition of a row is the UTC date, hour and minute that Python computes of its time."""

from __future__ import annotations

import random
from datetime import UTC, datetime

import pyarrow as pa
import pytest

from gscope.cli.config.partition_unit import PartitionUnit
from gscope.cli.sinks.time_partitions import NO_TIME, TimePartitions
from gscope.errors import UsageError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.row_order import visible

TIMES = (
    *(1_795_510_799, 1_795_510_800, 1_798_761_599, 1_798_761_600, 1_709_164_800, 0, 9_214_646_399),
)
"""Seconds on both sides of an hour and of a year, a leap day, and the first and last known day."""


def partitions(text: str, unit: str) -> TimePartitions:
    program = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program
    ((query, _),) = program.results
    return TimePartitions.of("q", visible(program.schema(query)), PartitionUnit(unit))


def expected(second: int, unit: str) -> str:
    t = datetime.fromtimestamp(second, UTC)
    return {
        "month": f"month={t:%Y-%m}",
        "day": f"date={t:%Y-%m-%d}",
        "hour": f"date={t:%Y-%m-%d}/hour={t.hour}",
        "minute": f"date={t:%Y-%m-%d}/hour={t.hour}/minute={t.minute}",
    }[unit]


@pytest.mark.parametrize("unit", ["month", "day", "hour", "minute"])
@pytest.mark.parametrize("column", ["time", "timestamp"])
def test_rows_are_in_the_partition_of_their_time_and_in_their_order(unit: str, column: str) -> None:
    chance = random.Random(7)
    seconds = [*TIMES, *(chance.choice(TIMES) + chance.randrange(7200) for _ in range(500))]
    values = [1_000_000_000 * s if column == "timestamp" else s for s in seconds]
    kind = pa.timestamp("ns") if column == "timestamp" else pa.int64()
    table = pa.table({column: pa.array(values, kind), "n": range(len(seconds))})
    found = {
        path: rows["n"].to_pylist()
        for path, rows in partitions(f"SELECT {column}, id AS n FROM IP", unit).split(table)
    }
    wanted: dict[str, list[int]] = {}
    for n, second in enumerate(seconds):
        wanted.setdefault(expected(second, unit), []).append(n)
    assert found == wanted


def test_the_unit_of_a_column_counts() -> None:
    table = pa.table({"tb": [1_795_510_800 // 60], "n": [1]})
    of_minutes = partitions("SELECT tb, count(*) AS n FROM IP GROUP BY time/60 AS tb", "hour")
    ((path, rows),) = of_minutes.split(table)
    assert (path, rows) == (expected(1_795_510_800, "hour"), table)


def test_rows_without_a_time_have_a_partition_of_their_own() -> None:
    of_hours = partitions("SELECT time, id AS n FROM IP", "hour")
    latest = (2**63 - 1) // 1_000_000_000
    table = pa.table({"time": [None, -1, 0, latest, latest + 1], "n": [0, 1, 2, 3, 4]})
    found = {path: rows["n"].to_pylist() for path, rows in of_hours.split(table)}
    assert found == {
        f"date={NO_TIME}/hour={NO_TIME}": [0, 1, 4],
        expected(0, "hour"): [2],
        expected(latest, "hour"): [3],
    }
    before_1970 = pa.table({"timestamp": pa.array([-1, None], pa.timestamp("ns"))})
    of_times = partitions("SELECT timestamp FROM IP", "day")
    assert [path for path, _ in of_times.split(before_1970)] == [
        "date=1969-12-31",
        f"date={NO_TIME}",
    ]


def test_an_ordered_column_comes_before_one_that_is_only_a_time() -> None:
    text = "SELECT min(timestamp) AS first, tb FROM IP GROUP BY time/60 AS tb"
    assert partitions(text, "day").column == "tb"
    text = "SELECT max(timestamp) AS last, srcIP FROM IP GROUP BY time/60 AS tb, srcIP"
    assert partitions(text, "day").column == "last"


def test_a_query_that_cannot_be_partitioned_is_refused() -> None:
    with pytest.raises(UsageError, match="requires a time, but no column of the answer q is one"):
        partitions("SELECT srcIP FROM IP", "day")
    with pytest.raises(UsageError, match="no column of the answer q is one"):
        partitions("SELECT time % 60 AS second FROM IP", "day")
    for name in ("hour", "Hour", "DATE"):
        text = f"SELECT time, id AS {name} FROM IP"
        with pytest.raises(UsageError, match=f"has a column {name}; rename the column with AS"):
            partitions(text, "hour")
    assert partitions("SELECT time, id AS hour FROM IP", "day").keys == ("date",)
