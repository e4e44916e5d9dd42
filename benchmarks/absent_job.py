"""Hours of small batches without a reader, through the log at full speed: how many wait?

    python -m benchmarks.absent_job [--seconds 10000] [--streams 20] [--rows 20] [--apart]

Every second each stream gets a batch and a heartbeat; at the end a job connects and reads all of
it. With ``--apart`` nothing is merged, and the number of batches is not limited. Prints figures,
with the cost of merging, while it runs.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.process.statistics import memory_bytes
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Batch, Extent, Punctuation

BUDGET_BYTES = 8 << 30
FIGURES = 10
"""Number of lines of figures to print."""


def one_second(t: int, rows: int) -> pa.RecordBatch:
    """Return what a flow query emits for second ``t``: 56 bytes a row."""
    column = pa.array(range(rows), pa.int64())
    address = pa.array([bytes(16)] * rows, pa.binary(16))
    times = pa.array([t] * rows, pa.int64())
    columns = {"t": times, "src": address, "dest": address, "port": column, "count0": column}
    schema = pa.schema([pa.field(name, c.type, nullable=False) for name, c in columns.items()])
    return pa.record_batch(list(columns.values()), schema=schema)


def write(log: StreamLog, names: list[str], seconds: int, rows: int) -> None:
    """Simulate ``seconds`` seconds, and print what the log holds."""
    began, longest_s = time.perf_counter(), 0.0
    for t in range(seconds):
        batch, extents = one_second(t, rows), (Extent("t", t, t),)
        second_began = time.perf_counter()
        for name in names:
            log.append(name, batch, extents)
        log.write_heartbeat(
            t, t, [StreamHeartbeat(name, (Punctuation("t", t + 1),)) for name in names]
        )
        longest_s = max(longest_s, time.perf_counter() - second_began)
        if (t + 1) % (seconds // FIGURES) == 0:
            stats = log.stats
            print(
                f"{stats.batches_total:,} batches: {log.held_batches:,} wait in"
                f" {stats.used_bytes / 1e6:.1f} MB, {stats.merged_batches_total:,} merged,"
                f" {stats.shed_batches_total:,} shed;"
                f" index {stats.index_bytes / 1e6:.2f} MB, process"
                f" {memory_bytes() / 1e6:.0f} MB; longest second {1e3 * longest_s:.0f} ms;"
                f" {time.perf_counter() - began:.0f} s, CPU {time.process_time():.0f} s",
                flush=True,
            )


def read(log: StreamLog, folder: Path, names: list[str]) -> tuple[int, int]:
    """Read all waiting batches, as a job does that returns; return its batches and rows."""
    cursors = dict.fromkeys(names, 0)
    batches = rows = 0
    while messages := log.read(cursors, timeout_s=0):
        cursors |= {message.stream: message.sequence + 1 for message in messages}
        for message in messages:
            if isinstance(message, Batch):
                batches += 1
                rows += pq.read_table(folder / message.path, use_threads=False).num_rows
    return batches, rows


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=10_000)
    parser.add_argument("--streams", type=int, default=20)
    parser.add_argument("--rows", type=int, default=20)
    parser.add_argument("--apart", action="store_true", help="merge nothing")
    options = parser.parse_args()
    names = [f"lfta{number}@eth0" for number in range(options.streams)]
    specs = [StreamSpec(name, (("t", Direction.INCREASING),), epoch="t") for name in names]
    # With room for that many batches, none counts as small.
    budget = ShedOldest(BUDGET_BYTES, 1 << 60) if options.apart else ShedOldest(BUDGET_BYTES)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = StreamLog(folder, specs, consumers=[Consumer("job")], budget=budget)
        write(log, names, options.seconds, options.rows)
        began = time.perf_counter()
        batches, rows = read(log, folder, names)
        print(f"read {batches:,} batches of {rows:,} rows in {time.perf_counter() - began:.1f} s")
        log.close()


if __name__ == "__main__":
    _main()
