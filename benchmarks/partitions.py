"""One epoch of many partial tuples on one core and on two, whole and in partitions.

    python -m benchmarks.partitions [--tuples 4000000] [--steps 4] [--only having join flow_pairs]
        [--pinned] [--here]

Segments of a million tuples, like those that LFTAs write, are in the page cache. Each contestant is
a process of its own with a Spark session; contestants run in turn. The first step of each warms up
Java and the Python workers and is not counted. A step is an epoch, from the routing of its messages
to the durable commit record, as in the job; ``flow_pairs`` also reads what the step before carried.

The number of cores is the number of tasks at a time; Java and the job use what is left. With
``--pinned``, all processes of a contestant have that many cores. With ``--here``, tasks run in
threads of the job, as before Spark is ready, and there is no Java.

- ``whole``: rows are not divided, so that one task has the epoch
- ``hashed``: 64 partitions, in segments that do not state where they are
- ``labelled``: 64 partitions, in segments whose rows are divided as the log divides them
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from benchmarks.hfta_steps import HEAP_BYTES, cpu_seconds, run_steps
from benchmarks.library_set import LIBRARY
from gscope.capture.log.divided_rows import FIRST_DIVIDED_ROWS, Ranges
from gscope.capture.log.segments import SegmentFolder
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.jvm.class_data_archive import with_archive
from gscope.engine.spark.jvm.gateway import launch_jvm
from gscope.engine.spark.jvm.java import find_java
from gscope.engine.spark.jvm.jvm_settings import JvmSettings
from gscope.engine.spark.jvm.session import SessionSettings, start_session, stop_session
from gscope.engine.spark.spark import ReadySpark, Spark
from gscope.engine.spark.tasks.here import TasksHere
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import CommitLog
from gscope.errors import EngineError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import (
    Batch,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray
    from pyspark.sql import SparkSession

    from gscope.queries.expressions.schema import ColumnSchema
    from gscope.queries.plan.program import Lfta, Program

SEGMENT_ROWS = 1_000_000
ADDED_ROWS = 1 << 14
"""Rows that are added to a growing segment at a time."""
PARTITIONS = 64
FIRST_EPOCH = 2_833_333

_KEYS = "srcIP, destIP, srcPort, destPort"
_EQUAL = " and ".join(f"f1.{key} = f2.{key}" for key in ("tb", *_KEYS.split(", ")))
QUERIES = {
    "having": f"Query busy: SELECT tb, {_KEYS}, count(*) as cnt, sum(len) as bytes FROM one.TCP"
    f" GROUP BY time/60 as tb, {_KEYS} HAVING count(*) > 100",
    "join": "\n".join(
        f"DEFINE {{ query_name 'f{n}'; }} SELECT tb, {_KEYS}, count(*) as cnt FROM {link}.TCP"
        f" GROUP BY time/60 as tb, {_KEYS};"
        for n, link in ((1, "one"), (2, "two"))
    )
    + f" Query joined: SELECT f1.tb, f1.srcIP, f1.cnt, f2.cnt FROM f1, f2 WHERE {_EQUAL}"
    " and f1.cnt > f2.cnt + 50",
}
CONTESTANTS = (("whole", 2), ("hashed", 1), ("hashed", 2), ("labelled", 1), ("labelled", 2))
"""How rows are divided, and the number of cores."""


def text_of(name: str) -> str:
    """Return the text of a query."""
    return QUERIES[name] if name in QUERIES else (LIBRARY / f"published/{name}.gsql").read_text()


def once(
    name: str, how: str, cores: int, tuples: int, steps: int, data: Path, *, is_here: bool
) -> list[dict[str, float]]:
    """Return what each of some steps took, the first not included; ``data`` keeps segments."""
    context = CompileContext(
        ("one", "two"), only=(), partitions=1 if how == "whole" else PARTITIONS
    )
    program = compile_queries([QueryText(text_of(name), name)], context).program
    folder = Path(tempfile.mkdtemp(prefix="gscope-partitions-"))
    try:
        with _no_spark(cores) if is_here else _spark(cores, folder) as spark:
            commits = CommitLog(folder / "job")
            evaluator = Evaluator(spark, program, data, commits, TasksHere(cores))
            operators = Steps(program)
            found = []
            for epoch in range(steps + 1):
                messages = epoch_messages(program, f"{name}-{how}", tuples, epoch, data)
                wall, cpu = time.perf_counter(), cpu_seconds()
                rows = run_steps(operators, messages, evaluator, commits)
                took = {"wall_s": time.perf_counter() - wall, "cpu_s": cpu_seconds() - cpu}
                found.append({**took, "rows": rows})
        return found[1:]
    finally:
        shutil.rmtree(folder)


@contextmanager
def _spark(cores: int, folder: Path) -> Iterator[Spark]:
    java = JvmSettings(find_java(), heap_bytes=HEAP_BYTES, only_c1=False)
    with launch_jvm(with_archive(java), folder) as jvm:
        session = start_session(jvm, SessionSettings(cores=cores))
        yield ReadySpark(session)
        stop_session(session, jvm)


class _NoSpark:
    """A Spark that must not be needed."""

    is_ready = False

    def __init__(self, cores: int) -> None:
        self.cores = cores

    @property
    def session(self) -> SparkSession:
        message = "the query needs Spark"
        raise EngineError(message)


@contextmanager
def _no_spark(cores: int) -> Iterator[Spark]:
    yield _NoSpark(cores)


def epoch_messages(
    program: Program, label: str, tuples: int, epoch: int, data: Path
) -> list[Message]:
    """Return the batches and heartbeats of an epoch, whose segments are written once."""
    folder = data / f"{label}-{tuples}-{epoch}"
    listed = folder.with_suffix(".pickle")
    if not listed.exists():
        folder.mkdir(parents=True)
        messages = list(_written(program, tuples, epoch, folder, label.endswith("labelled")))
        listed.write_bytes(pickle.dumps(messages))
    found: list[Message] = pickle.loads(listed.read_bytes())
    return found


def _written(
    program: Program, tuples: int, epoch: int, log: Path, is_labelled: bool
) -> Iterator[Message]:
    streams = [(lfta, stream) for lfta in program.lftas for stream in lfta.streams]
    for number, (lfta, stream) in enumerate(streams):
        rows = tuples // len(streams)
        sequence = 1000 * epoch
        for first in range(0, rows, SEGMENT_ROWS):
            table = segment(lfta, min(SEGMENT_ROWS, rows - first), rows, epoch, sequence + number)
            yield _stored(lfta, stream, table, sequence, log, is_labelled=is_labelled)
            sequence += 1
        bounds = [Punctuation(c.name, _tb(epoch + 1)) for c in lfta.stream_schema.temporal]
        yield Heartbeat(stream, sequence, epoch, 0, tuple(bounds))


def _stored(
    lfta: Lfta, stream: str, table: pa.Table, sequence: int, log: Path, *, is_labelled: bool
) -> Batch:
    folder = SegmentFolder(log)
    ranges = Ranges.of(lfta.partitioning) if is_labelled else None
    segment = folder.begin(f"{sequence:08d}", table.schema, ranges, FIRST_DIVIDED_ROWS)
    for batch in table.to_batches(ADDED_ROWS):
        folder.add(segment, batch)
    written = folder.finish(segment)
    extents = tuple(
        Extent(c.name, int(values.min()), int(values.max()))
        for c in lfta.stream_schema.temporal
        if (values := table[c.name].to_numpy()).size
    )
    place = f"{log.name}/{written.path}"
    rows, size = table.num_rows, written.size_bytes
    return Batch(stream, sequence, place, rows, size, extents, written.row_groups)


def segment(lfta: Lfta, rows: int, all_rows: int, epoch: int, seed: int) -> pa.Table:
    """Return rows of a stream: a third as many flows as rows in all, the same on all streams."""
    random = np.random.default_rng(seed)
    flows = random.integers(0, max(1, all_rows // 3), rows)
    columns = {c.name: _values(c, flows, epoch, random) for c in lfta.stream_schema.columns}
    fields = [pa.field(name, values.type, nullable=False) for name, values in columns.items()]
    return pa.table(list(columns.values()), pa.schema(fields))


def _values(
    column: ColumnSchema, flows: NDArray[np.int64], epoch: int, random: np.random.Generator
) -> pa.Array:
    if column.ordering.is_temporal:
        return pa.array(np.full(flows.size, _tb(epoch)))
    mixed = (flows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)) >> np.uint64(20)
    if column.type is GsqlType.IP:
        hosts = mixed % np.uint64(200_003 if column.name == "srcIP" else 50_021)
        address = np.zeros((flows.size, 16), np.uint8)
        address[:, 10:12] = 255
        address[:, 12:] = hosts.astype(">u4").view(np.uint8).reshape(-1, 4)
        return pa.Array.from_buffers(pa.binary(16), flows.size, [None, pa.py_buffer(address)])
    if column.name.endswith("Port"):
        ports = mixed % np.uint64(60_013 if column.name == "srcPort" else 103)
        return pa.array(ports.astype(np.int32))
    return pa.array(random.integers(1, 50, flows.size))


def _tb(epoch: int) -> int:
    return FIRST_EPOCH + epoch


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    names = [*QUERIES, "flow_pairs"]
    parser.add_argument("--tuples", type=int, default=4_000_000)
    parser.add_argument("--steps", type=int, default=3, help="steps of a process that are measured")
    parser.add_argument("--rounds", type=int, default=2, help="processes of each contestant")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--data", type=Path, help="folder that keeps segments for further runs")
    parser.add_argument("--contestants", nargs="+", help="such as labelled:2")
    parser.add_argument(
        "--pinned", action="store_true", help="no process of a contestant has more cores"
    )
    parser.add_argument("--here", action="store_true", help="tasks run in threads of the job")
    parser.add_argument("--once", nargs=3, metavar=("QUERY", "HOW", "CORES"))
    arguments = parser.parse_args()
    data = arguments.data or Path(tempfile.mkdtemp(prefix="gscope-segments-"))
    contestants = CONTESTANTS
    if arguments.contestants:
        pairs = [each.split(":") for each in arguments.contestants]
        contestants = tuple((how, int(cores)) for how, cores in pairs)
    if arguments.once:
        name, how, cores = arguments.once
        if arguments.pinned:
            os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: int(cores)])
        found = once(
            name,
            how,
            int(cores),
            arguments.tuples,
            arguments.steps,
            data,
            is_here=arguments.here,
        )
        print(json.dumps(found))
        return
    costs: dict[tuple[str, str, int], list[dict[str, float]]] = {}
    for _ in range(arguments.rounds):
        for name in arguments.only:
            for how, cores in contestants:
                command = [sys.executable, "-m", "benchmarks.partitions", "--once"]
                command += [name, how, str(cores), "--tuples", str(arguments.tuples)]
                command += ["--steps", str(arguments.steps), "--data", str(data)]
                command += ["--pinned"] if arguments.pinned else []
                command += ["--here"] if arguments.here else []
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                costs.setdefault((name, how, cores), []).extend(json.loads(done.stdout))
                load = os.getloadavg()[0]
                print(f"{name}, {how}, {cores}: done at a load of {load:.1f}", file=sys.stderr)
    if arguments.data is None:
        shutil.rmtree(data)
    print("| query | rows | cores | step s | least | CPU s | rows out |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for (name, how, cores), steps in costs.items():
        walls = [step["wall_s"] for step in steps]
        cpu = statistics.median(step["cpu_s"] for step in steps)
        rows = statistics.median(step["rows"] for step in steps)
        middle, least = statistics.median(walls), min(walls)
        print(
            f"| {name} | {how} | {cores} | {middle:.2f} | {least:.2f} | {cpu:.2f} | {rows:,.0f} |"
        )


if __name__ == "__main__":
    _main()
