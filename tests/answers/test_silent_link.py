"""The full outer join of two links and a silent one: it waits for no packet, and is right at every
heartbeat.

flow1 counts what main1 and the control link carry, flow2 what main2 carries. The control link says
nothing at all, nothing that the queries ask for, or one word at the end.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from tests.golden.cases import deal
from tests.golden.driver import Variation, replayed, rows_of
from tests.reference.reference import read_packets, read_raw

from gscope.capture.settings import SECOND_NS
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.engine.spark.evaluation import Evaluator
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import CommitLog
from gscope.engine.storage.outputs import read_output
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    from gscope.engine.storage.commits import Output
    from gscope.engine.watermarks.bounds import Bound
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

pytestmark = pytest.mark.spark

QUERIES = """
DEFINE { query_name 'flow1'; }
SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) as cnt FROM [main1_and_control].DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP, srcPort, destPort;
DEFINE { query_name 'flow2'; }
SELECT tb, protocol, srcIP, destIP, srcPort, destPort, count(*) as cnt FROM main2.DataProtocol
GROUP BY time/10 as tb, protocol, srcIP, destIP, srcPort, destPort;
DEFINE { query_name 'full_flow'; }
SELECT flow1.tb, flow1.protocol, flow1.srcIP, flow1.destIP, flow1.srcPort, flow1.destPort, flow1.cnt, flow2.cnt
OUTER_JOIN FROM flow1, flow2
WHERE flow1.srcIP=flow2.srcIP and flow1.destIP=flow2.destIP and flow1.srcPort=flow2.srcPort
and flow1.destPort=flow2.destPort and flow1.protocol=flow2.protocol and flow1.tb = flow2.tb
"""  # noqa: E501
EPOCH_NS = 10 * SECOND_NS
SKEW_NS = SECOND_NS
SILENCE = ("never", "no_tuple", "one_at_the_end")
ARP = bytes.fromhex("ffffffffffff 020000000001 0806 0001 0800 06 04 0001") + bytes(20)

Row = tuple[str, ...]


@pytest.fixture(scope="module")
def mains(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """Captures of the two links that speak: packets of the same flows, dealt over both."""
    folder = tmp_path_factory.mktemp("mains")
    both = folder / "both.pcap"
    write_pcap(TrafficProfile(seed=11, packets_per_second=20.0, flows=60), both, 1500)
    return deal({"both": [both]}, ("main1", "main2"), folder)


@pytest.mark.parametrize("interval_s", [1, 3, 25])
@pytest.mark.parametrize("silence", SILENCE)
def test_it_is_right_at_every_heartbeat(
    silence: str,
    interval_s: int,
    mains: dict[str, list[Path]],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    files = {**mains, "control": [control_capture(silence, mains, tmp_path)]}
    context = CompileContext(tuple(files), {"main1_and_control": ("main1", "control")})
    program = compile_queries([QueryText(QUERIES, "q.gsql")], context).program
    variation = Variation(
        "beating",
        heartbeat_interval_ns=interval_s * SECOND_NS,
        heartbeat_every_tick=True,
        skew_ns=SKEW_NS,
    )
    messages, _ = replayed(program, files, variation, tmp_path / "log")
    expected = full_flow(files)
    steps_with_rows = 0
    answered: Counter[Row] = Counter()
    for clock_ns, watermark, rows in answers_by_beat(program, messages, spark, tmp_path):
        steps_with_rows += bool(rows)
        answered += Counter(rows)
        closed = {row: count for row, count in expected.items() if int(row[0]) < watermark}
        assert answered == closed
        assert clock_ns is None or watermark >= (clock_ns - SKEW_NS) // EPOCH_NS
    assert answered == expected
    assert steps_with_rows >= 3


def answers_by_beat(
    program: Program, messages: list[Message], spark: SparkSession, folder: Path
) -> Iterator[tuple[int | None, Bound, list[Row]]]:
    """What is newly answered when each heartbeat has come everywhere, with its clock and the
    watermark.

    The last is what the ends of the streams release; it has no clock.
    """
    commits = CommitLog(folder / "job")
    evaluator = Evaluator(ReadySpark(spark), program, folder / "log", commits)
    steps = Steps(program)
    schema = program.schema("full_flow")
    beats = [(place, m) for place, m in enumerate(messages) if isinstance(m, Heartbeat)]
    last = {beat.identity: place for place, beat in beats}
    # The end of a stream has a heartbeat of its own, without information on other streams.
    shared = Counter(beat.identity for _, beat in beats)
    for place, message in enumerate(messages):
        steps.on_messages([message])
        clock_ns = None
        if isinstance(message, Heartbeat):
            is_everywhere = last[message.identity] == place and shared[message.identity] > 1
            clock_ns = message.clock_ns if is_everywhere else None
        is_end = place == len(messages) - 1
        if clock_ns is not None or is_end:
            rows = [
                row
                for output in run_steps(steps, evaluator, commits)
                for table in read_output(commits.outputs / output.path, (), output.files)
                for row in rows_of(table, schema)
            ]
            yield clock_ns, steps.watermarks()["full_flow"], rows


def run_steps(steps: Steps, evaluator: Evaluator, commits: CommitLog) -> Iterator[Output]:
    """Evaluate everything that is released; steps that only move watermarks need no Spark."""
    while (step := steps.next()) is not None:
        if step.reads_rows:
            evaluation = evaluator.run(step)
            steps.on_evaluated(evaluation)
            commits.publish(evaluation.outputs)
            yield from evaluation.outputs


def control_capture(silence: str, mains: dict[str, list[Path]], folder: Path) -> Path:
    """The capture of the control link: its only packet, if any, comes with main1's last."""
    packets: list[tuple[int, int, bytes]] = []
    time_ns, wirelen, data = read_raw(mains["main1"][0])[-1]
    if silence == "no_tuple":
        packets = [(time_ns, len(ARP), ARP)]
    elif silence == "one_at_the_end":
        packets = [(time_ns, wirelen, data)]
    path = folder / "control.pcap"
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 262144, 1))
        for time_ns, wirelen, data in packets:
            seconds, rest = divmod(time_ns, 10**9)
            file.write(struct.pack("<IIII", seconds, rest, len(data), wirelen) + data)
    return path


def full_flow(files: dict[str, list[Path]]) -> Counter[Row]:
    """The rows of the join by brute force."""
    counts = [flow_counts(files, ("main1", "control")), flow_counts(files, ("main2",))]
    return Counter(
        (*flow, *(str(count[flow]) if flow in count else "" for count in counts))
        for flow in counts[0] | counts[1]
    )


def flow_counts(files: dict[str, list[Path]], interfaces: tuple[str, ...]) -> Counter[Row]:
    """Packets of each flow and epoch on some interfaces."""
    packets = [
        packet
        for interface in interfaces
        for path in files[interface]
        for packet in read_packets(path, interface)
        if "ipversion" in packet
    ]
    fields = ("protocol", "srcIP", "destIP", "srcPort", "destPort")
    return Counter(
        (str(packet["time"] // 10), *(str(packet[field]) for field in fields)) for packet in packets
    )
