"""What trimming costs a row: copies of segments without the rows above falling thresholds.

    python -m benchmarks.sampling.trimming [--segments 8] [--rows 100000] [--rounds 15]

A step reads segments with rows like those that an LFTA evicts (72 bytes in nine columns).
``no fall`` is what a step without a fall is asked about its rows, ``elsewhere`` one whose
thresholds fell in epochs that it does not read. ``nothing left out`` hashes every row and copies
none; ``half`` copies every segment without half of its rows; ``subnets, half`` does so by a term
that is computed from a column. Each figure is the least CPU time of all rounds, which other work on
the machine raises least. Writes ``benchmarks/sampling/trimming.csv``.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.records import write_records
from benchmarks.segments import flow_batch
from gscope.engine.operators.base import Work
from gscope.engine.spark.staging.trimming import Trimming
from gscope.engine.steps.epoch_thresholds import SampleThresholds
from gscope.engine.steps.steps import Step
from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.release import ReleasedInput
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.streams.messages import Batch, Extent
from gscope.queries.streams.thresholds import ThresholdSchedule

if TYPE_CHECKING:
    from collections.abc import Sequence

CSV = Path(__file__).with_name("trimming.csv")
EPOCH = 170_000_000
EPOCH_NS = 10 * 10**9
FLOWS = """SELECT tb, ipversion, protocol, srcIP, destIP, srcPort, destPort, count(*), sum(len) FROM IP
GROUP BY time/10 as tb, ipversion, protocol, srcIP, destIP, srcPort, destPort"""  # noqa: E501
SUBNETS = f"{FLOWS} SAMPLE BY prefix(srcIP, 24)"


@dataclass(frozen=True, slots=True)
class Figure:
    """The cost of one case.

    Attributes:
        case: its name.
        us_per_row: microseconds of CPU for each row that the step reads.
        us_per_step: microseconds of CPU for a step.
        left_out: share of the rows that are left out.
    """

    case: str
    us_per_row: float
    us_per_step: float
    left_out: float


def fallen(epoch: int, share: float) -> ThresholdSchedule:
    """Return a schedule that falls to a share of the hashes in the middle of an epoch."""
    middle_ns = epoch * EPOCH_NS + EPOCH_NS // 2
    full = ThresholdSchedule.constant(FULL_THRESHOLD)
    return full.lowered(int(FULL_THRESHOLD * share), middle_ns - EPOCH_NS, middle_ns)


def figure(
    case: str, query: str, schedule: ThresholdSchedule, batches: Sequence[Batch], rounds: int
) -> Figure:
    """Return what a step costs that reads ``batches``, in the folder in which they are."""
    program = compile_queries(
        [QueryText(query, "q")], CompileContext(("main",), {}, samples=True)
    ).program
    samples, _ = moving_samples(program)
    thresholds = SampleThresholds(samples, HashKey.of_seed(1))
    thresholds.on_schedule("q@main", schedule)
    (side,) = samples[0].sides["q"]
    folder = Path(batches[0].path).parent
    trimming = Trimming(folder, folder)
    read = ReleasedInput(side.epoch, tuple(("q@main", batch) for batch in batches))
    work = Work(program.node("q"), NOTHING, ENDED, (read,))
    rows, least, left_out = sum(batch.rows for batch in batches), float("inf"), 0
    for _ in range(rounds):
        began = time.process_time_ns()
        _, counts = trimming.applied(Step(1, (thresholds.applied(work),)))
        least = min(least, time.process_time_ns() - began)
        left_out = counts.get("q", 0)
    return Figure(case, least / 1e3 / rows, least / 1e3, left_out / rows)


def written(folder: Path, segments: int, rows: int) -> list[Batch]:
    """Write segments of one epoch."""
    table = pa.Table.from_batches([flow_batch(rows)])
    batches = []
    for number in range(segments):
        path = folder / f"{number}.parquet"
        pq.write_table(table, path, compression="NONE", use_dictionary=False)
        extent = Extent("tb", EPOCH, EPOCH)
        batches.append(Batch("q@main", number, str(path), rows, path.stat().st_size, (extent,)))
    return batches


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--segments", type=int, default=8)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="gscope-bench-") as folder:
        batches = written(Path(folder), arguments.segments, arguments.rows)
        cases = (
            ("no fall", FLOWS, ThresholdSchedule.constant(FULL_THRESHOLD)),
            ("elsewhere", FLOWS, fallen(EPOCH - 5, 0.5)),
            ("nothing left out", FLOWS, fallen(EPOCH, 1 - 1e-12)),
            ("half", FLOWS, fallen(EPOCH, 0.5)),
            ("subnets, half", SUBNETS, fallen(EPOCH, 0.5)),
        )
        figures = [figure(*case, batches, arguments.rounds) for case in cases]
    write_records(figures, CSV)
    for each in figures:
        print(
            f"{each.case:20}{each.us_per_row:10.4f} µs a row{each.us_per_step:12.0f} µs a step"
            f"{each.left_out:8.1%} left out"
        )


if __name__ == "__main__":
    _main()
