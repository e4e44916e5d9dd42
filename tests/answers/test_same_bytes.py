"""A replay gives the same bytes whatever its timing: the rows of an answer, and their order."""

from __future__ import annotations

import io
import random
from dataclasses import asdict, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest
from tests.golden.cases import all_cases
from tests.golden.driver import BACKLOG, CRASHING, RESTLESS, Job, Variation, capture
from tests.support.long_form import cases

from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.cli.delivery.stream_reader import order_column
from gscope.cli.delivery.stream_rows import StreamDelivery
from gscope.cli.sinks.replay_files import FolderSink, StreamSink
from gscope.engine.spark import evaluation
from gscope.engine.storage.commits import CommitLog
from gscope.engine.watermarks import release_size
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import StreamInput
from gscope.queries.streams.messages import Batch, EndOfStream, Heartbeat
from gscope.queries.streams.process_events import CommittedOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    import pyarrow as pa
    from pyspark.sql import SparkSession

    from gscope.cli.delivery.delivery import Sink
    from gscope.engine.steps.steps import Steps
    from gscope.engine.storage.commits import Commit, Output
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

CASES = {case.name: case for case in all_cases()}
WHOLE = Variation("whole")
PIECES = replace(RESTLESS, name="pieces", chunks=40, seed=5)
KINDS = ("csv", "ndjson", "parquet", "arrow")


class AllKinds:
    """A sink for each format of files, and standard output."""

    def __init__(self, folder: Path, queries: Sequence[str]) -> None:
        self.folder = folder
        self.stdout = io.BytesIO()
        folders = [FolderSink(folder / kind, kind, queries) for kind in KINDS]
        self._sinks: list[Sink] = [*folders, StreamSink(self.stdout, "ndjson", queries)]

    def begin(self, query: str, schema: pa.Schema) -> None:
        for sink in self._sinks:
            sink.begin(query, schema)

    def write(self, query: str, table: pa.Table) -> None:
        for sink in self._sinks:
            sink.write(query, table)

    def settle(self, *, is_last: bool) -> dict[str, Any] | None:
        for sink in self._sinks:
            sink.settle(is_last=is_last)
        return None

    def publish(self) -> None: ...

    def close(self, *, is_complete: bool) -> None:
        for sink in self._sinks:
            sink.close(is_complete=is_complete)

    def contents(self) -> dict[str, bytes]:
        files = (path for path in self.folder.rglob("*") if path.is_file())
        return {"-": self.stdout.getvalue(), **{path.name: path.read_bytes() for path in files}}


class Delivering(Job):
    """A job whose commits are delivered as they come, as those of a replay are."""

    def __init__(self, answers: Delivery, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._answers = answers

    def on_recovered(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            self._answers.on_commit(commit.step, _reported(commit.outputs))

    def on_committed(self, step: int, outputs: Sequence[Output], steps: Steps) -> None:
        bounds = steps.output_bounds()
        self._answers.on_commit(step, _reported(outputs), bounds)


def _reported(outputs: Sequence[Output]) -> list[CommittedOutput]:
    return [CommittedOutput(**asdict(output)) for output in outputs]


def deliver_streams(
    program: Program, messages: Sequence[Message], log: Path, answers: Delivery, seed: int
) -> None:
    """Deliver the results that are streams in portions of random size."""
    chance = random.Random(seed)
    for query, source in program.results:
        if not isinstance(source, StreamInput):
            continue
        (stream,) = program.lfta(source.lfta).streams
        outlet = StreamDelivery(query, order_column(program.schema(query)), StreamPosition())
        for message in (m for m in messages if m.stream == stream):
            match message:
                case Batch():
                    outlet.add(message, partial(pq.read_table, log / message.path))
                case Heartbeat():
                    outlet.raise_bound({p.column: p.bound for p in message.punctuations})
                case EndOfStream():
                    outlet.has_ended = True
            if outlet.has_ended or chance.random() < 0.3:
                rows = [(query, list(outlet.let_go() or ()))]
                answers.on_rows(rows, {stream: outlet.position}, lambda _: None)


def delivered(
    name: str,
    variation: Variation,
    session: SparkSession | None,
    folder: Path,
    text: str | None = None,
) -> dict[str, bytes]:
    """Return the bytes of the answers to a case, in all formats, by name.

    Args:
        text: queries over the packets of the case, in place of its own.
    """
    case = CASES[name]
    context = CompileContext(tuple(case.files), is_repeatable=True, is_interleaved=True)
    program = case.program(case.files)
    if text is not None:
        program = compile_queries([QueryText(text, "test.gsql")], context).program
    messages = capture(program, case.files, variation, folder / "log")
    sink = AllKinds(folder / "out", [query for query, _ in program.results])
    outputs = CommitLog(folder / "job").outputs
    answers = Delivery(program, outputs, sink, is_interleaved=len(program.results) > 1)
    answers.begin()
    ways: list[Callable[[], None]] = [
        partial(deliver_streams, program, messages, folder / "log", answers, variation.seed),
        Delivering(answers, program, messages, folder, session, variation).run,
    ]
    for deliver in ways[: 1 + program.needs_spark][:: 1 if variation is WHOLE else -1]:
        deliver()
    answers.finish()
    sink.close(is_complete=True)
    contents = sink.contents()
    assert len(contents) == 1 + len(KINDS) * len(program.results)
    assert all(contents.values())
    return contents


def test_a_selection_in_a_pipe_or_a_file_is_the_same_in_any_portions(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    expected = delivered("selection", WHOLE, None, tmp_path_factory.mktemp("whole"))
    for variation in (PIECES, CRASHING):
        found = delivered("selection", variation, None, tmp_path_factory.mktemp("varied"))
        assert found == expected


WITHOUT_TIME = """
Query rows: SELECT srcIP, destPort, len FROM UDP WHERE len < 90;
Query computed: SELECT destPort, pow(len, 2) as squared FROM first.UDP WHERE len > 60;
Query groups: SELECT srcIP, count(*) as packets, max(len) as longest
  FROM UDP GROUP BY time/5 as tb, srcIP;
Query chosen: SELECT packets, srcIP FROM groups WHERE packets > 1;
Query lefts: SELECT a.srcPort, b.destPort, b.len FROM second.UDP a LEFT JOIN third.UDP b
  ON a.srcPort = b.srcPort AND a.time = b.time;
Query pairs: SELECT a.srcPort, a.len, b.len FROM second.UDP a FULL JOIN third.UDP b
  ON b.time BETWEEN a.time - 2 AND a.time + 3 AND a.srcPort = b.srcPort;
Query ports: SELECT destPort, count(*) as packets FROM UDP GROUP BY destPort;
Query seen: SELECT srcIP, len FROM second.UDP
"""


@pytest.mark.spark
@pytest.mark.slow
def test_rows_without_a_time_come_in_the_order_of_a_hidden_one(
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """A merge, computed rows, rows chosen from groups, two joins, a whole input, and a stream."""

    def found(variation: Variation) -> dict[str, bytes]:
        folder = tmp_path_factory.mktemp(variation.name)
        return delivered("merged_selection", variation, spark, folder, WITHOUT_TIME)

    expected = found(WHOLE)
    header = expected["pairs.csv"].splitlines()[0]
    assert header == b"srcPort,len,len_2"
    assert found(replace(CRASHING, chunks=3, crashes=1)) == expected


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    "name", cases(["merged_selection", "heaviest"], long=["talkers", "tcp_flows"])
)
def test_steps_batches_tables_and_crashes_do_not_show_in_the_bytes(
    name: str,
    spark: SparkSession,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A merge, aggregations over each other, a running aggregation, and flows."""
    expected = delivered(name, WHOLE, spark, tmp_path_factory.mktemp("whole"))
    assert delivered(name, PIECES, spark, tmp_path_factory.mktemp("pieces")) == expected
    monkeypatch.setattr(evaluation, "SMALL_STEP_ROWS", 0)
    monkeypatch.setattr(evaluation, "BRANCH_ROWS", 1)
    monkeypatch.setattr(evaluation, "MAX_BRANCHES", 4)
    monkeypatch.setattr(release_size, "MAX_STEP_ROWS", 40)
    assert delivered(name, BACKLOG, spark, tmp_path_factory.mktemp("large")) == expected
