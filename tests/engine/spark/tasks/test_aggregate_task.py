"""A plain merge gives what Spark's own aggregation gives, and takes only what is plain."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.engine.spark.sql import aggregation
from gscope.engine.spark.sql.finishers import register_finishers
from gscope.engine.spark.sql.inputs import Sources
from gscope.engine.spark.tasks.aggregate_task import (
    MergeTask,
    PartialMerge,
    plain_merge,
)
from gscope.engine.spark.tasks.task import FileTask, run_tasks
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import AggregationNode, Program, QueryInput

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.expressions.schema import ColumnSchema

WRAPS = (1 << 63) - 2
QUERY = (
    "SELECT srcIP as who, tb, interface, count(*) as cnt, sum(len) as bytes, max(window) as most,"
    " min(window) as least FROM TCP GROUP BY time/10 as tb, srcIP, interface"
)


def program(text: str) -> Program:
    return compile_queries([QueryText(text, "q")], CompileContext(("a", "b"))).program


def node(text: str) -> AggregationNode:
    (made,) = program(text).nodes
    assert isinstance(made, AggregationNode)
    return made


def asked(text: str) -> PartialMerge | None:
    return plain_merge(node(text), program(text).lftas[0].stream_schema)


def merge(text: str = QUERY) -> PartialMerge:
    made = asked(text)
    assert made is not None
    return made


def segment(path: Path, seed: int, epochs: tuple[int, ...]) -> str:
    """Partial tuples as an LFTA writes them, few keys, some NULL, some that overflow."""
    chance = random.Random(seed)
    rows = 400
    names = pa.array([b"a"])
    table = pa.table(
        {
            "tb": pa.array([chance.choice(epochs) for _ in range(rows)], pa.int64()),
            "srcIP": pa.array([bytes(15) + bytes([chance.randrange(5)]) for _ in range(rows)]).cast(
                pa.binary(16)
            ),
            "count0": pa.array([chance.randrange(9) for _ in range(rows)], pa.int64()),
            "sum1": pa.array([chance.choice([1, 7, WRAPS]) for _ in range(rows)], pa.int64()),
            "max2": pa.array([chance.choice([None, 3, -5]) for _ in range(rows)], pa.int64()),
            "min3": pa.array([chance.choice([None, 3, -5]) for _ in range(rows)], pa.int64()),
            "interface": pa.DictionaryArray.from_arrays(pa.array([0] * rows, pa.int32()), names),
        }
    )
    pq.write_table(table, path, compression="none", use_dictionary=["interface"])
    return str(path)


def merged(task: MergeTask) -> pa.Table:
    """The rows that a task writes, done in this process."""
    written: list[pa.Table] = []
    task.run(written.append)
    return pa.concat_tables(written)


def rows(table: pa.Table) -> list[tuple[object, ...]]:
    named = table.to_pydict()
    return sorted(zip(*named.values(), strict=True), key=repr)


@pytest.mark.spark
def test_it_gives_what_spark_gives(tmp_path: Path, spark: SparkSession) -> None:
    files = [segment(tmp_path / f"s{n}.parquet", n, (1, 2)) for n in range(3)]
    others = [segment(tmp_path / "t.parquet", 9, (3,))]
    (tmp_path / "out").mkdir()
    tasks = [
        FileTask(MergeTask(merge(), tuple(part)), tmp_path / "out", number, ("tb",))
        for number, part in enumerate((files, others))
    ]
    count = sum(done.file.rows for done in run_tasks(spark, tasks))
    ours = pq.read_table(tmp_path / "out")
    frame = spark.read.parquet(*files, *others)
    frame.createOrReplaceTempView("partial_tuples")
    theirs = spark.sql(aggregation.lower(node(QUERY), Sources(("partial_tuples",)))).toArrow()
    assert count == ours.num_rows == theirs.num_rows
    assert ours.column_names == theirs.column_names
    assert rows(ours) == rows(theirs)


@pytest.mark.spark
@pytest.mark.parametrize(
    "text",
    [
        "SELECT tb * 10 as s, srcIP, avg(len) as mean, count(*) * 8 as bits FROM IP"
        " GROUP BY time/10 as tb, srcIP HAVING count(*) > 600 or avg(len) < 100",
        "SELECT tb, srcIP, count_distinct(window) as windows, count(*) as cnt, max(len) as most"
        " FROM TCP GROUP BY time/10 as tb, srcIP HAVING count_distinct(window) >= 2",
        "SELECT tb, count_dups(window) as dups, count_distinct(window) as windows,"
        " count(window) as cnt FROM TCP GROUP BY time/10 as tb",
        "SELECT tb, count_distinct(srcIP) as hosts FROM TCP GROUP BY time/10 as tb"
        " HAVING count(*) > 0",
        "SELECT tb, srcIP, or_aggr(window) as o, and_aggr(window) as a, xor_aggr(window) as x,"
        " count_distinct(len) as c FROM TCP GROUP BY time/10 as tb, srcIP"
        " HAVING or_aggr(window) > 0",
    ],
)
def test_what_is_computed_of_groups_is_what_spark_computes(
    text: str, tmp_path: Path, spark: SparkSession
) -> None:
    lfta = program(text).lftas[0]
    chance = random.Random(4)
    values = {
        column.name: [
            {"tb": n % 3, "srcIP": bytes(15) + bytes([n % 5])}.get(
                column.name, chance.choice([3, 64, None] if column.is_nullable else [3, 64, WRAPS])
            )
            for n in range(900)
        ]
        for column in lfta.stream_schema.columns
    }
    kinds = {"srcIP": pa.binary(16)}
    table = pa.table({n: pa.array(v, kinds.get(n, pa.int64())) for n, v in values.items()})
    pq.write_table(table, tmp_path / "s.parquet")
    ours = merged(MergeTask(merge(text), (str(tmp_path / "s.parquet"),)))
    spark.read.parquet(str(tmp_path / "s.parquet")).createOrReplaceTempView("partial_tuples")
    theirs = spark.sql(aggregation.lower(node(text), Sources(("partial_tuples",)))).toArrow()
    assert ours.column_names == theirs.column_names
    assert rows(ours) == rows(theirs)


@pytest.mark.spark
@pytest.mark.parametrize(
    "aggregates",
    [
        "var(len) as v, var_pop(len) as p, stddev(window) as s,"
        " stddev_pop(window) as t, count(*) as n",
        "median(len) as m, quantile(len, 0.9) as q, quantile(len, 0) as z, sum(window) as total",
        "first(len) as f, last(len) as l, first(destIP) as i, last(destIP) as k,"
        " max(window) as most",
        "sum_distinct(len) as s, avg_distinct(len) as a, count_distinct(len) as c,"
        " count_dups(len) as d",
        "count_distinct(srcIP) as a, count_distinct(destIP) as b,"
        " count_distinct(len) as c, count(*) as n",
        "approx_count_distinct(destIP) as a, approx_count_distinct(len) as b, count(window) as n",
        "approx_top_k(len, 2) as t, approx_top_k(srcIP, 3) as u, approx_top_k(timestamp, 1) as v",
        "min(srcIP) as a, max(destIP) as b, bool_or(len > 100) as o, bool_and(len > 100) as p",
    ],
)
def test_lists_of_values_give_what_spark_computes(
    aggregates: str, tmp_path: Path, spark: SparkSession
) -> None:
    text = f"SELECT tb, protocol, {aggregates} FROM TCP GROUP BY time/10 as tb, protocol"
    lfta, last = program(text).lftas[0], node(text)
    chance = random.Random(3)
    kinds = {
        GsqlType.IP: pa.binary(16),
        GsqlType.BOOL: pa.bool_(),
    }

    def value(column: ColumnSchema, row: int) -> object:
        if column.name in ("tb", "protocol"):
            return row % 3
        if column.is_nullable and chance.random() < 0.2:
            return None
        number = chance.choice([1, 2, 3, 64, 1500])
        if column.type is GsqlType.IP:
            return number.to_bytes(16)
        return bool(number & 1) if column.type is GsqlType.BOOL else number

    table = pa.table(
        {
            c.name: pa.array(
                [value(c, n) for n in range(700)],
                # The log stores integers in few bits.
                kinds.get(c.type, (pa.int32(), pa.int64())[number % 2]),
            )
            for number, c in enumerate(lfta.stream_schema.columns)
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")
    ours = merged(MergeTask(merge(text), (str(tmp_path / "s.parquet"),)))
    spark.read.parquet(str(tmp_path / "s.parquet")).createOrReplaceTempView("partial_tuples")
    register_finishers(spark, last.aggregates)
    theirs = spark.sql(aggregation.lower(last, Sources(("partial_tuples",)))).toArrow()
    assert ours.column_names == theirs.column_names
    assert [plain(row) for row in rows(ours)] == [plain(row) for row in rows(theirs)]


def plain(row: tuple[object, ...]) -> list[object]:
    """A row with texts as bytes: Spark's functions in Python return them as text."""
    return [value.encode("iso-8859-1") if isinstance(value, str) else value for value in row]


def test_distinct_texts_are_those_of_a_plain_loop(tmp_path: Path) -> None:
    text = "SELECT tb, count_distinct(str_suffix(TCP_data, 2)) as c FROM TCP GROUP BY time/10 as tb"
    columns = program(text).lftas[0].stream_schema.columns
    assert [column.name for column in columns[:1]] == ["tb"]
    chance = random.Random(5)
    texts = [
        chance.choice([None, b"", b"a", b"xa", b"yxa", b"\xff\x00", b"zyx"]) for _ in range(300)
    ]
    epochs = [n % 7 for n in range(300)]
    table = pa.table({"tb": epochs, columns[1].name: pa.array(texts, pa.binary())})
    pq.write_table(table, tmp_path / "s.parquet")
    found = merged(MergeTask(merge(text), (str(tmp_path / "s.parquet"),)))
    suffixes: dict[int, set[bytes]] = {epoch: set() for epoch in epochs}
    for epoch, value in zip(epochs, texts, strict=True):
        if value is not None:
            suffixes[epoch].add(value[-2:])
    assert {row["tb"]: row["c"] for row in found.to_pylist()} == {
        epoch: len(values) for epoch, values in suffixes.items()
    }


PAIRS = (
    "SELECT tb, who, {}"
    " FROM (SELECT S.tb as tb, S.srcIP as who, S.window as w, A.timestamp - S.timestamp as f"
    " FROM packets S JOIN packets A WHERE S.tb = A.tb and S.srcIP = A.srcIP) as pairs"
    " GROUP BY tb, who"
)
PACKETS = (
    "DEFINE { query_name 'packets'; visibility 'internal'; }"
    " SELECT time/10 as tb, timestamp, srcIP, window FROM TCP; "
)


@pytest.mark.spark
@pytest.mark.parametrize(
    "aggregates",
    [
        "count(*) as n, count(f) as there, min(f) as least, max(f) as most",
        "sum(f) as total, avg(f) as mean, stddev(f) as spread, var_pop(f) as v",
        "count(w) as n, sum(w) as total, avg(w) as mean, min(w) as least, xor_aggr(w) as x",
        "count_distinct(w) as windows, count(*) as n, max(w) as most, sum(w + 1) as total",
    ],
)
def test_rows_of_other_queries_are_aggregated_as_spark_does(
    aggregates: str, tmp_path: Path, spark: SparkSession
) -> None:
    made = program(PACKETS + PAIRS.format(aggregates))
    last = made.nodes[-1]
    assert isinstance(last, AggregationNode)
    assert isinstance(last.input, QueryInput)
    chance = random.Random(7)
    floats = (None, 0.0, -0.0, 1e300, -1e300, 0.1, 0.7, 1e-300, float("nan"), float("inf"))
    count = 2000
    table = pa.table(
        {
            "tb": pa.array([n % 3 for n in range(count)], pa.int64()),
            "who": pa.array([bytes(15) + bytes([chance.randrange(40)]) for _ in range(count)]),
            "w": pa.array([chance.choice((None, 3, 64, WRAPS)) for _ in range(count)], pa.int64()),
            "f": pa.array(
                [chance.choice(floats[: 1 + n % 10]) for n in range(count)], pa.float64()
            ),
        }
    )
    pq.write_table(table, tmp_path / "s.parquet")
    plan = plain_merge(last, made.schema(last.input.query))
    assert plan is not None
    ours = merged(MergeTask(plan, (str(tmp_path / "s.parquet"),)))
    spark.read.parquet(str(tmp_path / "s.parquet")).createOrReplaceTempView("pair_rows")
    register_finishers(spark, last.aggregates)
    theirs = spark.sql(aggregation.lower(last, Sources(("pair_rows",)))).toArrow()
    assert ours.column_names == theirs.column_names
    # NaN is not equal to itself, and which zero is the least depends on their order in Spark
    assert repr(rows(ours)) == repr(rows(theirs)).replace("-0.0,", "0.0,")


def test_rows_of_a_query_are_counted_without_its_columns(tmp_path: Path) -> None:
    text = (
        "DEFINE { query_name 'a'; } SELECT len, count(*) AS n FROM TCP GROUP BY len; "
        "DEFINE { query_name 'b'; } SELECT count(*) AS n FROM a"
    )
    made = program(text)
    last = made.nodes[-1]
    assert isinstance(last, AggregationNode)
    plan = plain_merge(last, made.nodes[0].schema)
    assert plan is not None
    files = []
    for number, rows in enumerate((3, 0, 4)):
        files.append(str(tmp_path / f"{number}.parquet"))
        pq.write_table(pa.table({"len": [1] * rows, "n": [7] * rows}), files[-1])
    for some, expected in ((files, 7), (files[:1], 3), (files[1:2], 0), ([], 0)):
        assert merged(MergeTask(plan, tuple(some))).to_pylist() == [{"n": expected}]


def test_a_sum_of_nothing_is_null(tmp_path: Path) -> None:
    table = pa.table({"tb": [1, 1], "sum0": pa.array([None, None], pa.int64()), "count1": [0, 0]})
    pq.write_table(table, tmp_path / "s.parquet")
    text = "SELECT tb, sum(window) as s, count(window) as c FROM TCP GROUP BY time/10 as tb"
    files = (str(tmp_path / "s.parquet"),)
    assert merged(MergeTask(merge(text), files)).to_pylist() == [{"tb": 1, "s": None, "c": 0}]


@pytest.mark.parametrize(
    "text",
    [
        "SELECT tb, last(len / 2.0) FROM IP GROUP BY time/10 as tb",
        "SELECT tb, n / 2.0, sum(n) FROM (SELECT time/10 as tb, len as n FROM IP) as t"
        " GROUP BY tb, n / 2.0",
        "SELECT tb, count(*) FROM IP GROUP BY time/10 as tb"
        " HAVING if_else(count(*) > 1, 'a', 'b') = 'a'",
    ],
)
def test_what_is_more_than_a_merge_is_left_to_spark(text: str) -> None:
    assert asked(text) is None
