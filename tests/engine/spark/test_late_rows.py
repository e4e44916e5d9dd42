"""Rows below a watermark when they come are in no answer, and are counted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.golden.driver import rows_of

from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import CommitLog
from gscope.engine.storage.outputs import read_output
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.slicing import Slicing
from gscope.queries.plan.windows.window import SlidingWindow
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SELECTIONS = """
Query a: SELECT time, len FROM one.IP;
Query b: SELECT time, len FROM two.IP;
"""
QUERIES = {
    "merged": "Query merged: MERGE a.time : b.time FROM a, b",
    "slack": "Query slack: MERGE a.time : b.time SLACK 3 FROM a, b",
    "joined": "Query joined: SELECT a.time, a.len, b.len OUTER_JOIN FROM a, b"
    " WHERE a.time = b.time",
    "near": """Query near: SELECT coalesce(a.time, b.time) AS t, a.len, b.len
        FROM a FULL JOIN b ON b.time BETWEEN a.time AND a.time + 5""",
    "near_second": """Query near_second: SELECT coalesce(a.time, b.time) AS t, a.len, b.len
        FROM a RIGHT JOIN b ON a.time BETWEEN b.time AND b.time + 5""",
    "counted": "Query counted: SELECT time, count(*) FROM a GROUP BY time",
    "windows": "Query windows: SELECT max(time), window_end, sum(len*1.0) FROM a [RANGE 7 SLIDE 5]",
    "slices": "Query slices: SELECT max(time), window_end, count(*) FROM a [RANGE 7 SLIDE 5]",
}
SLICING = Slicing.of([SlidingWindow(7, 5)])
TIMES = {
    "merged": [5, 11, 12, 30],
    "slack": [5, 8, 11, 12, 30],
    "joined": [5, 11, 12, 30],
    "near": [5, 8, 12, 30],
    "near_second": [12, 30],
    "counted": [5, 12],
    "windows": [5, 12],
    "slices": [5, 12],
}
LATE = {
    "merged": 2,
    "slack": 1,
    "joined": 2,
    "near": 1,
    "near_second": 2,
    "counted": 2,
    "windows": 2,
    "slices": 2,
}
"""The answers of a side of an interval join are complete later than its input is."""


@pytest.mark.parametrize("query", QUERIES)
def test_late_rows_are_counted_and_in_no_answer(
    query: str, spark: SparkSession, tmp_path: Path
) -> None:
    """Both streams promise 10; then one of them gives rows of 3 and 8 beside one of 12."""
    compiled = compile_queries(
        [QueryText(SELECTIONS + QUERIES[query], "q.gsql")], CompileContext(("one", "two"))
    )
    program = compiled.program
    lftas = {lfta.interfaces[0]: lfta for lfta in program.lftas}
    streams = {interface: lfta.streams[0] for interface, lfta in lftas.items()}
    clocks = {name: lfta.stream_schema.temporal[0].name for name, lfta in lftas.items()}
    log = tmp_path / "log"
    log.mkdir()

    def batch(interface: str, sequence: int, times: list[int]) -> Message:
        stream = streams[interface]
        path = f"{stream}-{sequence}"
        of_time = {"time": times, "max0": times, SLICE: [SLICING.number(t) for t in times]}
        columns = {
            column.name: of_time.get(column.name, pa.array([1] * len(times), kind))
            for column in lftas[interface].stream_schema.columns
            for kind in [pa.float64() if column.type is GsqlType.FLOAT else pa.int64()]
        }
        pq.write_table(pa.table(columns), log / path)
        order = columns[clocks[interface]]
        extents = (Extent(clocks[interface], min(order), max(order)),)
        return Batch(stream, sequence, path, len(times), 0, extents)

    def beat(interface: str, sequence: int, bound: int) -> Message:
        clock = clocks[interface]
        promised = SLICING.number(bound) if clock == SLICE else bound
        return Heartbeat(streams[interface], sequence, 1, 0, (Punctuation(clock, promised),))

    commits = CommitLog(tmp_path / "job")
    evaluator = Evaluator(ReadySpark(spark), program, log, commits)
    steps = Steps(program)
    found: list[tuple[str, ...]] = []
    chunks: list[list[Message]] = [[batch("one", 0, [5]), beat("one", 1, 10)]]
    chunks.append([batch("one", 2, [3, 8, 12]), EndOfStream(streams["one"], 3)])
    if "two" in streams:
        chunks[0].append(beat("two", 0, 10))
        chunks[1] += [batch("two", 1, [11, 30]), EndOfStream(streams["two"], 2)]
    for chunk in chunks:
        steps.on_messages(chunk)
        while (step := steps.next()) is not None:
            if step.reads_rows:
                evaluation = evaluator.run(step)
                steps.on_evaluated(evaluation)
                commits.publish(evaluation.outputs)
                for output in evaluation.outputs:
                    for table in read_output(commits.outputs / output.path, (), output.files):
                        found += rows_of(table, program.schema(query))
    assert sorted(int(row[0]) for row in found) == TIMES[query]
    assert {q: o.late_tuples for q, o in steps.operators.items()}[query] == LATE[query]
    assert steps.is_finished
