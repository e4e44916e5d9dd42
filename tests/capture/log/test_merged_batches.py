"""Small batches that wait for an absent reader become few; only their number differs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.capture.log.killed_writer import run_and_kill

from gscope.capture.log import merging
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest, WaitForRoom
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.index import INDEX_NAME, read_index
from gscope.capture.log.log import StreamLog
from gscope.capture.log.merging import FEWEST_PARTS, worth_merging
from gscope.capture.log.segments import SegmentFolder
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import (
    Batch,
    Extent,
    Heartbeat,
    Merged,
    Message,
    Punctuation,
    Shed,
)
from gscope.queries.streams.wire import encode

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from gscope.capture.log.budget import Budget

STREAMS = ("a", "b")
SPECS = [
    StreamSpec(name, (("t", Direction.INCREASING),), epoch="t", packets="count0")
    for name in STREAMS
]


def open_log(folder: Path) -> StreamLog:
    budget = ShedOldest(1 << 30, 10_000, reserve_bytes=0)
    return StreamLog(folder, SPECS, consumers=[Consumer("job")], budget=budget)


def second(log: StreamLog, t: int, stream: str = "a", rows: int = 1) -> None:
    """The rows of second ``t``, each for three packets, and a heartbeat."""
    times, packets = pa.array([t] * rows, pa.int64()), pa.array([3] * rows, pa.int64())
    log.append(stream, pa.record_batch({"t": times, "count0": packets}), (Extent("t", t, t),))
    log.write_heartbeat(t, t, [StreamHeartbeat(stream, (Punctuation("t", t + 1),))])


def seconds(log: StreamLog, times: Iterable[int], stream: str = "a") -> None:
    for t in times:
        second(log, t, stream)
    log._merger.wait()


def shape(messages: list[Message]) -> list[str]:
    kinds = {Batch: "batch", Heartbeat: "beat", Shed: "shed"}
    return [f"{m.sequence} {kinds[type(m)]}" for m in messages]


def times_of(folder: Path, messages: Iterable[Message]) -> list[int]:
    batches = [m for m in messages if isinstance(m, Batch)]
    found = [pq.read_table(folder / batch.path)["t"].to_pylist() for batch in batches]
    for batch, times in zip(batches, found, strict=True):
        assert batch.rows == len(times)
        assert batch.size_bytes == (folder / batch.path).stat().st_size
        assert batch.extents == (Extent("t", min(times), max(times)),)
    return [t for times in found for t in times]


def segments(folder: Path) -> set[str]:
    return {f"segments/{path.name}" for path in (folder / "segments").iterdir()}


def test_what_waits_becomes_one_batch_with_the_number_of_the_last(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(FEWEST_PARTS))
    messages = log.read({"a": 0})
    last = 2 * FEWEST_PARTS - 2
    assert shape(messages) == [f"{last} batch", f"{last + 1} beat"]
    assert times_of(tmp_path, messages) == list(range(FEWEST_PARTS))
    stats = log.stats
    assert (stats.batches_total, stats.merged_batches_total) == (FEWEST_PARTS, FEWEST_PARTS - 1)
    assert (stats.tuples_total, stats.waiting_tuples) == (FEWEST_PARTS, FEWEST_PARTS)
    assert (log.held_batches, log.waiting_messages) == (1, 2)
    assert log.used_bytes == sum((tmp_path / name).stat().st_size for name in segments(tmp_path))
    log.acknowledge("job", {"a": last + 1})
    assert log.stats.released_tuples_total == FEWEST_PARTS
    assert segments(tmp_path) == set()
    log.close()


def test_hours_of_seconds_are_a_few_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(1000))
    assert log.held_batches < 5 * FEWEST_PARTS
    assert log.waiting_messages < 10 * FEWEST_PARTS
    assert times_of(tmp_path, log.read({"a": 0})) == list(range(1000))
    log.close()


def test_what_a_reader_was_handed_stays_as_it_is(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(5))
    known = log.read({"a": 0}, limit=8)
    seconds(log, range(5, 50))
    assert log.stats.merged_batches_total > 0
    messages = log.read({"a": 0})
    assert messages[:8] == known
    assert times_of(tmp_path, messages) == list(range(50))
    # The job acknowledges in the middle of what it knows, comes again, and gets the same.
    log.acknowledge("job", {"a": 4})
    assert log.read({"a": 4}) == messages[4:]
    log.close()


def test_a_cursor_that_anybody_named_is_never_merged_over(tmp_path: Path) -> None:
    for number, name in enumerate(("read", "acknowledge", "lease")):
        log = open_log(tmp_path / str(number))
        seconds(log, range(FEWEST_PARTS - 1))
        if name == "read":
            assert log.read({"a": log._held["a"].end}, timeout_s=0) == []
        elif name == "acknowledge":
            log.acknowledge("job", {"a": 7})
        else:
            assert log.lease("job", {"a": [0, 6]}) == {}
        begin = {"read": 2 * FEWEST_PARTS - 2, "acknowledge": 7, "lease": 7}[name]
        held = [m for _, m in log._held["a"] if m.sequence < begin]
        seconds(log, range(FEWEST_PARTS - 1, 3 * FEWEST_PARTS))
        assert log.stats.merged_batches_total > 0
        assert [m for _, m in log._held["a"] if m.sequence < begin] == held
        log.close()


def test_a_heartbeat_is_reported_behind_the_rows_it_passes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(100), "a")
    seconds(log, range(100), "b")
    bounds = dict.fromkeys(STREAMS, 0)
    for message in log.read({"a": 0, "b": 0}):
        if isinstance(message, Heartbeat):
            bounds[message.stream] = message.punctuations[0].bound
        else:
            assert min(times_of(tmp_path, [message])) >= bounds[message.stream]
    assert bounds == {"a": 100, "b": 100}
    log.close()


def test_batches_that_no_heartbeat_follows_wait_for_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(FEWEST_PARTS - 1))
    held = log._held["a"]
    (number, beat), (_, batch) = held._messages[-1], held._messages[-2]
    del held._messages[-1]
    assert batch not in held.invisible_batches()
    held._messages.append((number, beat))
    assert held.invisible_batches()[-1] == batch
    log.close()


def test_after_a_restart_all_is_as_it_was_and_new_batches_are_merged(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(40), "a")
    seconds(log, range(20), "b")
    messages, stats, totals = log.read({"a": 0, "b": 0}), log.stats, log.totals
    latest = log.latest
    log.close()
    for _ in range(2):
        log = open_log(tmp_path)
        # Twice: the second time from an index that was rewritten.
        log._ledger._index.rewrite([*map(log._ledger._base, log._held), *log._ledger._jumping()])
        assert log.read({"a": 0, "b": 0}) == messages
        again = log.stats
        again.index_bytes = stats.index_bytes
        assert (again, log.totals, log.latest) == (stats, totals, latest)
        log.close()
    log = open_log(tmp_path)
    seconds(log, range(40, 90))
    assert log.read({"a": 0, "b": 0})[: len(messages)] == messages
    assert log.stats.merged_batches_total > stats.merged_batches_total
    assert times_of(tmp_path, log.read({"a": 0})) == list(range(90))
    log.close()


def test_a_merged_batch_is_shed_as_any_other_with_exact_counts(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    seconds(log, range(FEWEST_PARTS))
    (batch,) = log.sheddable()
    assert log.shed_oldest()
    gap = Shed("a", batch.sequence, FEWEST_PARTS, 3 * FEWEST_PARTS, batch.extents)
    assert log.read({"a": 0})[0] == gap
    assert (log.stats.shed_tuples_total, log.stats.waiting_tuples) == (FEWEST_PARTS, 0)
    log.close()
    again = open_log(tmp_path)
    assert again.read({"a": 0})[0] == gap
    assert again.stats.tuples_total == again.stats.shed_tuples_total == FEWEST_PARTS
    assert again.stats.merged_batches_total == FEWEST_PARTS - 1
    again.close()


@pytest.mark.parametrize(
    ("consumers", "budget"),
    [([Consumer("job")], WaitForRoom(1 << 30)), ([], ShedOldest(1 << 30, reserve_bytes=0))],
    ids=["replay", "no consumers"],
)
def test_a_replay_and_a_log_without_consumers_merge_nothing(
    consumers: list[Consumer], budget: Budget, tmp_path: Path
) -> None:
    log = StreamLog(tmp_path, SPECS, consumers=consumers, budget=budget)
    seconds(log, range(3 * FEWEST_PARTS))
    assert log.held_batches == 3 * FEWEST_PARTS
    log.close()


def test_on_a_disk_without_room_for_both_it_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(tmp_path)
    seconds(log, range(FEWEST_PARTS - 1))
    monkeypatch.setattr(SegmentFolder, "free_bytes", lambda _: 3000)
    second(log, FEWEST_PARTS - 1)
    log._merger.wait()
    assert log.stats.merged_batches_total == 0
    monkeypatch.undo()
    seconds(log, range(FEWEST_PARTS, 2 * FEWEST_PARTS))
    assert log.stats.merged_batches_total > 0
    log.close()


def test_a_segment_that_cannot_be_read_stays_where_it_is_and_others_are_merged(
    tmp_path: Path,
) -> None:
    log = open_log(tmp_path)
    seconds(log, range(FEWEST_PARTS - 1))
    *_, (_, batch) = log._held["a"].batches
    (tmp_path / batch.path).write_bytes(b"PAR1" * (batch.size_bytes // 4))
    seconds(log, range(FEWEST_PARTS - 1, 4 * FEWEST_PARTS))
    messages = log.read({"a": 0})
    assert batch in messages
    assert log.stats.merged_batches_total > 0
    assert log.stats.waiting_tuples == 4 * FEWEST_PARTS
    log.close()


def test_rows_are_written_again_only_into_twice_as_large_a_batch() -> None:
    def sized(*sizes: int) -> list[Batch]:
        return [Batch("a", n, "", 1, size, ()) for n, size in enumerate(sizes)]

    tiny = [1] * FEWEST_PARTS
    assert worth_merging(sized(*tiny[1:]), 1000) == []
    assert len(worth_merging(sized(500, *tiny), 1000)) == FEWEST_PARTS
    assert worth_merging(sized(*tiny[1:], 500), 1000) == []
    # Large ones are left out, wherever they stand.
    assert [b.sequence for b in worth_merging(sized(1000, *tiny[1:], 2000, 1), 1000)] == [
        *range(1, FEWEST_PARTS),
        FEWEST_PARTS + 1,
    ]


def test_wherever_a_crash_cuts_a_merge_the_parts_or_the_batch_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        # As if it had been killed before the parts were removed.
        patch.setattr(SegmentFolder, "remove", lambda *_: None)
        log = open_log(tmp_path)
        seconds(log, range(FEWEST_PARTS))
        log.close()
    data = (tmp_path / INDEX_NAME).read_bytes()
    found = {name: (tmp_path / name).read_bytes() for name in segments(tmp_path)}
    assert len(found) == FEWEST_PARTS + 1
    ((parts, batch),) = read_index(tmp_path).merges
    record = len(encode(Merged(batch, tuple(part.sequence for part in parts))))
    for cut in (*range(0, record, 3), record):
        (tmp_path / INDEX_NAME).write_bytes(data[: len(data) - cut])
        for name, content in found.items():
            (tmp_path / name).write_bytes(content)
        again = open_log(tmp_path)
        assert segments(tmp_path) == {part.path for part in parts} if cut else {batch.path}
        assert again.stats.waiting_tuples == again.stats.tuples_total == FEWEST_PARTS
        assert again.stats.merged_batches_total == (0 if cut else FEWEST_PARTS - 1)
        if cut in (0, 1, record):
            assert times_of(tmp_path, again.read({"a": 0})) == list(range(FEWEST_PARTS))
        again.close()


OPERATIONS = st.lists(
    st.tuples(
        st.sampled_from(
            ("put", "put", "put", "read", "acknowledge", "job dies", "daemon dies", "shed")
        ),
        st.sampled_from(STREAMS),
        st.integers(0, 30),
    ),
    max_size=60,
)


class Reader:
    """What a job makes of the log.

    It commits what it acknowledges, and reads again behind that after a crash.
    """

    def __init__(self, log: StreamLog, folder: Path) -> None:
        self.log = log
        self.folder = folder
        self.cursors = dict.fromkeys(STREAMS, 0)
        self.committed = dict.fromkeys(STREAMS, 0)
        self.known: dict[tuple[str, int], Message] = {}
        self.answers: dict[tuple[str, int], list[int]] = {}

    def read(self, limit: int) -> None:
        bounds: dict[str, int] = {}
        for message in self.log.read(self.cursors, limit, timeout_s=0):
            place = message.stream, message.sequence
            earlier = self.known.setdefault(place, message)
            assert message == earlier or isinstance(message, Shed)
            self.cursors[message.stream] = message.sequence + 1
            times = times_of(self.folder, [message])
            assert all(t >= bounds.get(message.stream, 0) for t in times)
            if isinstance(message, Heartbeat):
                bounds[message.stream] = message.punctuations[0].bound
            self.answers[place] = times

    def acknowledge(self, stream: str, share: int) -> None:
        begin, end = self.committed[stream], self.cursors[stream]
        self.committed[stream] = begin + share % (end - begin + 1)
        self.log.acknowledge("job", {stream: self.committed[stream]})

    def die(self) -> None:
        self.cursors = dict(self.committed)
        self.answers = {p: t for p, t in self.answers.items() if p[1] < self.committed[p[0]]}


@settings(max_examples=60, deadline=None)
@given(operations=OPERATIONS)
def test_every_tuple_is_answered_once_or_shed_whichever_process_dies(
    operations: list[tuple[str, str, int]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("log")
    put = dict.fromkeys(STREAMS, 0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEWEST_PARTS", 3)
        log = open_log(folder)
        reader = Reader(log, folder)
        for operation, stream, argument in operations:
            if operation == "put":
                for _ in range(argument % 7):
                    second(log, put[stream], stream)
                    put[stream] += 1
            elif operation == "read":
                reader.read(argument)
            elif operation == "acknowledge":
                reader.acknowledge(stream, argument)
            elif operation == "job dies":
                reader.die()
            elif operation == "daemon dies":
                log.close()
                reader.log = log = open_log(folder)
            else:
                # What the job has read it has leased.
                log.lease("job", {s: [n for name, n in reader.answers if name == s] for s in put})
                log.shed_oldest()
        reader.read(10_000)
        answered = {
            stream: sorted(t for p, ts in reader.answers.items() if p[0] == stream for t in ts)
            for stream in STREAMS
        }
        totals = log.totals
        log.close()
        for stream in STREAMS:
            assert len(set(answered[stream])) == len(answered[stream])
            assert len(answered[stream]) + totals[stream].shed_tuples_total == put[stream]
            assert totals[stream].tuples_total == put[stream]
        sizes = [(folder / name).stat().st_size for name in segments(folder)]
        assert log.used_bytes == sum(sizes)
        assert len(sizes) == log.held_batches
        assert log.waiting_messages == sum(map(len, log._held.values()))


KILLED = """
import sys
from pathlib import Path
from gscope.capture.log import merging, retained_messages
from tests.capture.log.test_merged_batches import open_log, second
retained_messages.REWRITE_RECORDS, merging.FEWEST_PARTS = 20, 3
log = open_log(Path(sys.argv[1]))
for t in range(log.stats.tuples_total, 10**9):
    second(log, t)
    if t % 50 == 0:
        print(t, flush=True)
"""


@pytest.mark.slow
def test_killed_at_any_moment_it_has_every_row_once(tmp_path: Path) -> None:
    merged = 0
    for _ in range(4):
        run_and_kill(KILLED, tmp_path, 3)
        log = open_log(tmp_path)
        stats = log.stats
        assert times_of(tmp_path, log.read({"a": 0}, limit=10**6)) == list(
            range(stats.tuples_total)
        )
        assert stats.waiting_tuples == stats.tuples_total
        assert stats.batches_total == stats.merged_batches_total + log.held_batches
        assert len(segments(tmp_path)) == log.held_batches
        assert stats.merged_batches_total > merged
        merged = stats.merged_batches_total
        log.close()
