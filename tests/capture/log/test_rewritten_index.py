"""The index is rewritten when most of it is gone.

Readers, cursors and counts do not notice, nor does a crash.
"""

from __future__ import annotations

import errno
import os
import tracemalloc
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.log.killed_writer import run_and_kill

from gscope.capture.log import retained_messages as ledger_module
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.index import INDEX_NAME, Index, read_index
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, Message, Punctuation

if TYPE_CHECKING:
    from pathlib import Path

STREAMS = ("a", "b")
SPECS = [StreamSpec(name, (("t", Direction.INCREASING),), epoch="t") for name in STREAMS]


def open_log(folder: Path, specs: list[StreamSpec] | None = None) -> StreamLog:
    budget = ShedOldest(1 << 20, reserve_bytes=0)
    return StreamLog(folder, specs or SPECS, consumers=[Consumer("job")], budget=budget)


def beat(log: StreamLog, number: int, *streams: str) -> None:
    log.write_heartbeat(
        number,
        number,
        [StreamHeartbeat(s, (Punctuation("t", number),)) for s in streams or STREAMS],
    )


def put(log: StreamLog, t: int, stream: str) -> None:
    log.append(stream, pa.record_batch({"t": pa.array([t], pa.int64())}), (Extent("t", t, t),))


def ends(log: StreamLog) -> dict[str, int]:
    return {stream: log.read({stream: 0})[-1].sequence + 1 for stream in STREAMS}


@pytest.fixture
def _rewrites_soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "REWRITE_RECORDS", 2)
    monkeypatch.setattr(ledger_module, "THIN_MESSAGES", 8)


def test_a_week_of_an_idle_link_keeps_memory_and_disk_flat(tmp_path: Path) -> None:
    names = [f"s{number}" for number in range(20)]
    log = open_log(tmp_path, [StreamSpec(name, ()) for name in names])
    reached: list[tuple[int, int]] = []
    tracemalloc.start()
    for number in range(2400):
        beat(log, number, *names)
        if number % 30 == 29:
            log.acknowledge("job", dict.fromkeys(names, number + 1))
        if number % 600 == 599:
            reached.append((log.stats.index_bytes, tracemalloc.get_traced_memory()[0]))
    tracemalloc.stop()
    log.close()
    assert all(size < 1 << 20 and memory < 1 << 20 for size, memory in reached)


def test_a_consumer_that_is_dead_for_days_costs_no_memory_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "THIN_MESSAGES", 500)
    log = open_log(tmp_path)
    for number in range(5000):
        beat(log, number)
        if number % 100 == 0:
            put(log, number, "a")
    assert log.waiting_messages < 1000
    assert log.stats.index_bytes < 1 << 20
    last = log.read({"a": 0, "b": 0})[-1]
    assert last.sequence == 4999
    assert len(log.read({"a": 0})) > 50
    log.close()
    again = open_log(tmp_path)
    beat(again, 5000)
    assert again.read({"b": 5000})[0].sequence == 5000
    again.close()


@pytest.mark.usefixtures("_rewrites_soon")
def test_sequence_numbers_go_on_and_cursors_hold(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(20):
        beat(log, number)
    log.acknowledge("job", {"a": 20, "b": 5})
    beat(log, 20)
    assert [m.sequence for m in log.read({"a": 20})] == [20]
    log.close()
    assert read_index(tmp_path).bases["a"].sequence == 20
    again = open_log(tmp_path)
    beat(again, 21)
    assert [m.sequence for m in again.read({"a": 20})] == [20, 21]
    assert again.read({"b": 5})[-1].sequence == 21
    with pytest.raises(StreamError, match="holds messages 20 to 22, not 19"):
        again.read({"a": 19})
    again.close()


@pytest.mark.usefixtures("_rewrites_soon")
def test_a_stream_that_ended_stays_ended(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.end(["a"])
    log.acknowledge("job", {"a": 1})
    for number in range(30):
        beat(log, number, "b")
    log.acknowledge("job", {"b": 30})
    log.close()
    again = open_log(tmp_path)
    again.end(["a", "b"])
    assert again.read({"a": 1}, timeout_s=0) == []
    assert again.is_ended
    again.close()


def test_whatever_a_crash_left_of_a_rewrite_the_log_is_as_before_or_as_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "REWRITE_RECORDS", 10**9)
    log = open_log(tmp_path)
    for number in range(6):
        put(log, number, "a")
        beat(log, number + 1)
    before = (tmp_path / INDEX_NAME).read_bytes()
    monkeypatch.setattr(ledger_module, "REWRITE_RECORDS", -100)
    log.acknowledge("job", {"a": 6})
    monkeypatch.setattr(ledger_module, "REWRITE_RECORDS", 10**9)
    log.close()
    after = (tmp_path / INDEX_NAME).read_bytes()
    assert len(after) < len(before)
    expected = open_log(tmp_path)
    messages = expected.read({"a": 6, "b": 0})
    expected.close()
    for cut in range(0, len(after) + 1, 7):
        (tmp_path / INDEX_NAME).write_bytes(before)
        (tmp_path / "index.new").write_bytes(after[:cut])
        assert state_of(tmp_path) == messages
        assert not (tmp_path / "index.new").exists()


def test_a_rewritten_index_cut_anywhere_is_read_as_far_as_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ledger_module, "REWRITE_RECORDS", -100)
    log = open_log(tmp_path / "log")
    for number in range(12):
        beat(log, number)
    log.acknowledge("job", {"a": 12, "b": 7})
    log.close()
    data = (tmp_path / "log" / INDEX_NAME).read_bytes()
    whole = read_log(tmp_path / "log")
    for cut in range(len(data)):
        (tmp_path / "log" / INDEX_NAME).write_bytes(data[:cut])
        found = read_log(tmp_path / "log")
        assert found == whole[: len(found)]


def state_of(folder: Path) -> list[Message]:
    log = open_log(folder)
    try:
        return log.read({"a": 6, "b": 0})
    finally:
        log.close()


@pytest.mark.usefixtures("_rewrites_soon")
def test_a_full_disk_puts_the_rewrite_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    for number in range(9):
        beat(log, number)
    monkeypatch.setattr(Index, "rewrite", lambda *_: raise_full(tmp_path))
    log.acknowledge("job", {"a": 9, "b": 9})
    monkeypatch.undo()
    assert log.stats.full_disk_total == 1
    beat(log, 9)
    assert [m.sequence for m in log.read({"a": 9})] == [9]
    log.close()
    again = open_log(tmp_path)
    assert ends_of(again) == [9]
    again.close()


def raise_full(folder: Path) -> None:
    from gscope.capture.log.os_errors import plain_errors

    with plain_errors("rewrite the stream log", folder):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def ends_of(log: StreamLog) -> list[int]:
    return [m.sequence for m in log.read({"a": 9})]


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(("beat", "put", "acknowledge", "shed", "restart")),
        st.sampled_from(STREAMS),
        st.integers(0, 100),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS)
def test_no_tuple_is_ever_missing_from_the_sum(
    operations: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """tuples = released + waiting + shed.

    Every batch is held, acknowledged or a gap, over restarts.
    """
    patch = pytest.MonkeyPatch()
    patch.setattr(ledger_module, "REWRITE_RECORDS", 2)
    patch.setattr(ledger_module, "THIN_MESSAGES", 6)
    folder = tmp_path_factory.mktemp("log")
    log = open_log(folder)
    put_tuples, number = dict.fromkeys(STREAMS, 0), 0
    try:
        for operation, stream, argument in operations:
            number += 1
            if operation == "beat":
                beat(log, number, stream)
            elif operation == "put":
                put(log, number, stream)
                beat(log, number + 1, stream)
                put_tuples[stream] += 1
            elif operation == "acknowledge":
                held = log._held[stream]
                log.acknowledge("job", {stream: held.base + argument % (held.end - held.base + 1)})
            elif operation == "shed":
                log.shed_oldest()
            else:
                log.close()
                log = open_log(folder)
            for name, totals in log.totals.items():
                assert totals.tuples_total == put_tuples[name]
                held = log._held[name]
                waiting = sum(batch.rows for _, batch in held.batches)
                assert totals.waiting_tuples == waiting
                assert totals.released_tuples_total >= 0
            assert log.used_bytes == sum(
                path.stat().st_size for path in (folder / "segments").iterdir()
            )
            assert log.waiting_messages == sum(map(len, log._held.values()))
    finally:
        log.close()
        patch.undo()


KILLED = """
import sys
from pathlib import Path
import gscope.capture.log.retained_messages as ledger
from tests.capture.log.test_rewritten_index import open_log, beat, put
ledger.REWRITE_RECORDS = 2
log = open_log(Path(sys.argv[1]))
start = max(held.end for held in log._held.values())
for number in range(start, 10**9):
    put(log, number, "a")
    beat(log, number + 1)
    log.acknowledge("job", {s: max(0, log._held[s].end - 3) for s in "ab"})
    if number % 50 == 0:
        print(number, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_opens_again_and_goes_on(tmp_path: Path) -> None:
    for _ in range(6):
        run_and_kill(KILLED, tmp_path, 2)
        log = open_log(tmp_path)
        stats = log.stats
        assert stats.waiting_tuples <= 3
        assert stats.tuples_total == stats.released_tuples_total + stats.waiting_tuples
        log.close()
