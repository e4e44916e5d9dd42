"""Partial tuples merged with numpy equal Spark's result, down to the task of each group."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.running.reduce import is_reducible, needed_columns, part_of, reduce_epochs
from gscope.engine.spark.sql import running
from gscope.engine.spark.sql.inputs import Sources
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program, RunningNode

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

WRAPS = (1 << 63) - 2
SMALL = ("vlan", "ethertype", "srcPort")
"""Keys that LFTAs hold in 32 bits."""
CLOSING = "CLOSING_WHEN count(*) = 0"
QUERIES = [
    "SELECT tb, vlan, ethertype, count(*) as c, max(caplen) as l, running_sum(ttl) as n FROM IP"
    f" GROUP BY time/10 as tb, vlan, ethertype {CLOSING}",
    "SELECT tb, srcIP, srcPort, sum(window) as s, count(window) as c, min(ttl) as l,"
    " max(timestamp) as m,"
    " or_aggr(flags) as o, and_aggr(flags) as a, xor_aggr(flags) as x, running_count(*) as n,"
    f" sum_of_dups(sequence_number) as d FROM TCP GROUP BY time/10 as tb, srcIP, srcPort {CLOSING}",
    "SELECT tb, srcIP, first(window) as f, last(window) as l, last(time) as t, count(*) as c,"
    " running_count(*) as n"
    f" FROM TCP GROUP BY time/10 as tb, srcIP {CLOSING}",
    f"SELECT tb, sum_of_dups(destIP) as d FROM TCP GROUP BY time/10 as tb {CLOSING}",
]


def program(text: str) -> Program:
    return compile_queries([QueryText(text, "q")], CompileContext(("a",))).program


def node_of(made: Program) -> RunningNode:
    (node,) = made.nodes
    assert isinstance(node, RunningNode)
    return node


def partial_tuples(made: Program, rows: int, seed: int) -> pa.Table:
    chance = random.Random(seed)
    columns = {}
    for column in made.lftas[0].stream_schema.columns:
        values: list[Any] = [chance.choice([0, 1, -1, 7, WRAPS]) for _ in range(rows)]
        kind = pa.int64()
        if column.name in SMALL:
            values = [value & 0xFFF for value in values]
            kind = pa.int32()
        if column.type.name == "IP":
            values = [bytes(10) + bytes([255, 255, 10, 0, 0, v & 7]) for v in values]
            kind = pa.binary(16)
        if column.is_nullable:
            values = [chance.choice([value, value, None]) for value in values]
        columns[column.name] = pa.array(values, kind)
    return pa.table(columns)


def _read(spark: SparkSession, path: Path, tuples: pa.Table) -> DataFrame:
    """Return a table as the HFTA job reads segments: with 64-bit integers, however stored."""
    types = {pa.binary(16): "BINARY"}
    schema = ", ".join(f"`{f.name}` {types.get(f.type, 'BIGINT')}" for f in tuples.schema)
    return spark.read.schema(schema).parquet(str(path))


def shown(table: pa.Table) -> list[tuple[Any, ...]]:
    rows = []
    for row in table.to_pylist():
        sets = {k: sorted(set(v), key=repr) if isinstance(v, list) else v for k, v in row.items()}
        rows.append(tuple(sets[name] for name in sorted(sets)))
    return sorted(rows, key=repr)


@pytest.mark.spark
@pytest.mark.parametrize("text", QUERIES)
def test_it_gives_what_spark_gives(text: str, tmp_path: Path, spark: SparkSession) -> None:
    made = program(text)
    node = node_of(made)
    assert is_reducible(node)
    tuples = partial_tuples(made, 300, 1)
    pq.write_table(tuples, tmp_path / "s.parquet")
    _read(spark, tmp_path / "s.parquet", tuples).createOrReplaceTempView("partials")
    theirs = spark.sql(running.lower(node, Sources(("partials",)))).toArrow()
    ours = reduce_epochs(node, tuples.select(needed_columns(node)), running.TASKS)
    assert sorted(ours.column_names) == sorted(theirs.column_names)
    assert shown(ours) == shown(theirs)
    assert {f.name: f.type for f in ours.schema} == {
        f.name: f.type if not pa.types.is_list(f.type) else pa.list_(f.type.value_type)
        for f in theirs.schema
    }


@pytest.mark.parametrize("text", QUERIES)
def test_the_parts_of_tasks_are_the_whole(text: str) -> None:
    made = program(text)
    node, tuples = node_of(made), partial_tuples(made, 300, 2)
    whole = reduce_epochs(node, tuples, running.TASKS)
    parts = [part_of(node, tuples, running.TASKS, part) for part in range(running.TASKS)]
    reduced = [reduce_epochs(node, part, running.TASKS) for part in parts]
    for number, part in enumerate(reduced):
        assert set(part["kb"].to_pylist()) <= {number}
    assert shown(pa.concat_tables(reduced)) == shown(whole)


@pytest.mark.parametrize("text", QUERIES)
def test_of_no_tuples_there_are_no_rows(text: str) -> None:
    made = program(text)
    reduced = reduce_epochs(node_of(made), partial_tuples(made, 0, 1), running.TASKS)
    assert reduced.num_rows == 0


@pytest.mark.parametrize(
    "query",
    [
        f"SELECT tb, avg(len) FROM IP GROUP BY time/10 as tb {CLOSING}",
        f"SELECT tb, min(srcIP) FROM IP GROUP BY time/10 as tb {CLOSING}",
        f"SELECT tb, interface, count(*) FROM IP GROUP BY time/10 as tb, interface {CLOSING}",
        f"SELECT tb, count_distinct(srcIP) FROM IP GROUP BY time/10 as tb {CLOSING}",
        "SELECT tb, running_count(*) FROM TCP WHERE str_regex_match(TCP_data, 'a+')"
        f" GROUP BY time/10 as tb {CLOSING}",
    ],
)
def test_what_is_more_than_a_merge_is_left_to_spark(query: str) -> None:
    assert not is_reducible(node_of(program(query)))
