"""Functions that round times down, at both levels, over times that no clock shows.

A plain loop over unbounded integers, wrapped to 64 bits at the end, computes the same.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from tests.capture.lfta.lfta_builders import block_of, ipv4, udp
from tests.capture.lfta.lfta_collect import Make, compiled, interpreted, run

from gscope.engine.spark.sql.expressions import SPARK_TYPES, column_leaf, to_sql
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Expression, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.trees import map_expression

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import Lfta

SECOND = 10**9
LEAST, GREATEST = -(1 << 63), (1 << 63) - 1
TODAY = 1_700_000_000_123_456_789
LENGTHS = (1, 59, 60, 3599, 3600, 86_400, 7 * 86_400, 2**31, 9_223_372_035)
TIMES = sorted(
    {0, 1, -1, LEAST, LEAST + 1, GREATEST - 2, GREATEST - 1, TODAY}
    | {sign * n * SECOND + off for sign in (-1, 1) for off in (-1, 0, 1) for n in LENGTHS}
)
"""Before and after 1970, beside the ends of units, and at both ends of 64 bits."""

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86_400 * SECOND
WHOLE = SECOND
"""Of ``time``, which has no fraction."""

CALLS: dict[str, tuple[int, int]] = {
    "second(time)": (SECOND, WHOLE),
    "minute(time)": (MINUTE, WHOLE),
    "minute(timestamp)": (MINUTE, 1),
    "hour(timestamp)": (HOUR, 1),
    "day(time_ns)": (DAY, 1),
    "time_bucket('10 sec')": (10 * SECOND, 1),
    "time_bucket('7 ns')": (7, 1),
    "time_bucket('1500 ms', time)": (1500 * 10**6, WHOLE),
}
"""Each call with the length of its bucket and the grain of the time that it rounds down."""


def wanted(time_ns: int) -> dict[str, int]:
    begins = {}
    for number, (length, grain) in enumerate(CALLS.values()):
        time = time_ns // grain * grain
        if length % grain:
            time = wrapped(time)
        begins[f"x{number}"] = wrapped(time // length * length)
    return begins


def wrapped(value: int) -> int:
    return (value + (1 << 63)) % (1 << 64) - (1 << 63)


def selection() -> Lfta:
    items = ", ".join(f"{text} AS x{number}" for number, text in enumerate(CALLS))
    text = f"SELECT time_ns, {items} FROM IP"
    program = compile_queries([QueryText(text, "q")], CompileContext(("main",))).program
    assert not program.nodes
    return program.lftas[0]


@pytest.mark.parametrize("make", [compiled(), interpreted()], ids=["compiled", "interpreted"])
def test_low_level_queries_round_every_time_down(make: Make) -> None:
    packet = ipv4(1, 2, udp(3, 4))
    lfta = selection()
    rows, _ = run(make, [lfta], [block_of([(time_ns, packet) for time_ns in TIMES])])
    found = rows[lfta.name]
    assert [row["time_ns"] for row in found] == TIMES
    for row in found:
        values = {name: wrapped(int(value)) for name, value in row.items() if name != "time_ns"}
        assert values == wanted(row["time_ns"])


@pytest.mark.spark
def test_spark_rounds_every_time_down(spark: SparkSession) -> None:
    columns = selection().columns
    rows = [(time_ns, time_ns // SECOND, time_ns) for time_ns in TIMES]
    kinds = (("time_ns", GsqlType.INT), ("time", GsqlType.INT), ("timestamp", GsqlType.TIMESTAMP))
    ddl = ", ".join(f"{name} {SPARK_TYPES[kind]}" for name, kind in kinds)
    spark.createDataFrame(rows, ddl).coalesce(1).createOrReplaceTempView("clocks")
    texts = [f"{to_sql(over_columns(c.expression), column_leaf)} AS {c.name}" for c in columns]
    found = spark.sql(f"SELECT {', '.join(texts)} FROM clocks").toArrow().to_pylist()
    for row in found:
        assert {name: row[name] for name in row if name != "time_ns"} == wanted(row["time_ns"])


def over_columns(expression: Expression) -> Expression:
    """Return an expression over packets as one over rows with the same names."""

    def change(part: Expression) -> Expression:
        if isinstance(part, PacketField):
            return Column(part.name, part.type, part.is_nullable)
        return part

    return map_expression(expression, change)
