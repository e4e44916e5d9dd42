"""The cost of a step of the HFTA job: merge, join and running aggregate by tuples an epoch.

    python -m benchmarks.hfta_steps [--tuples 10000 200000 2000000] [--epochs 5] [--only join …]

Segments like those that LFTAs write are in the page cache. Each epoch's heartbeat releases one
step, from the routing of its messages to the durable commit record, as in the job. Nothing is
captured and nothing delivered. The first epochs warm up Java and are not counted. CPU is that of
this process, Java and Spark's Python workers together.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import RUNS
from benchmarks.segments import PLAIN
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.jvm.class_data_archive import with_archive
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Message, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Lfta, Program

TUPLES = (10_000, 200_000, 2_000_000)
WARM_EPOCHS = 4
HEAP_BYTES = 4 << 30
MUCH_TUPLES = 1_000_000
"""Tuples an epoch from which on Java uses all its compilers, as for captures of gigabytes."""

_KEYS = "protocol, srcIP, destIP, srcPort, destPort"
_FLOWS = "\n".join(
    f"DEFINE {{ query_name 'flow{n}'; }}"
    f" SELECT tb, {_KEYS}, count(*) as cnt FROM main{n}.DataProtocol"
    f" GROUP BY time/10 as tb, {_KEYS};"
    for n in (1, 2)
)
_EQUAL = " and ".join(f"flow1.{k} = flow2.{k}" for k in ("tb", *_KEYS.split(", ")))
QUERIES: Mapping[str, str] = {
    "merge": "\n".join(
        f"Query all{n}: SELECT time, {_KEYS}, len FROM main{n}.DataProtocol;" for n in (1, 2)
    )
    + "Query merged: MERGE all1.time : all2.time FROM all1, all2",
    "join": f"{_FLOWS} Query joined: SELECT flow1.tb, flow1.srcIP, flow1.cnt, flow2.cnt"
    f" OUTER_JOIN FROM flow1, flow2 WHERE {_EQUAL}",
    "join of packets": "Query joined: SELECT S.time, S.srcIP, S.len, R.len"
    " FROM main1.DataProtocol S"
    " LEFT OUTER JOIN main2.DataProtocol R ON S.time = R.time and S.srcIP = R.srcIP"
    " and S.destIP = R.destIP and S.srcPort = R.srcPort and S.destPort = R.destPort",
    "running aggregate": "Query running:"
    f" SELECT tb, {_KEYS}, count(*) as cnt, running_sum(len) as total"
    f" FROM DataProtocol GROUP BY time/10 as tb, {_KEYS} CLOSING_WHEN count(*) = 0",
}
"""Each query reads the streams of two interfaces; an epoch is ten seconds."""

EPOCH_S = 10


@dataclass(frozen=True, slots=True)
class StepCost:
    """The cost of one step, and what it read and answered."""

    wall_s: float
    cpu_s: float
    rows: int


def measure(
    session: SparkSession, name: str, tuples: int, epochs: int, folder: Path
) -> list[StepCost]:
    """Return the costs of ``epochs`` steps of a query with ``tuples`` tuples in each epoch."""
    program = compile_queries(
        [QueryText(QUERIES[name], name)], CompileContext(("main1", "main2"))
    ).program
    commits = CommitLog(folder / "job")
    evaluator = Evaluator(ReadySpark(session), program, folder / "log", commits)
    steps = Steps(program)
    costs = []
    for epoch in range(WARM_EPOCHS + epochs):
        messages = list(epoch_messages(program, tuples, epoch, folder / "log"))
        wall, cpu = time.perf_counter(), cpu_seconds()
        rows = run_steps(steps, messages, evaluator, commits)
        costs.append(StepCost(time.perf_counter() - wall, cpu_seconds() - cpu, rows))
        shutil.rmtree(folder / "log")
    return costs[WARM_EPOCHS:]


def run_steps(
    steps: Steps, messages: list[Message], evaluator: Evaluator, commits: CommitLog
) -> int:
    """Do what the job does between two heartbeats; return the number of rows answered."""
    steps.on_messages(messages)
    rows = 0
    while (step := steps.next()) is not None:
        if step.reads_rows:
            evaluation = evaluator.run(step)
            steps.on_evaluated(evaluation)
            commits.write(Commit(step.number, steps.snapshot(), evaluation.outputs))
            commits.publish(evaluation.outputs)
            commits.drop_carry(steps.carried())
            rows += sum(output.rows for output in evaluation.outputs)
    return rows


def epoch_messages(program: Program, tuples: int, epoch: int, log: Path) -> Iterator[Message]:
    """Write a batch of an epoch for every stream; yield batches and heartbeats."""
    log.mkdir(parents=True)
    streams = [(lfta, stream) for lfta in program.lftas for stream in lfta.streams]
    for number, (lfta, stream) in enumerate(streams):
        rows = tuples // len(streams)
        table = segment(lfta, rows, epoch, seed=epoch * len(streams) + number)
        path = f"{number}.parquet"
        pq.write_table(table, log / path, **PLAIN)
        temporal = [column.name for column in lfta.stream_schema.temporal]
        extents = [
            Extent(name, int(values.min()), int(values.max()))
            for name in temporal
            if (values := table[name].to_numpy()).size
        ]
        size = (log / path).stat().st_size
        yield Batch(stream, 2 * epoch, path, rows, size, tuple(extents))
        bounds = [
            Punctuation(column.name, int(first_value(column, epoch + 1)))
            for column in lfta.stream_schema.temporal
        ]
        yield Heartbeat(stream, 2 * epoch + 1, epoch, 0, tuple(bounds))


def segment(lfta: Lfta, rows: int, epoch: int, seed: int) -> pa.Table:
    """Return rows of a stream: a third as many flows as rows, the same on all streams."""
    random = np.random.default_rng(seed)
    flows = random.integers(0, max(1, rows // 3), rows)
    columns = {c.name: column_values(c, flows, epoch, random) for c in lfta.stream_schema.columns}
    fields = [
        pa.field(c.name, columns[c.name].type, nullable=False) for c in lfta.stream_schema.columns
    ]
    return pa.table(columns, schema=pa.schema(fields))


def column_values(
    column: ColumnSchema, flows: NDArray[np.int64], epoch: int, random: np.random.Generator
) -> pa.Array:
    """Return values that are determined by the flow for keys, and random for other columns."""
    if column.ordering.is_temporal:
        first, last = first_value(column, epoch), first_value(column, epoch + 1)
        return pa.array(random.integers(first, last, flows.size))
    if column.type is GsqlType.IP:
        address = np.zeros((flows.size, 16), np.uint8)
        address[:, 10:12] = 255
        address[:, 12:] = flows.astype(">u4").view(np.uint8).reshape(-1, 4)
        return pa.Array.from_buffers(pa.binary(16), flows.size, [None, pa.py_buffer(address)])
    if column.name.endswith("Port") or column.name == "protocol":
        return pa.array(flows % 50_000)
    return pa.array(random.integers(40, 1500, flows.size))


def first_value(column: ColumnSchema, epoch: int) -> int:
    """Return the first value of a temporal column in an epoch: seconds, or tens of them for tb."""
    begin = 170_000_000 + epoch
    return begin if column.name == "tb" else begin * EPOCH_S


def cpu_seconds() -> float:
    """Return user and system time of this process and all its descendants, also ended ones."""
    ticks = 0
    parents: dict[int, int] = {}
    times: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                stat = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it ended meanwhile
            parents[int(entry.name)] = int(stat[1])
            times[int(entry.name)] = sum(map(int, stat[11:15]))
    for process, spent in times.items():
        ancestor = process
        while ancestor not in (os.getpid(), 0):
            ancestor = parents.get(ancestor, 0)
        ticks += spent if ancestor else 0
    return ticks / os.sysconf("SC_CLK_TCK")


def table(costs: Mapping[tuple[str, int], list[StepCost]]) -> str:
    """Return medians as a Markdown table."""
    lines = [
        "| query | tuples an epoch | rows out | step s | CPU s | µs a tuple | CPU µs a tuple |"
    ]
    lines.append("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (name, tuples), steps in costs.items():
        wall = statistics.median(cost.wall_s for cost in steps)
        cpu = statistics.median(cost.cpu_s for cost in steps)
        rows = statistics.median(cost.rows for cost in steps)
        each = f"{wall / tuples * 1e6:.2f} | {cpu / tuples * 1e6:.2f}"
        lines.append(f"| {name} | {tuples:,} | {rows:,.0f} | {wall:.2f} | {cpu:.2f} | {each} |")
    return "\n".join(lines)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--tuples", type=int, nargs="+", default=TUPLES)
    parser.add_argument("--epochs", type=int, default=RUNS, help="steps that are measured")
    parser.add_argument("--only", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    arguments = parser.parse_args()
    costs: dict[tuple[str, int], list[StepCost]] = {}
    for tuples in arguments.tuples:
        folder = Path(tempfile.mkdtemp(prefix="gscope-steps-"))
        java = JvmSettings(find_java(), heap_bytes=HEAP_BYTES, only_c1=tuples < MUCH_TUPLES)
        with launch_jvm(with_archive(java), folder) as jvm:
            session = start_session(jvm, SessionSettings())
            for name in arguments.only:
                place = folder / name.replace(" ", "-")
                costs[name, tuples] = measure(session, name, tuples, arguments.epochs, place)
                print(f"{name}, {tuples:,} tuples: done", file=sys.stderr)
            stop_session(session, jvm)
        shutil.rmtree(folder)
    print(table(dict(sorted(costs.items()))))


if __name__ == "__main__":
    _main()
