"""The cost of sealing a batch of partial aggregates as a file, by format, settings and size.

    python -m benchmarks.segments [--rows 1100000] [--runs 5] [--segments 11000 110000]

The rows are those of the flow query: 72 bytes in nine columns. ``raw`` writes only the memory of
the columns: the minimum set by page cache and file creation. Files are not synced to the disk.
The table shows the least CPU time of the runs: everything happens in one thread, and disturbances
can only add to it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from benchmarks.measure import RUNS

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 1_100_000
SEGMENT_ROWS = (11_000, 50_000, 110_000, 1_100_000)
PLAIN: dict[str, Any] = {
    "use_dictionary": False,
    "write_statistics": False,
    "compression": "NONE",
    "version": "2.6",
    "store_schema": False,
}
LARGE = {**PLAIN, "write_batch_size": 1 << 16}
ADDRESS = pa.binary(16)


def flow_batch(rows: int) -> pa.RecordBatch:
    """Return rows like those that an LFTA evicts, over numpy's memory without a copy."""
    random = np.random.default_rng(1)
    address = random.integers(0, 256, (rows, 16), dtype=np.uint8)
    address[:, :12] = (*[0] * 10, 255, 255)
    count = random.integers(1, 50, rows)
    columns: dict[str, tuple[pa.DataType, Any]] = {
        "tb": (pa.int64(), np.full(rows, 170_000_000)),
        "ipversion": (pa.int32(), random.choice([4, 6], rows).astype(np.int32)),
        "protocol": (pa.int32(), random.choice([6, 17], rows).astype(np.int32)),
        "srcIP": (ADDRESS, address),
        "destIP": (ADDRESS, address[::-1].copy()),
        "srcPort": (pa.int32(), random.integers(0, 65_536, rows, dtype=np.int32)),
        "destPort": (pa.int32(), random.choice([53, 80, 443], rows).astype(np.int32)),
        "cnt": (pa.int64(), count),
        "bytes": (pa.int64(), count * 600),
    }
    arrays = [
        pa.Array.from_buffers(kind, rows, [None, pa.py_buffer(values)])
        for kind, values in columns.values()
    ]
    fields = [pa.field(name, kind, nullable=False) for name, (kind, _) in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def nullable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows as nullable columns: Parquet then stores definition levels."""
    fields = [field.with_nullable(True) for field in batch.schema]
    return pa.RecordBatch.from_arrays(batch.columns, schema=pa.schema(fields))


def with_interface(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the same rows with a constant text column, as a dictionary of one word."""
    words = pa.DictionaryArray.from_arrays(
        pa.array(np.zeros(batch.num_rows, np.int32)), pa.array(["main1"])
    )
    schema = batch.schema.append(pa.field("interface", words.type, nullable=False))
    return pa.RecordBatch.from_arrays([*batch.columns, words], schema=schema)


def write_parquet(batch: pa.RecordBatch, path: Path, **options: Any) -> None:
    """Write a Parquet file of one row group."""
    with pq.ParquetWriter(path, batch.schema, **options) as writer:
        writer.write_batch(batch, row_group_size=batch.num_rows)


def write_arrow(batch: pa.RecordBatch, path: Path) -> None:
    """Write an Arrow IPC file."""
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, batch.schema) as writer:
        writer.write_batch(batch)


def write_raw(batch: pa.RecordBatch, path: Path) -> None:
    """Write the bytes of the columns, one after another."""
    # The buffer of a sliced array is its parent's; its bytes begin at the offset.
    parts = []
    for column in batch.columns:
        width = column.type.bit_width // 8
        values = memoryview(column.buffers()[1])
        parts.append(values[column.offset * width : (column.offset + len(column)) * width])
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        os.writev(file, parts)
    finally:
        os.close(file)


WRITERS: dict[str, Callable[[pa.RecordBatch, Path], None]] = {
    "Parquet, pyarrow's defaults": write_parquet,
    "Parquet, plain, nullable": lambda b, p: write_parquet(nullable(b), p, **PLAIN),
    "Parquet, plain": lambda b, p: write_parquet(b, p, **PLAIN),
    "Parquet, plain, batches of 65,536": lambda b, p: write_parquet(b, p, **LARGE),
    "… and LZ4": lambda b, p: write_parquet(b, p, **{**LARGE, "compression": "LZ4"}),
    "… and a constant text column": lambda b, p: write_parquet(
        with_interface(b), p, **{**LARGE, "use_dictionary": ["interface"]}
    ),
    "Arrow IPC": write_arrow,
    "raw": write_raw,
}


def measure(
    write: Callable[[pa.RecordBatch, Path], None], batch: pa.RecordBatch, rows: int
) -> float:
    """Return the CPU seconds to write ``batch`` in segments of ``rows`` rows to an empty folder."""
    folder = Path(tempfile.mkdtemp())
    try:
        begin = time.process_time()
        for number, start in enumerate(range(0, batch.num_rows, rows)):
            write(batch.slice(start, rows), folder / str(number))
        return time.process_time() - begin
    finally:
        shutil.rmtree(folder)


def _main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, allow_abbrev=False)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--segments", type=int, nargs="+", default=SEGMENT_ROWS)
    arguments = parser.parse_args()
    batch = flow_batch(arguments.rows)
    print(
        "| CPU ns a row, by rows a segment | "
        + " | ".join(f"{s:,}" for s in arguments.segments)
        + " |"
    )
    print("| --- |" + " ---: |" * len(arguments.segments))
    taken: dict[tuple[str, int], list[float]] = {}
    for _ in range(arguments.runs):
        for name, write in WRITERS.items():
            for rows in arguments.segments:
                taken.setdefault((name, rows), []).append(measure(write, batch, rows))
    for name in WRITERS:
        figures = [min(taken[name, rows]) for rows in arguments.segments]
        cells = [f"{figure / arguments.rows * 1e9:.0f}" for figure in figures]
        print(f"| {name} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    _main()
