"""Answers query sets in this process, in many ways that must all give the same rows.

The capture stage writes its log first; its messages then reach the HFTA operators in chunks of
random size, with a crash at random places if the variation asks for it.
"""

from __future__ import annotations

import random
import shutil
import tempfile
from contextlib import closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from tests.support.shared_spark import plans_interpreted

from gscope.capture.interface.open_log import open_log
from gscope.capture.lfta.interpreter import LftaInterpreter
from gscope.capture.log import merging
from gscope.capture.log.batches import BatchLimits, StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import SECOND_NS, CaptureSettings, InterfaceSettings
from gscope.capture.shedding.settings import SheddingMode
from gscope.capture.shedding.thresholds import initial_sampling
from gscope.cli.delivery.answer_order import AnswerOrder
from gscope.cli.delivery.rows_until_end import RowsUntilEnd
from gscope.engine.sinks.columns import as_text, readable
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.spark import ReadySpark, Spark
from gscope.engine.steps.epoch_thresholds import SampleThresholds
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.engine.storage.outputs import read_output
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import StreamInput
from gscope.queries.plan.row_order import visible
from gscope.queries.plan.sampling.keyed_hash import HashKey
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.scaling import with_rate
from gscope.queries.streams.messages import Batch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from gscope.capture.interface.build_lftas import LftaEngineFactory
    from gscope.capture.interface.summary import CaptureSummary
    from gscope.capture.lfta.columns import ColumnBatch
    from gscope.capture.lfta.runtime import LftaEngine
    from gscope.capture.shedding.settings import SheddingSettings
    from gscope.engine.steps.steps import Step
    from gscope.engine.storage.commits import Output
    from gscope.queries.expressions.schema import Schema
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message
    from gscope.queries.streams.thresholds import ThresholdSchedule

Row = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Variation:
    """One way to compute an answer.

    Attributes:
        chunks: about how many chunks, of random size, messages reach the operators in.
        crashes: how often the HFTA state is thrown away in the middle of a step.
        seed: of everything random.
        is_merged: whether batches that wait are merged, as in a live run whose job is away.
        interprets_plans: whether Spark interprets plans, as it does in a small replay, and does not
            compile them to Java code.
        shedding: how packets are sampled; None to keep all.
        keeps_rest: whether LFTAs that sample keep the packets that are not in the sample instead.
    """

    name: str
    is_interpreted: bool = False
    table_slots: int | None = None
    output_rows: int | None = None
    block_bytes: int | None = None
    batch_rows: int = 1 << 20
    heartbeat_interval_ns: int = SECOND_NS
    heartbeat_every_tick: bool = False
    skew_ns: int = 10 * SECOND_NS
    chunks: int = 1
    crashes: int = 0
    seed: int = 1
    is_merged: bool = False
    interprets_plans: bool = False
    shedding: SheddingSettings | None = None
    keeps_rest: bool = False


COMPILED = Variation("compiled")
INTERPRETED = Variation("interpreted", is_interpreted=True)
FOUR_SLOTS = Variation("four_slots", table_slots=4, output_rows=1, interprets_plans=True)
RESTLESS = Variation(
    "restless",
    table_slots=64,
    output_rows=1,
    block_bytes=4096,
    batch_rows=7,
    heartbeat_interval_ns=7_300_000_001,
    heartbeat_every_tick=True,
    chunks=12,
    interprets_plans=True,
)
CRASHING = Variation(
    "crashing",
    heartbeat_interval_ns=20 * SECOND_NS,
    heartbeat_every_tick=True,
    batch_rows=100,
    chunks=8,
    crashes=3,
    interprets_plans=True,
)
BACKLOG = replace(CRASHING, name="backlog", interprets_plans=False)
VARIATIONS = (COMPILED, INTERPRETED, FOUR_SLOTS, RESTLESS, CRASHING)

AWAY = Variation(
    "away", heartbeat_every_tick=True, batch_rows=50, chunks=4, crashes=1, is_merged=True
)


def answer(
    program: Program,
    files: Mapping[str, Sequence[Path]],
    variation: Variation,
    session: SparkSession | Spark | None,
) -> dict[str, list[Row]]:
    """The rows of each result of ``program`` in the order they were delivered, as text.

    Args:
        files: the captures of each interface.
        session: None if the program needs no job; a ``Spark`` in place of one that is ready.
    """
    folder = Path(tempfile.mkdtemp(prefix="gscope-test-"))
    try:
        messages = capture(program, files, variation, folder / "log")
        answers = {
            query: streamed(program, query, source, messages, folder / "log")
            for query, source in program.results
            if isinstance(source, StreamInput)
        }
        if program.needs_spark:
            assert session is not None
            job = Job(program, messages, folder, session, variation)
            answers |= job.answers()
        return answers
    finally:
        shutil.rmtree(folder)


def capture(
    program: Program, files: Mapping[str, Sequence[Path]], variation: Variation, folder: Path
) -> list[Message]:
    """Run the capture stage into the log ``folder``; all its messages. No packet may be late."""
    messages, summary = replayed(program, files, variation, folder)
    assert all(interface.late == 0 for interface in summary.interfaces)
    return messages


def replayed(
    program: Program, files: Mapping[str, Sequence[Path]], variation: Variation, folder: Path
) -> tuple[list[Message], CaptureSummary]:
    """Run the capture stage into the log ``folder``; all its messages, and what it counted."""
    settings = CaptureSettings(
        tuple(
            InterfaceSettings(
                name,
                tuple(map(str, paths)),
                variation.skew_ns,
                reads_flows=any(lfta.reads_flows for lfta in program.lftas),
            )
            for name, paths in files.items()
        ),
        heartbeat_interval_ns=variation.heartbeat_interval_ns,
        heartbeat_every_tick=variation.heartbeat_every_tick,
        table_slots=variation.table_slots,
        output_rows=variation.output_rows,
        block_bytes=variation.block_bytes,
        batch_rows=variation.batch_rows,
        shedding=variation.shedding,
    )
    with _opened(folder, program, settings, is_merged=variation.is_merged) as log:
        engines = _interpreters(program, variation) if variation.is_interpreted else None
        summary = replay_capture(program, settings, log, engines=engines)
    for interface in summary.interfaces:
        undecoded = sum(interface.malformed.values()) + sum(interface.unsupported.values())
        counted = interface.accepted + interface.late + interface.shed + undecoded
        assert interface.received == counted + interface.unread + interface.dropped
    return read_log(folder), summary


@contextmanager
def _opened(
    folder: Path, program: Program, settings: CaptureSettings, *, is_merged: bool
) -> Iterator[StreamLog]:
    if not is_merged:
        with closing(open_log(folder, program, settings)) as log:
            yield log
        return
    specs = [StreamSpec.from_lfta(lfta, name) for lfta in program.lftas for name in lfta.interfaces]
    limits = BatchLimits(rows=settings.batch_rows)
    away, budget = Consumer("job"), ShedOldest(8 << 30)
    with (
        patch.object(merging, "FEWEST_PARTS", 3),
        closing(StreamLog(folder, specs, consumers=[away], limits=limits, budget=budget)) as log,
    ):
        yield log
        log._merger.wait()


def streamed(
    program: Program,
    query: str,
    source: StreamInput,
    messages: Iterable[Message],
    log_folder: Path,
) -> list[Row]:
    """The rows of a result that is the stream of an LFTA."""
    lfta = program.lfta(source.lfta)
    tables = (
        pq.read_table(log_folder / message.path)
        for message in messages
        if isinstance(message, Batch) and message.stream in lfta.streams
    )
    return delivered(program, query, tables)


def delivered(program: Program, query: str, tables: Iterable[pa.Table]) -> list[Row]:
    """The rows of a result as delivery chooses and orders them, given those of all steps."""
    schema, order = visible(program.schema(query)), AnswerOrder.of(program, query)
    if order.is_at_end:
        until_end = RowsUntilEnd(order.keys, order.limit)
        for table in tables:
            until_end.add(table)
        tables = until_end.rest()
    rows = [row for table in tables for row in rows_of(table.select(schema.names), schema)]
    return rows[: order.limit]


def rows_of(table: pa.Table, schema: Schema) -> list[Row]:
    """Rows as a reader of CSV sees them; numbers with a point in their shortest exact form."""
    shown = readable(table, schema)
    columns = []
    for column in schema.columns:
        values = shown[column.name].combine_chunks()
        if column.type is GsqlType.FLOAT:
            texts = [None if value is None else repr(value) for value in values.to_pylist()]
        else:
            texts = as_text(values).to_pylist()
        columns.append(["" if text is None else text for text in texts])
    return list(zip(*columns, strict=True))


def _interpreters(program: Program, variation: Variation) -> LftaEngineFactory:
    sampling = initial_sampling(program, variation.shedding)
    interpreter = _OfTheRest if variation.keeps_rest else LftaInterpreter

    def make(interface: str, emit: Callable[[str, ColumnBatch], None]) -> LftaEngine:
        return interpreter(program.lftas, interface, emit, groups=50, sampling=sampling)

    return make


class _OfTheRest(LftaInterpreter):
    """Keeps what a sample leaves out: with the sample, that is all packets."""

    def is_kept(self, hashed: int, threshold: int) -> bool:
        return not super().is_kept(hashed, threshold)


class Job:
    """The HFTA job without its process.

    Feeds messages to steps and now and then forgets everything.
    """

    def __init__(
        self,
        program: Program,
        messages: Sequence[Message],
        folder: Path,
        session: SparkSession | Spark,
        variation: Variation,
    ) -> None:
        rate = 1.0 if variation.shedding is None else variation.shedding.rate
        self._program = with_rate(program, rate)
        self._messages = messages
        self._log_folder = folder / "log"
        self._job_folder = folder / "job"
        self._spark: Spark = ReadySpark(session) if isinstance(session, SparkSession) else session
        self._variation = variation
        self._random = random.Random(variation.seed)
        self._crashes_left = variation.crashes
        self.trimmed = 0

    def run(self) -> None:
        """Run to the end, through all crashes."""
        is_interpreted = self._variation.interprets_plans
        with plans_interpreted(self._spark.session) if is_interpreted else nullcontext():
            while not self._run():
                pass

    def answers(self) -> dict[str, list[Row]]:
        """Run to the end, through all crashes; the rows of every result."""
        self.run()
        commits = CommitLog(self._job_folder)
        tables: dict[str, list[pa.Table]] = {
            query: []
            for query, source in self._program.results
            if not isinstance(source, StreamInput)
        }
        for commit in commits.recover():
            for output in commit.outputs:
                order = AnswerOrder.of(self._program, output.query)
                path = commits.outputs / output.path
                tables[output.query] += read_output(
                    path, order.temporal, output.files, keys=order.keys
                )
        return {query: delivered(self._program, query, each) for query, each in tables.items()}

    def _run(self) -> bool:
        """From the last commit to the end (True) or to a crash (False)."""
        commits = CommitLog(self._job_folder)
        evaluator = Evaluator(self._spark, self._program, self._log_folder, commits)
        steps = Steps(self._program, samples=self._samples())
        done = commits.recover()
        self.on_recovered(done)
        if done:
            steps.restore(done[-1].step, done[-1].operators, done[-1].partitioning)
        needed = steps.needed()
        waiting = [m for m in self._messages if m.sequence >= needed.get(m.stream, m.sequence + 1)]
        largest = max(1, 2 * len(self._messages) // self._variation.chunks)
        while not steps.is_finished:
            step = steps.next()
            if step is None:
                assert waiting, "messages ran out before the end of all streams"
                size = self._random.randint(1, largest)
                steps.on_messages(waiting[:size])
                waiting = waiting[size:]
            elif (step.reads_rows or steps.is_finished) and not self._commit(
                step, steps, evaluator, commits
            ):
                return False
        self.trimmed = steps.trimmed_tuples.total()
        return True

    def _samples(self) -> SampleThresholds | None:
        """What follows the load, which a test decides."""
        shedding = self._variation.shedding
        if shedding is None or shedding.mode is not SheddingMode.AUTO:
            return None
        return SampleThresholds(moving_samples(self._program)[0], HashKey.of_seed(shedding.seed))

    def _commit(self, step: Step, steps: Steps, evaluator: Evaluator, commits: CommitLog) -> bool:
        """Evaluate and commit a step as the job does; False where the job died on the way."""
        place = self._random.randrange(3) if self._dies() else None
        evaluation = evaluator.run(steps.sampled(step, self._limits(step, steps)))
        steps.on_evaluated(evaluation)
        incomplete = steps.incomplete.mark()
        if place == 0:
            return False
        commits.write(
            Commit(
                step.number,
                steps.snapshot(),
                evaluation.outputs,
                partitioning=steps.partitioning,
                incomplete=incomplete,
            )
        )
        if place == 1:
            return False
        commits.publish(evaluation.outputs)
        if place == 2:
            return False
        commits.drop_carry(steps.carried())
        self.on_committed(step.number, evaluation.outputs, steps)
        return True

    def _limits(self, step: Step, steps: Steps) -> Mapping[str, ThresholdSchedule]:
        """What a log that is nearly full has removed, once it has leased what a step reads."""
        return {}

    def on_recovered(self, commits: Sequence[Commit]) -> None:
        """What was committed before a crash."""

    def on_committed(self, step: int, outputs: Sequence[Output], steps: Steps) -> None:
        """What a step answered."""

    def _dies(self) -> bool:
        if self._crashes_left and self._random.random() < 0.5:
            self._crashes_left -= 1
            return True
        return False
