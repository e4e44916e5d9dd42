"""A log that is nearly full removes the rows above a limit, exactly, and counts them.

The oracle hashes the values of each row by itself (``hash_terms``) and knows every row written.
"""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.capture.log.thinning.cuts import WaitingBatch, next_cut
from gscope.capture.log.thinning.limits import StreamLimits
from gscope.capture.log.thinning.thinner import Thinner, ThinningRules
from gscope.errors import StreamError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.sampling.keyed_hash import FULL_THRESHOLD, HashKey, hash_terms, rate_of
from gscope.queries.plan.sampling.moving_samples import moving_samples
from gscope.queries.plan.sampling.thinnable import ThinnableSample, thinnable_samples
from gscope.queries.streams.leases import AnsweredTimes
from gscope.queries.streams.messages import Batch, Extent, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = HashKey.of_seed(5)
SECOND_NS = 1_000_000_000
QUERY = """SELECT tb, srcIP, srcPort, count(*) as packets, max(len) as m
FROM TCP GROUP BY time/10 as tb, srcIP, srcPort"""
TYPES = (GsqlType.IP, GsqlType.INT)
Group = tuple[int, int, int]


def sample(stream_of: str = "main") -> ThinnableSample:
    context = CompileContext((stream_of,), {}, samples=True)
    program = compile_queries([QueryText(QUERY, "q")], context).program
    streams = [stream for lfta in program.lftas for stream in lfta.streams]
    (found,) = thinnable_samples(program, moving_samples(program)[0], streams)
    return found


SAMPLE = sample()
(STREAM,) = SAMPLE.rows
SPECS = [
    StreamSpec(STREAM, (("tb", Direction.INCREASING),), epoch="tb", packets="packets"),
    StreamSpec("other", (("tb", Direction.INCREASING),), epoch="tb", packets="packets"),
]


class Writer:
    """Writes epochs of random groups, and remembers every row."""

    def __init__(self, folder: Path, budget_bytes: int, *, min_rate: float = 0.01) -> None:
        self.written: Counter[Group] = Counter()
        budget = ShedOldest(budget_bytes, reserve_bytes=0)
        self.log = StreamLog(folder, SPECS, consumers=[Consumer("job")], budget=budget)
        rules = ThinningRules(
            (SAMPLE,), {s.name: s for s in SPECS}, KEY, min_rate, budget_bytes, 0, "job"
        )
        limits = StreamLimits(folder)
        self.thinner = Thinner(self.log, rules, limits, is_new=self.log.is_empty)
        self.log.use_thinning(self.thinner)
        self.folder = folder

    def epoch(self, epoch: int, rows: int = 2000, stream: str = STREAM) -> None:
        hosts = [(n * 7919) % rows for n in range(rows)]
        batch = pa.record_batch(
            {
                "tb": pa.array([epoch] * rows, pa.int64()),
                "srcIP": pa.array(
                    [(0xFFFF << 32 | host).to_bytes(16) for host in hosts], pa.binary(16)
                ),
                "srcPort": pa.array([host % 9 for host in hosts], pa.int64()),
                "packets": pa.array([3] * rows, pa.int64()),
            }
        )
        self.log.append(stream, batch, (Extent("tb", epoch, epoch),))
        beat = StreamHeartbeat(stream, (Punctuation("tb", epoch + 1),))
        self.log.write_heartbeat(epoch, epoch, [beat])
        if stream == STREAM:
            self.written.update((epoch, 0xFFFF << 32 | host, host % 9) for host in hosts)
        self.thinner.wait()

    def held(self, stream: str = STREAM) -> Counter[Group]:
        """The rows in the segments of the log."""
        found: Counter[Group] = Counter()
        for batch in self.log.unleased([stream]):
            table = pq.read_table(self.folder / batch.path)
            assert table.num_rows == batch.rows
            for row in table.to_pylist():
                found[row["tb"], int.from_bytes(row["srcIP"]), row["srcPort"]] += 1
        return found

    def limit(self, epoch: int) -> int:
        """The least limit of the times of an epoch, in a loop over its seconds."""
        limits = self.thinner.limits().get(STREAM)
        if limits is None:
            return FULL_THRESHOLD
        seconds = range(10 * epoch, 10 * epoch + 10)
        return min(limits.at(second * SECOND_NS).threshold for second in seconds)


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[Writer]:
    made = Writer(tmp_path, 400_000)
    yield made
    made.log.close()


def is_kept(group: Group, limit: int) -> bool:
    return hash_terms(group[1:], TYPES, KEY) <= limit


def test_every_epoch_has_all_groups_up_to_its_limit_and_no_others(writer: Writer) -> None:
    for epoch in range(40):
        writer.epoch(1000 + epoch)
    limits = {epoch: writer.limit(epoch) for epoch in range(1000, 1040)}
    assert all(0.01 <= rate_of(limit) < 1 for limit in list(limits.values())[:30])
    expected = {group for group in writer.written if is_kept(group, limits[group[0]])}
    assert set(writer.held()) >= expected, "a group below the limit is missing"
    # Of the last epochs, rows above a limit may wait for the next cut.
    assert {g for g in writer.held() if g[0] < 1030} == {g for g in expected if g[0] < 1030}
    stats = writer.log.stats
    assert stats.shed_batches_total == 0, "there is no gap"
    assert stats.tuples_total == len(writer.written)
    assert stats.thinned_tuples_total == stats.shed_tuples_total
    assert stats.thinned_tuples_total == len(writer.written) - len(writer.held())
    assert stats.shed_packets_total == 3 * stats.shed_tuples_total
    assert stats.waiting_tuples == sum(writer.held().values())
    assert writer.log.used_bytes == sum(
        (writer.folder / b.path).stat().st_size for b in writer.log.unleased([STREAM])
    )
    assert writer.thinner.least_rate == min(map(rate_of, limits.values()))
    assert writer.thinner.failures == 0


def test_what_is_answered_or_leased_stays_as_it_is(writer: Writer) -> None:
    for epoch in range(1000, 1003):
        writer.epoch(epoch)
    batches = writer.log.unleased([STREAM])
    answered = AnsweredTimes(10_000 * SECOND_NS, 10_010 * SECOND_NS)
    reply = writer.log.lease_answered(
        "job", {STREAM: [b.sequence for b in batches[1:2]]}, {STREAM: answered}
    )
    assert not reply.limits
    for epoch in range(1003, 1030):
        writer.epoch(epoch)
    assert writer.limit(1000) == FULL_THRESHOLD, "it is answered"
    assert writer.limit(1001) < FULL_THRESHOLD
    by_path = {b.path: b for b in writer.log.unleased([STREAM])}
    assert by_path[batches[0].path].rows == batches[0].rows
    assert pq.read_metadata(writer.folder / batches[1].path).num_rows == batches[1].rows
    assert by_path[batches[2].path].rows < batches[2].rows
    # The next lease says what was removed, and the batch is thinned once it is not leased.
    reply = writer.log.lease_answered("job", {}, {STREAM: answered})
    assert reply.limits[STREAM].at(10_010 * SECOND_NS).threshold == writer.limit(1001)
    # Limits do not fall behind what a job has answered before it crashed.
    earlier = AnsweredTimes(9_000 * SECOND_NS, 9_000 * SECOND_NS)
    writer.log.lease_answered("job", {}, {STREAM: earlier})
    for epoch in range(1030, 1060):
        writer.epoch(epoch)
    assert writer.limit(1000) == FULL_THRESHOLD


def test_the_least_rate_holds_and_then_the_oldest_batches_go(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 200_000, min_rate=0.5)
    for epoch in range(1000, 1020):
        writer.epoch(epoch)
    assert writer.thinner.least_rate == pytest.approx(0.5)
    stats = writer.log.stats
    assert stats.shed_batches_total > 0
    assert stats.shed_tuples_total > stats.thinned_tuples_total > 0
    assert writer.log.used_bytes <= 200_000
    writer.log.close()


def test_batches_of_other_streams_are_shed_first(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 400_000)
    for epoch in range(1000, 1005):
        writer.epoch(epoch)
    for epoch in range(1000, 1040):
        writer.epoch(epoch, stream="other")
    assert writer.log.totals["other"].shed_batches_total > 0
    assert writer.log.totals[STREAM].shed_batches_total == 0
    assert {group[0] for group in writer.held()} == set(range(1000, 1005))
    writer.log.close()


def test_rows_limits_and_counters_survive_a_restart(tmp_path: Path) -> None:
    writer = Writer(tmp_path, 400_000)
    for epoch in range(1000, 1030):
        writer.epoch(epoch)
    before = writer.log.stats, writer.held(), dict(writer.thinner.limits())
    writer.log.close()
    again = Writer(tmp_path, 400_000)
    assert (again.log.stats, again.held(), dict(again.thinner.limits())) == before
    # What the job has answered is unknown until it leases.
    for epoch in range(1030, 1040):
        again.epoch(epoch)
    assert again.limit(1030) == FULL_THRESHOLD
    again.log.lease_answered("job", {}, {STREAM: AnsweredTimes(0, 0)})
    for epoch in range(1040, 1045):
        again.epoch(epoch)
    assert again.limit(1035) < FULL_THRESHOLD
    again.log.close()


def test_a_crash_before_the_new_segment_has_its_name_loses_nothing(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("gscope.capture.log.segments.SegmentFolder.replace", lambda *_: None)
    for epoch in range(1000, 1012):
        writer.epoch(epoch)
    rows = {batch.path: batch.rows for batch in writer.log.unleased([STREAM])}
    stats = writer.log.stats
    assert stats.thinned_tuples_total > 0
    writer.log.close()
    assert list((writer.folder / "segments").glob("*.thinned"))
    monkeypatch.undo()
    again = Writer(writer.folder, 400_000)
    assert {b.path: b.rows for b in again.log.unleased([STREAM])} == rows
    assert sum(again.held().values()) == sum(rows.values())
    assert not list((writer.folder / "segments").glob("*.thinned"))
    again.log.close()


def test_a_crash_after_the_limit_is_stored_leaves_rows_to_the_job(
    writer: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> bool:
        message = "killed"
        raise StreamError(message)

    monkeypatch.setattr("gscope.capture.log.thinnable_log.ThinnableLog.thin", killed)
    for epoch in range(1000, 1012):
        writer.epoch(epoch)
    assert writer.thinner.failures > 0
    reply = writer.log.lease_answered("job", {}, {})
    assert reply.limits[STREAM].at(10_000 * SECOND_NS).threshold < FULL_THRESHOLD
    assert set(writer.held()) <= set(writer.written)


def test_capture_is_not_held_up_while_segments_are_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a segment is being written again, other epochs are logged and leased."""
    writing, goes_on = threading.Event(), threading.Event()
    write = StreamLog.write_beside

    def slow(log: StreamLog, *arguments: object) -> int:
        writing.set()
        assert goes_on.wait(60)
        return write(log, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(StreamLog, "write_beside", slow)
    writer = Writer(tmp_path, 400_000)
    monkeypatch.setattr(writer.thinner, "wait", lambda: None)
    epoch = 1000
    while not writing.is_set() and epoch < 1100:
        writer.epoch(epoch)
        epoch += 1
    assert writing.wait(60)
    first, *_ = writer.log.unleased([STREAM])
    writer.log.lease_answered("job", {STREAM: [first.sequence]}, {})
    writer.epoch(epoch)
    goes_on.set()
    monkeypatch.undo()
    writer.thinner.wait()
    # It was leased while its segment was being written.
    assert pq.read_metadata(tmp_path / first.path).num_rows == first.rows
    assert not list((tmp_path / "segments").glob("*.thinned"))
    writer.log.close()


def test_a_cut_lowers_the_highest_rates_first() -> None:
    def waiting(number: int, highest: int) -> WaitingBatch:
        batch = Batch("s", number, f"{number}", 10, 1000, ())
        return WaitingBatch(batch, number * 10, number * 10 + 10, highest)

    full, half = FULL_THRESHOLD, FULL_THRESHOLD // 2
    batches = [waiting(0, full), waiting(1, full), waiting(2, half), waiting(3, half // 2)]
    cut = next_cut(batches, 0, 1000, 900)
    assert cut is not None
    assert (cut.threshold, cut.until_ns) == (half, 20)
    assert [each.batch.sequence for each in cut.batches] == [0, 1]
    assert 998 <= cut.freed_bytes <= 1000
    deeper = next_cut(batches, 0, 1000, 1800)
    assert deeper is not None
    assert deeper.threshold == half // 2
    assert [each.batch.sequence for each in deeper.batches] == [0, 1, 2]
    assert (later := next_cut(batches, 10, 1000, 1)) is not None
    assert [each.batch.sequence for each in later.batches] == [1]
    assert next_cut(batches, 40, 1000, 1) is None
    assert next_cut([replace(each, highest=1000) for each in batches], 0, 1000, 1) is None
