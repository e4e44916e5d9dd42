"""A live log that is full sheds with a count, and takes rows again when there is room."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedNewest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import Beat, StreamLog, read_log
from gscope.queries.catalog.types import Direction
from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from pathlib import Path


def test_what_finds_no_room_is_counted_and_heartbeats_go_on(tmp_path: Path) -> None:
    spec = StreamSpec("s", (("t", Direction.INCREASING),))
    log = StreamLog(tmp_path, [spec], consumers=[Consumer("job", ())], budget=ShedNewest(6_000))

    def second(t: int) -> None:
        rows = pa.record_batch({"t": pa.array([t] * 500, pa.int64())})
        log.append("s", rows, (Extent("t", t, t),))
        log.beat(t, t, [Beat("s", (Punctuation("t", t + 1),))])

    for t in range(3):
        second(t)
    assert (log.stats.batches_total, log.stats.shed_tuples_total) == (1, 1000)
    log.acknowledge("job", {"s": 2})
    second(3)
    log.close()
    messages = read_log(tmp_path)
    assert [message.rows for message in messages if isinstance(message, Batch)] == [500, 500]
    assert sum(isinstance(message, Heartbeat) for message in messages) == 4
    assert log.stats.shed_tuples_total == 1000
