"""A live log that is full sheds its oldest batches with exact counts, and notifies its readers."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.segments import SegmentFolder
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Batch, Extent, Heartbeat, Punctuation, Shed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 500
SPECS = [
    StreamSpec(name, (("t", Direction.INCREASING),), epoch="t", packets="count0")
    for name in ("a", "b")
]
ROOM_BYTES = 12_000
"""Room for one batch of 500 rows."""


def open_log(folder: Path, limit_bytes: int = ROOM_BYTES, limit_batches: int = 1000) -> StreamLog:
    budget = ShedOldest(limit_bytes, limit_batches, reserve_bytes=0)
    return StreamLog(folder, SPECS, consumers=[Consumer("job")], budget=budget)


def second(log: StreamLog, t: int, stream: str = "a", rows: int = ROWS) -> None:
    """One second's rows, each for three packets, and a heartbeat."""
    times, packets = pa.array([t] * rows, pa.int64()), pa.array([3] * rows, pa.int64())
    log.append(stream, pa.record_batch({"t": times, "count0": packets}), (Extent("t", t, t),))
    log.write_heartbeat(t, t, [StreamHeartbeat(stream, (Punctuation("t", t + 1),))])


def shape(log: StreamLog, **cursors: int) -> list[str]:
    kinds = {Batch: "batch", Heartbeat: "beat", Shed: "shed"}
    messages = log.read(cursors, timeout_s=0)
    return [f"{m.stream}{m.sequence} {kinds[type(m)]}" for m in messages]


def test_the_oldest_batch_makes_room_and_leaves_a_gap(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    second(log, 0, "b")
    second(log, 1, "a")
    assert shape(log, a=0, b=0) == ["b0 shed", "b1 beat", "a0 batch", "a1 beat"]
    (gap, *_) = log.read({"b": 0})
    assert gap == Shed("b", 0, ROWS, 3 * ROWS, (Extent("t", 0, 0),))
    log.close()
    assert read_log(tmp_path)[0] == gap
    assert len(list((tmp_path / "segments").iterdir())) == 1


def test_counts_are_exact_and_survive_a_restart(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for t in range(10):
        second(log, t, "ab"[t % 2], rows=ROWS - t)
    log.acknowledge("job", {"a": log.read({"a": 0})[-1].sequence + 1})
    before = log.stats, log.totals
    log.close()
    stats = before[0]
    assert stats.tuples_total == sum(ROWS - t for t in range(10))
    assert stats.shed_tuples_total == sum(ROWS - t for t in range(9))
    assert stats.shed_packets_total == 3 * stats.shed_tuples_total
    assert stats.shed_batches_total == 9
    assert (stats.waiting_tuples, stats.released_tuples_total) == (ROWS - 9, 0)
    again = open_log(tmp_path)
    assert again.totals["b"].shed_tuples_total == before[1]["b"].shed_tuples_total
    assert again.stats.tuples_total == stats.tuples_total
    assert again.stats.waiting_tuples == stats.waiting_tuples
    again.close()


def test_what_is_leased_is_spared_and_new_rows_go_instead(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    second(log, 0)
    assert log.lease("job", {"a": [0]}) == {}
    second(log, 1)
    assert shape(log, a=0) == ["a0 batch", "a1 beat", "a2 shed", "a3 beat"]
    assert (log.stats.shed_tuples_total, log.stats.shed_packets_total) == (ROWS, 3 * ROWS)
    assert log.lease("job", {}) == {}
    second(log, 2)
    assert log.lease("job", {"a": [0, 2, 4]}) == {"a": (0, 2)}
    log.acknowledge("job", {"a": 5})
    assert log.stats.released_tuples_total == ROWS
    log.close()


def test_no_reader_acknowledges_while_the_oldest_batch_is_searched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    second(log, 0)
    batches = log.sheddable()
    reader = threading.Thread(target=log.acknowledge, args=("job", {"a": 1}))

    def slowly(_streams: object = None) -> Iterator[Batch]:
        # With thousands of leased batches, other threads run meanwhile.
        reader.start()
        reader.join(0.2)
        assert reader.is_alive()
        yield from batches

    monkeypatch.setattr(log._ledger, "sheddable", slowly)
    assert log.shed_oldest()
    reader.join()
    assert log.stats.shed_tuples_total == ROWS
    log.close()


def test_a_lease_of_a_stranger_or_of_a_strange_stream_is_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(StreamError, match="unknown consumer 'who'"):
        log.lease("who", {})
    with pytest.raises(StreamError, match="unknown stream 'x'"):
        log.lease("job", {"x": [1]})
    assert log.lease("job", {"a": [-1, 0, 2**80]}) == {"a": (-1, 0, 2**80)}
    log.close()


def test_batches_are_limited_in_number_however_small(tmp_path: Path) -> None:
    log = open_log(tmp_path, 1 << 30, limit_batches=3)
    for t in range(10):
        second(log, t, rows=1)
    assert (log.held_batches, log.stats.shed_tuples_total) == (3, 7)
    log.close()


def test_a_disk_that_others_fill_is_as_a_budget_used_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path, 1 << 30)
    second(log, 0)
    monkeypatch.setattr(SegmentFolder, "free_bytes", lambda _: 10)
    second(log, 1)
    assert shape(log, a=0) == ["a0 shed", "a1 beat", "a2 shed", "a3 beat"]
    monkeypatch.undo()
    second(log, 2)
    assert shape(log, a=4) == ["a4 batch", "a5 beat"]
    log.close()
