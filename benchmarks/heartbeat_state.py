"""H1 and H2: peak state of a merge and of a full outer join against the heartbeat interval.

    python -m benchmarks.heartbeat_state [--seconds 120] [--intervals 1 5 10 …] [--only merge]
        [--evaluated 60 0]

There are two busy links of ``--rate`` packets/s each, and a control link that is silent between the
first and the last moment of the trace. The merge takes the packets of all three and counts those of
each flow in buckets of ten seconds. The join pairs the flows of one link and the control link with
those of the other. Everything happens in trace time: the LFTAs write captures into a log, then the
HFTA job's operators get its messages in the order of writing, and each heartbeat is evaluated at
once. The state is what the operators hold back, all of it in segments on disk. Writes
``benchmarks/out/heartbeat_state.csv`` and ``.png``.
"""

from __future__ import annotations

import argparse
import shutil
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from benchmarks.records import write_records
from benchmarks.spark_session import benchmark_session
from gscope.capture.interface.open_log import open_log
from gscope.capture.log.log import read_log
from gscope.capture.replay.replay_capture import replay_capture
from gscope.capture.settings import SECOND_NS, CaptureSettings, InterfaceSettings
from gscope.capture.sources.synthetic.source import TrafficProfile, write_pcap
from gscope.engine.operators.base import pending_input
from gscope.engine.spark.spark import ReadySpark
from gscope.engine.steps.steps import Steps
from gscope.engine.storage.commits import Commit, CommitLog
from gscope.engine.storage.outputs import read_output, remove_output
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from pyspark.sql import SparkSession

    from gscope.engine.steps.steps import Evaluation, Step
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

LINKS = ("main1", "main2", "control")
RATE = 100_000
SECONDS = 120
INTERVALS = (1, 5, 10, 20, 30, 40, 50, 60)
OFF = 0
"""The interval that stands for heartbeats off."""

OUT = Path(__file__).parent / "out"
MB = 1e6

_KEYS = "protocol, srcIP, destIP, srcPort, destPort"
_PACKETS = "\n".join(
    f"Query {n}: SELECT time, {_KEYS} FROM {link}.DataProtocol;"
    for n, link in zip("abc", LINKS, strict=True)
)
_GROUPS = f"GROUP BY time/10 AS tb, {_KEYS}"
_EQUAL = " AND ".join(f"flow1.{key} = flow2.{key}" for key in ("tb", *_KEYS.split(", ")))
QUERIES = {
    "merge": f"{_PACKETS} Query merged: MERGE a.time : b.time : c.time FROM a, b, c;"
    f" Query flows: SELECT tb, {_KEYS}, count(*) AS cnt FROM merged {_GROUPS}",
    "join": f"Query flow1: SELECT tb, {_KEYS}, count(*) AS cnt"
    f" FROM [main1_and_control].DataProtocol {_GROUPS};"
    f" Query flow2: SELECT tb, {_KEYS}, count(*) AS cnt FROM main2.DataProtocol {_GROUPS};"
    f" Query full_flow: SELECT flow1.tb, flow1.srcIP, flow1.cnt AS cnt1, flow2.cnt AS cnt2"
    f" OUTER_JOIN FROM flow1, flow2 WHERE {_EQUAL}",
}
HELD_BACK = {"merge": ("merged",), "join": ("flow1", "flow2", "full_flow")}
"""The operators that wait for other links; groups of an open epoch are not counted."""

COUNTED = {"merge": ("cnt",), "join": ("cnt1", "cnt2")}
"""The columns whose sum is the number of packets."""


@dataclass(frozen=True, slots=True)
class Row:
    """The result of one run.

    Attributes:
        experiment: merge or join.
        interval_s: seconds between heartbeats; 0 for none.
        packets: packets that the LFTAs processed.
        counted_packets: packets counted in the answers; 0 if nothing was evaluated.
        tuples: tuples that the LFTAs emitted.
        peak_tuples: largest number of tuples that waited for heartbeats at any moment: at the
            merge, or at the join and before it.
        peak_bytes: size of their segments.
        peak_step_tuples: largest number of tuples that one step read.
        steps: number of steps evaluated.
        capture_s: seconds that the LFTAs took.
        answer_s: seconds that the operators took.
    """

    experiment: str
    interval_s: int
    packets: int
    counted_packets: int
    tuples: int
    peak_tuples: int
    peak_bytes: int
    peak_step_tuples: int
    steps: int
    capture_s: float
    answer_s: float


class Evaluate(Protocol):
    """Function that evaluates a step and returns the packets that its answers count."""

    def __call__(self, step: Step, steps: Steps) -> int: ...


def run(
    experiment: str,
    interval_s: int,
    captures: dict[str, Path],
    folder: Path,
    session: SparkSession | None,
) -> Row:
    """Capture, answer and measure at one heartbeat interval; ``folder`` is emptied."""
    program = compile_queries(
        [QueryText(QUERIES[experiment], experiment)],
        CompileContext(LINKS, {"main1_and_control": ("main1", "control")}),
    ).program
    settings = CaptureSettings(
        tuple(InterfaceSettings(name, (str(captures[name]),), skew_ns=0) for name in LINKS),
        heartbeat_interval_ns=(interval_s or 1) * SECOND_NS,
        heartbeat_every_tick=True,
        log_bytes=1 << 40,
    )
    log = open_log(folder / "log", program, settings)
    began = time.perf_counter()
    summary = replay_capture(program, settings, log)
    captured = time.perf_counter()
    log.close()
    commits = CommitLog(folder / "job")
    steps = Steps(program)
    evaluate = _by_spark(session, program, commits, folder, COUNTED[experiment])
    messages = read_log(folder / "log")
    if interval_s == OFF:
        # A file shows the next packet, and so the end of a silence, in advance. Live it is
        # unknown.
        messages = [message for message in messages if not isinstance(message, Heartbeat)]
    peak = answer(steps, messages, evaluate, HELD_BACK[experiment])
    row = Row(
        experiment,
        interval_s,
        packets=sum(each.received for each in summary.interfaces),
        capture_s=round(captured - began, 2),
        answer_s=round(time.perf_counter() - captured, 2),
        tuples=summary.log["tuples_total"],
        **peak,
    )
    shutil.rmtree(folder)
    return row


def answer(
    steps: Steps, messages: Iterable[Message], evaluate: Evaluate, operators: Sequence[str]
) -> dict[str, int]:
    """Pass ``messages`` to ``steps`` one by one; return the peak, the steps and their counts."""
    peak = dict.fromkeys(("peak_tuples", "peak_bytes", "peak_step_tuples", "steps"), 0)
    counted = 0
    for message in messages:
        steps.on_messages([message])
        held = [pending_input(steps.operators[query]) for query in operators]
        peak["peak_tuples"] = max(peak["peak_tuples"], sum(each.tuples for each in held))
        peak["peak_bytes"] = max(peak["peak_bytes"], sum(each.size_bytes for each in held))
        while (step := steps.next()) is not None:
            if step.reads_rows:
                peak["steps"] += 1
                tuples = max(work.rows for work in step.works)
                peak["peak_step_tuples"] = max(peak["peak_step_tuples"], tuples)
                counted += evaluate(step, steps)
    return {**peak, "counted_packets": counted}


def _by_spark(
    session: SparkSession | None,
    program: Program,
    commits: CommitLog,
    folder: Path,
    counted: Sequence[str],
) -> Evaluate:
    if session is None:
        return lambda _step, _steps: 0
    from gscope.engine.spark.evaluation import Evaluator

    evaluator = Evaluator(ReadySpark(session), program, folder / "log", commits)

    def evaluate(step: Step, steps: Steps) -> int:
        evaluation = evaluator.run(step)
        steps.on_evaluated(evaluation)
        commits.write(Commit(step.number, steps.snapshot(), evaluation.outputs))
        commits.publish(evaluation.outputs)
        commits.drop_carry(steps.carried())
        return _counted(evaluation, commits, counted)

    return evaluate


def _counted(evaluation: Evaluation, commits: CommitLog, columns: Sequence[str]) -> int:
    import pyarrow.compute as pc

    packets = 0
    for output in evaluation.outputs:
        path = commits.outputs / output.path
        for table in read_output(path, (), output.files):
            packets += sum(pc.sum(table[column]).as_py() or 0 for column in columns)
        remove_output(path)
    return packets


def write_captures(folder: Path, rate: int, seconds: int) -> dict[str, Path]:
    """Write a capture for both main links, and one of two packets for the control link."""
    busy, control = folder / "busy.pcap", folder / "control.pcap"
    profile = TrafficProfile(seed=5, packets_per_second=float(rate))
    write_pcap(profile, busy, rate * seconds)
    with busy.open("rb") as file:
        header = file.read(24)
        record = file.read(16)
        packet = file.read(int.from_bytes(record[8:12], "little"))
    first_s = int.from_bytes(record[:4], "little")
    last = (first_s + seconds).to_bytes(4, "little") + record[4:]
    control.write_bytes(header + record + packet + last + packet)
    return {"main1": busy, "main2": busy, "control": control}


def plot(rows: Sequence[Row], path: Path, title: str) -> None:
    """Plot peak state against interval, one panel for each experiment; off is a horizontal line."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    names = list(dict.fromkeys(row.experiment for row in rows))
    figure, axes = plt.subplots(1, len(names), figsize=(5.5 * len(names), 4.2), squeeze=False)
    captions = {"merge": "H1: merge of packets", "join": "H2: full outer join of flows"}
    for axis, name in zip(axes[0], names, strict=True):
        points = [row for row in rows if row.experiment == name and row.interval_s != OFF]
        seconds = [row.interval_s for row in points]
        axis.plot(seconds, [row.peak_bytes / MB for row in points], "o-", color="tab:blue")
        for row in rows:
            if row.experiment == name and row.interval_s == OFF:
                axis.axhline(row.peak_bytes / MB, color="tab:red", linestyle="--")
                label = "heartbeats off: grows as long as the trace lasts"
                axis.annotate(
                    label,
                    (seconds[0], row.peak_bytes / MB),
                    textcoords="offset points",
                    xytext=(0, -12),
                    color="tab:red",
                    fontsize=8,
                )
        axis.set_title(captions[name])
        axis.set_xlabel("heartbeat interval (s)")
        axis.set_ylabel("peak waiting (MB, on disk)")
        axis.set_xlim(left=0)
        axis.set_ylim(bottom=0)
        axis.grid(visible=True, alpha=0.3)
        most = max(row.peak_bytes for row in rows if row.experiment == name)
        tuples = max(row.peak_tuples for row in rows if row.experiment == name)
        right = axis.secondary_yaxis("right", functions=_scaled(tuples / most * MB / 1e6))
        right.set_ylabel("peak waiting (million tuples)")
    figure.suptitle(title, fontsize=9)
    figure.tight_layout()
    figure.savefig(path, dpi=130)


def _scaled(factor: float):  # type: ignore[no-untyped-def]  # two functions of matplotlib's arrays
    return (lambda y: y * factor, lambda y: y / factor)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=SECONDS, help="seconds of trace")
    parser.add_argument("--rate", type=int, default=RATE, help="packets/s of each busy link")
    parser.add_argument(
        "--intervals", type=int, nargs="+", default=[*INTERVALS, OFF], help="seconds; 0 for off"
    )
    parser.add_argument("--only", nargs="+", choices=list(QUERIES), default=list(QUERIES))
    parser.add_argument(
        "--evaluated",
        type=int,
        nargs="*",
        default=[60, OFF],
        help="intervals at which the merge is evaluated, too",
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.folder) as made:
        folder = Path(made)
        captures = write_captures(folder, options.rate, options.seconds)
        rows: list[Row] = []

        with benchmark_session(folder) as session:
            for experiment in options.only:
                for interval_s in options.intervals:
                    # The merge holds segments of the log, evaluated or not.
                    is_evaluated = experiment != "merge" or interval_s in options.evaluated
                    spark = session if is_evaluated else None
                    row = run(experiment, interval_s, captures, folder / "run", spark)
                    print(row, flush=True)
                    rows.append(row)
                    write_records(rows, OUT / "heartbeat_state.csv")
    title = f"two links of {options.rate:,} packets/s, one silent, {options.seconds} s of trace"
    plot(rows, OUT / "heartbeat_state.png", title)


if __name__ == "__main__":
    _main()
