"""Plain rows folded with numpy equal what Spark makes of the same segments."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.running.reduce import is_reducible, reduce_epochs
from gscope.engine.spark.sql import running
from gscope.engine.spark.sql.finishers import register_finishers
from gscope.engine.spark.sql.inputs import Sources
from gscope.engine.spark.sql.udf import register_functions
from gscope.engine.spark.tasks.fold_input import fold_input
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import RunningNode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

    from gscope.queries.plan.program import Program

SMALL = {"flags": 0x1FF, "window": 0xFFFF, "srcPort": 0xFFFF, "destPort": 0xFFFF, "ttl": 0xFF}
"""Fields that LFTAs hold in 32 bits, with their greatest values."""

NUMBERS = (0, 1, 7, -1, (1 << 63) - 2)
QUERY = b"\0\x07\x01\0\0\x01\0\0\0\0\0\0\x01a\x02bc\0\0\x01\0\x01"
RESPONSE = QUERY.replace(b"\x07\x01", b"\x07\x81", 1)
TEXTS = (b"", b"a", b"ab", b"\xe9\xff", b"a\0", QUERY, QUERY, RESPONSE, RESPONSE, QUERY[:-3])
CLOSING = "CLOSING_WHEN count(*) = 0"
HOST = "str_truncate(TCP_data, 2)"
# A text among the keys makes the LFTA send plain rows.
QUERIES = [
    "SELECT tb, srcIP, host, sum(window) as s, count(window) as c, count(*) as n, min(ttl) as l,"
    " max(timestamp) as m, or_aggr(flags) as o, and_aggr(flags) as a, xor_aggr(flags) as x,"
    " running_count(*) as r, sum_of_dups(sequence_number) as d"
    f" FROM TCP GROUP BY time/10 as tb, srcIP, {HOST} as host {CLOSING}",
    "SELECT tb, one, host, first(window) as f, last(window) as l, last(ttl) as t,"
    " running_sum(time) as n"
    " FROM TCP GROUP BY time/10 as tb,"
    " CASE WHEN srcPort < destPort THEN srcIP WHEN window > 7 THEN destIP ELSE srcIP END as one,"
    f" {HOST} as host {CLOSING}",
    "SELECT tb, one, id, name, count(*) as c, sum(dns_qtype(UDP_data)) as s,"
    " first(if_else(ttl > 7, time, NULL)) as f,"
    " running_count(*) as r FROM UDP WHERE dns_id(UDP_data) IS NOT NULL OR ttl > 7"
    " GROUP BY time/10 as tb, if_else(dns_is_response(UDP_data), srcIP, destIP) as one,"
    f" dns_id(UDP_data) as id, dns_qname(UDP_data) as name {CLOSING}",
]


def _program(text: str) -> Program:
    return compile_queries([QueryText(text, "q")], CompileContext(("a",))).program


def _node(program: Program) -> RunningNode:
    (node,) = program.nodes
    assert isinstance(node, RunningNode)
    return node


def _segment(program: Program, rows: int, seed: int) -> pa.Table:
    """Random rows of the stream that a program reads, as the log holds them."""
    chance = random.Random(seed)
    columns = {}
    for column in program.lftas[0].stream_schema.columns:
        kind, values = pa.int64(), [chance.choice(NUMBERS) for _ in range(rows)]
        made: list[Any] = values
        if (most := SMALL.get(column.name)) is not None:
            kind, made = pa.int32(), [value & most for value in values]
        elif column.name == "tb":
            made = [chance.randrange(3) for _ in range(rows)]
        elif column.type is GsqlType.IP:
            kind = pa.binary(16)
            made = [bytes(10) + bytes([255, 255, 10, 0, 0, value & 7]) for value in values]
        elif column.type is GsqlType.BOOL:
            kind, made = pa.bool_(), [value > 0 for value in values]
        elif column.type is GsqlType.STRING:
            kind, made = pa.binary(), [chance.choice(TEXTS) for _ in range(rows)]
        if column.is_nullable:
            made = [chance.choice([value, value, None]) for value in made]
        columns[column.name] = pa.array(made, kind)
    return pa.table(columns)


def _as_spark_reads(spark: SparkSession, path: Path, program: Program) -> DataFrame:
    """The rows of a segment with integers of 64 bits and texts decoded."""
    kinds = {GsqlType.IP: "BINARY", GsqlType.STRING: "BINARY", GsqlType.BOOL: "BOOLEAN"}
    columns = program.lftas[0].stream_schema.columns
    schema = ", ".join(f"`{c.name}` {kinds.get(c.type, 'BIGINT')}" for c in columns)
    rows = spark.read.schema(schema).parquet(str(path))
    return rows.selectExpr(
        *(
            f"decode(`{c.name}`, 'ISO-8859-1') AS `{c.name}`"
            if c.type is GsqlType.STRING
            else f"`{c.name}`"
            for c in columns
        )
    )


def _shown(table: pa.Table) -> list[tuple[Any, ...]]:
    names = sorted(set(table.column_names) - {"kb"})
    rows = []
    for row in table.to_pylist():
        values = (row[name] for name in names)
        rows.append(tuple(sorted(set(v), key=repr) if isinstance(v, list) else v for v in values))
    return sorted(rows, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("rows", [0, 400])
def test_it_gives_what_spark_gives(
    text: str, rows: int, tmp_path: Path, spark: SparkSession
) -> None:
    program = _program(text)
    node = _node(program)
    tuples = fold_input(node)
    assert tuples is not None
    assert not is_reducible(node)
    segments = [tmp_path / f"{number}.parquet" for number in range(2)]
    for number, path in enumerate(segments):
        pq.write_table(_segment(program, rows, number), path)
    _as_spark_reads(spark, tmp_path, program).createOrReplaceTempView("plain_rows")
    counts = register_functions(spark, running.expressions(node))
    register_finishers(spark, node.aggregates, counts)
    theirs = spark.sql(running.lower(node, Sources(("plain_rows",)))).toArrow()
    table, unread = tuples.read([str(path) for path in segments])
    ours = reduce_epochs(tuples.node, table, running.TASKS)
    assert _shown(ours) == _shown(theirs)
    assert bool(ours.num_rows) == bool(rows)
    theirs_unread = counts.total().undecodable
    # Spark evaluates a function of the condition again in the columns, and counts it twice.
    assert unread.undecodable.keys() == theirs_unread.keys()
    assert all(count <= theirs_unread[name] for name, count in unread.undecodable.items())


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT tb, host, count(*) FROM TCP GROUP BY time/10 as tb, {HOST} as host {CLOSING}",
        "SELECT tb, srcIP, host, avg(len) FROM TCP"
        f" GROUP BY time/10 as tb, srcIP, {HOST} as host {CLOSING}",
        "SELECT tb, srcIP, host, min(destIP) FROM TCP"
        f" GROUP BY time/10 as tb, srcIP, {HOST} as host {CLOSING}",
        "SELECT tb, srcIP, host, count_distinct(destIP) FROM TCP"
        f" GROUP BY time/10 as tb, srcIP, {HOST} as host {CLOSING}",
    ],
)
def test_what_it_does_not_know_is_left_to_spark(query: str) -> None:
    assert fold_input(_node(_program(query))) is None


def test_ends_of_rows_that_several_columns_order_are_left_to_spark() -> None:
    program = _program(
        "Query r: SELECT time, time/60 as tb, srcIP, len FROM IP;"
        f" Query s: SELECT tb, srcIP, first(len) as f FROM r GROUP BY tb, srcIP {CLOSING}"
    )
    assert fold_input(_node(program)) is None
