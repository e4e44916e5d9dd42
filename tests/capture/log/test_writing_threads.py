"""Threads that write streams of their own: each row is in the log once, whichever seals it."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.log.batches import BatchLimits, StreamSpec
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.sealing import WRITTEN_AT_ONCE_ROWS
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Batch, Extent

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

STREAMS = ("a", "b", "c", "d")
PARTS = 300
SCHEMA = pa.schema([pa.field("tb", pa.int64(), False), pa.field("n", pa.int64(), False)])


@pytest.fixture
def many_switches() -> Iterator[None]:
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(usual)


def _part(number: int) -> pa.RecordBatch:
    # Some are large enough to begin a segment of their own; others wait in memory.
    rows = WRITTEN_AT_ONCE_ROWS if number % 3 else 5
    tb = [number // 50] * rows
    return pa.record_batch([pa.array(tb, pa.int64()), pa.array([number] * rows)], schema=SCHEMA)


@pytest.mark.usefixtures("many_switches")
@pytest.mark.parametrize(
    "limits",
    [
        # The largest open batch of all streams is sealed by the thread that reaches the limit.
        BatchLimits(open_bytes=100_000),
        BatchLimits(rows=3_000),
    ],
)
def test_no_row_is_lost_or_doubled(tmp_path: Path, limits: BatchLimits) -> None:
    specs = [
        StreamSpec(name, (("tb", Direction.INCREASING),), epoch="tb", packets="n")
        for name in STREAMS
    ]
    log = StreamLog(tmp_path, specs, limits=limits)
    together = threading.Barrier(len(STREAMS))

    def write(stream: str) -> None:
        together.wait()
        for number in range(PARTS):
            epoch = number // 50
            log.append(stream, _part(number), (Extent("tb", epoch, epoch),))

    with ThreadPoolExecutor(len(STREAMS)) as pool:
        for done in [pool.submit(write, stream) for stream in STREAMS]:
            done.result()
    log.end(STREAMS)
    log.close()
    found: dict[str, Counter[int]] = {stream: Counter() for stream in STREAMS}
    numbers: dict[str, list[int]] = {stream: [] for stream in STREAMS}
    for message in read_log(tmp_path):
        numbers[message.stream].append(message.sequence)
        if isinstance(message, Batch):
            table = pq.read_table(tmp_path / message.path)
            assert table.num_rows == message.rows
            found[message.stream].update(table["n"].to_pylist())
    expected = Counter({number: _part(number).num_rows for number in range(PARTS)})
    assert found == dict.fromkeys(STREAMS, expected)
    assert all(each == list(range(len(each))) for each in numbers.values())
