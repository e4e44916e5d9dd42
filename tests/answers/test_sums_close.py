"""Loss adds up.

Every packet is in an answer or in a counter that says why not, whatever goes wrong at once. Tables
of a few slots, a log with room for a part, a job that comes too rarely, packets that step back,
packets cut off.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pyarrow.compute as pc
import pytest
from tests.capture.replay.test_replay_capture import write_pcap
from tests.reference.reference import read_raw

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.process.observers import CaptureObservers
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import SECOND_NS, CaptureSettings, InterfaceSettings
from gscope.capture.sources.synthetic import source as synthetic
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.steps.batch_leases import leased_batches, without_shed
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import CommitLog
from gscope.engine.storage.outputs import read_output
from gscope.queries.compile import CompileContext, QueryText, compile_queries

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.queries.plan.program import Program
    from gscope.queries.streams.process_events import CaptureProgress

FLOWS = """SELECT tb, srcIP, destIP, srcPort, count(*) AS cnt FROM IP
GROUP BY time/5 AS tb, srcIP, destIP, srcPort"""
LINKS = ("one", "two")
SKEW_NS = SECOND_NS
SEED = 11


class Job:
    """What the HFTA job does, called when it is its turn."""

    def __init__(self, program: Program, log: StreamLog, spark: SparkSession, folder: Path) -> None:
        self.answered_packets = 0
        self.steps = Steps(program)
        self._log = log
        self._commits = CommitLog(folder / "job")
        self._evaluator = Evaluator(ReadySpark(spark), program, folder / "log", self._commits)
        self._cursors = dict.fromkeys(self.steps.streams, 0)

    def work(self) -> None:
        """Answer all that is released."""
        while messages := self._log.read(self._cursors, timeout_s=0):
            self.steps.on_messages(messages)
            self._cursors |= {m.stream: m.sequence + 1 for m in messages}
        while (step := self.steps.next()) is not None:
            step = without_shed(
                step, self.steps, self._log.lease("job", leased_batches(step, self.steps))
            )
            if step.reads_rows:
                evaluation = self._evaluator.run(step)
                self.steps.on_evaluated(evaluation)
                self._commits.publish(evaluation.outputs)
                for output in evaluation.outputs:
                    for table in read_output(self._commits.outputs / output.path, (), output.files):
                        self.answered_packets += pc.sum(table["cnt"]).as_py()
            self._log.acknowledge("job", self.steps.needed())


def captures(folder: Path) -> dict[str, Path]:
    """Two links; on the second some packets step back by too much and some are cut off."""
    one, two = folder / "one.pcap", folder / "two.pcap"
    profile = synthetic.TrafficProfile(seed=SEED, packets_per_second=150.0, flows=300)
    synthetic.write_pcap(profile, one, 6000)
    numbers = random.Random(SEED)
    packets = []
    for time_ns, _, data in read_raw(one):
        kind = numbers.random()
        if kind < 0.02:
            packets.append((time_ns - 3 * SKEW_NS, data))
        else:
            packets.append((time_ns, data[: 14 + 6] if kind < 0.04 else data))
    write_pcap(two, packets)
    return {"one": one, "two": two}


@pytest.mark.spark
@pytest.mark.parametrize("log_bytes", [40_000, 1 << 30])
def test_every_packet_is_in_an_answer_or_in_a_counter(
    log_bytes: int, spark: SparkSession, tmp_path: Path
) -> None:
    files = captures(tmp_path)
    program = compile_queries([QueryText(FLOWS, "flows")], CompileContext(LINKS)).program
    settings = CaptureSettings(
        tuple(InterfaceSettings(name, (str(files[name]),), SKEW_NS) for name in LINKS),
        heartbeat_every_tick=True,
        table_slots=16,
        output_rows=64,
    )
    specs = [StreamSpec.from_lfta(lfta, name) for lfta in program.lftas for name in LINKS]
    budget = ShedOldest(log_bytes, reserve_bytes=0)
    log = StreamLog(tmp_path / "log", specs, consumers=[Consumer("job")], budget=budget)
    job = Job(program, log, spark, tmp_path)
    beats = 0

    def on_progress(_: CaptureProgress) -> None:
        nonlocal beats
        beats += 1
        if beats % 17 == 0:
            job.work()

    summary = replay_capture(
        program, settings, log, observers=CaptureObservers(on_progress=on_progress)
    )
    job.work()
    stats, totals = log.stats, log.totals
    log.close()

    for interface in summary.interfaces:
        undecoded = sum(interface.malformed.values()) + sum(interface.unsupported.values())
        assert interface.received == (
            interface.dropped
            + interface.filtered
            + interface.shed
            + interface.late
            + undecoded
            + interface.accepted
            + interface.unread
        )
    two = summary.interfaces[1]
    assert two.late > 50
    assert sum(two.malformed.values()) > 50
    for stream, counters in summary.lftas.items():
        assert counters["tuples_out_total"] == totals[stream].tuples_total
        assert counters["evicted_groups_total"] > 0
    assert stats.waiting_tuples == 0
    assert stats.tuples_total == stats.released_tuples_total + stats.shed_tuples_total
    assert (stats.shed_tuples_total > 0) == (log_bytes < 1 << 20)
    late = sum(operator.late_tuples for operator in job.steps.operators.values())
    assert late == 0
    taken = sum(counters["tuples_in_total"] for counters in summary.lftas.values())
    assert taken == job.answered_packets + stats.shed_packets_total
    assert job.answered_packets > 0
