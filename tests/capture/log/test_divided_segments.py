"""Segments of many rows are divided by partition; those of few are what they are without."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.log import divided_rows, growing_segment, merging, sealing
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import ShedOldest
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.divided_rows import Ranges
from gscope.capture.log.log import StreamLog, read_log
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Literal
from gscope.queries.expressions.types import Direction, GsqlType
from gscope.queries.plan.partitioning.partition_hash import partition_of_values
from gscope.queries.plan.program_partitioning import PartitionMember, StreamPartitioning
from gscope.queries.streams.messages import Batch, Extent, Punctuation

if TYPE_CHECKING:
    from pathlib import Path

PARTITIONS = 20
KEY = Column("key", GsqlType.INT, is_nullable=False)
BY_KEY = StreamPartitioning((PartitionMember((KEY,)),), follows_set=True, partitions=PARTITIONS)
SPEC = StreamSpec(
    "s", (("tb", Direction.INCREASING),), epoch="tb", packets="cnt", partitioning=BY_KEY
)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make few rows many."""
    for module in (divided_rows, sealing):
        monkeypatch.setattr(module, "UNDIVIDED_ROWS", 4000)
    monkeypatch.setattr(sealing, "FIRST_DIVIDED_ROWS", 1000)
    monkeypatch.setattr(growing_segment, "GROUP_ROWS", 1500)


def partition(key: int | None, partitions: int = PARTITIONS) -> int:
    return partition_of_values([[(key, GsqlType.INT)]], partitions)


def rows(tb: list[int] | int, keys: range, **others: Any) -> pa.RecordBatch:
    times = [tb] * len(keys) if isinstance(tb, int) else tb
    columns = {
        "tb": pa.array(times, pa.int64()),
        "key": pa.array(keys, pa.int32()),
        "cnt": pa.array([1] * len(keys), pa.int64()),
        **others,
    }
    fields = [
        pa.field(name, column.type, nullable=bool(column.null_count))
        for name, column in columns.items()
    ]
    return pa.RecordBatch.from_arrays(list(columns.values()), schema=pa.schema(fields))


def append(log: StreamLog, batch: pa.RecordBatch) -> None:
    times = batch["tb"].to_pylist()
    log.append("s", batch, (Extent("tb", min(times), max(times)),))


def batches(folder: Path) -> list[Batch]:
    return [message for message in read_log(folder) if isinstance(message, Batch)]


def ensure_divided(folder: Path, batch: Batch, keys: Counter[int]) -> None:
    """Compare the row groups that a message states with those of its file, row by row."""
    path = folder / batch.path
    assert path.stat().st_size == batch.size_bytes
    found: Counter[int] = Counter()
    with pq.ParquetFile(path) as file:
        assert file.num_row_groups == len(batch.row_groups)
        for number, group in enumerate(batch.row_groups):
            table = file.read_row_group(number)
            assert table.num_rows == group.rows
            own = [partition(key) for key in table["key"].to_pylist()]
            assert all(group.first <= each < group.end for each in own)
            found.update(table["key"].to_pylist())
    assert found == keys
    assert sum(group.rows for group in batch.row_groups) == batch.rows
    assert sum(group.size_bytes for group in batch.row_groups) <= batch.size_bytes


@pytest.mark.usefixtures("few")
def test_rows_beyond_the_first_are_divided_as_they_arrive(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    for begin in range(0, 30_000, 2000):
        append(log, rows(7, range(begin, begin + 2000)))
    append(log, rows(7, range(50)))
    log.end(["s"])
    log.close()
    (batch,) = batches(tmp_path)
    ensure_divided(tmp_path, batch, Counter([*range(30_000), *range(50)]))
    undivided = [g for g in batch.row_groups if (g.first, g.end) == (0, PARTITIONS)]
    assert sum(group.rows for group in undivided) == 4000
    others = [group for group in batch.row_groups if group not in undivided]
    assert {(g.first, g.end) for g in others} == {
        (0, 3), (3, 5), (5, 8), (8, 10), (10, 13), (13, 15), (15, 18), (18, 20)
    }  # fmt: skip
    # All but the last of each range have enough rows.
    assert sum(group.rows < 1500 for group in others) <= 8


def test_few_rows_are_written_as_without_partitions(tmp_path: Path) -> None:
    found = []
    for name, spec in (("a", SPEC), ("b", replace(SPEC, partitioning=None))):
        log = StreamLog(tmp_path / name, [spec])
        for begin in range(0, 6000, 2000):
            append(log, rows(7, range(begin, begin + 2000)))
        append(log, rows([7, 8, 7], range(3)))
        log.end(["s"])
        log.close()
        found.append(
            [
                (b.row_groups, (tmp_path / name / b.path).read_bytes())
                for b in batches(tmp_path / name)
            ]
        )
    assert found[0] == found[1]
    assert [row_groups for row_groups, _ in found[0]] == [()]


@pytest.mark.usefixtures("few")
def test_a_segment_after_a_large_one_is_divided_early(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    sizes = (6000, 3000, 3000, 600, 3000)
    for epoch, count in enumerate(sizes):
        for begin in range(0, count, 1500):
            append(log, rows(epoch, range(begin, begin + min(1500, count - begin))))
        beat = StreamHeartbeat("s", (Punctuation("tb", epoch + 1),))
        log.write_heartbeat(epoch, epoch, [beat])
    log.end(["s"])
    log.close()
    found = batches(tmp_path)
    assert [batch.rows for batch in found] == list(sizes)
    # Only the second follows a large one.
    assert [bool(batch.row_groups) for batch in found] == [True, True, False, False, False]
    ensure_divided(tmp_path, found[1], Counter(range(3000)))
    undivided = [g for g in found[1].row_groups if (g.first, g.end) == (0, PARTITIONS)]
    assert sum(group.rows for group in undivided) == 1500


@pytest.mark.usefixtures("few")
def test_columns_with_null_and_text_are_divided_when_they_are_sealed(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    for begin in range(0, 6000, 1000):
        text = pa.array([None if n % 3 else b"x" * n for n in range(1000)], pa.binary())
        append(log, rows(7, range(begin, begin + 1000), text=text))
    log.end(["s"])
    log.close()
    (batch,) = batches(tmp_path)
    assert len(batch.row_groups) == 8
    ensure_divided(tmp_path, batch, Counter(range(6000)))
    texts = pq.read_table(tmp_path / batch.path, columns=["key", "text"]).to_pylist()
    assert all(
        row["text"] == (None if row["key"] % 1000 % 3 else b"x" * (row["key"] % 1000))
        for row in texts
    )


@pytest.mark.usefixtures("few")
def test_rows_of_several_epochs_keep_their_partitions(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    for begin in range(0, 20_000, 2000):
        append(log, rows([n % 2 for n in range(2000)], range(begin, begin + 2000)))
    log.write_heartbeat(1, 1, [StreamHeartbeat("s", (Punctuation("tb", 1),))])
    log.end(["s"])
    log.close()
    even, odd = batches(tmp_path)
    ensure_divided(tmp_path, even, Counter(range(0, 20_000, 2)))
    ensure_divided(tmp_path, odd, Counter(range(1, 20_000, 2)))


@pytest.mark.usefixtures("few")
def test_a_resumed_log_leaves_late_rows_out_and_divides_the_others(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    append(log, rows(1, range(10)))
    log.write_heartbeat(1, 1, [StreamHeartbeat("s", (Punctuation("tb", 2),))])
    log.close()
    log = StreamLog(tmp_path, [SPEC])
    for begin in range(0, 20_000, 2000):
        append(log, rows([n % 2 + 1 for n in range(2000)], range(begin, begin + 2000)))
    assert log.late_tuples("s") == 10_000
    log.end(["s"])
    log.close()
    ensure_divided(tmp_path, batches(tmp_path)[-1], Counter(range(1, 20_000, 2)))


@pytest.mark.usefixtures("few")
def test_whole_rows_of_a_relay_are_divided_by_their_values(tmp_path: Path) -> None:
    log = StreamLog(tmp_path, [SPEC])
    table = pa.Table.from_batches([rows(7, range(9000))])
    beat = StreamHeartbeat("s", (Punctuation("tb", 8),))
    log.write_rows(table, (Extent("tb", 7, 7),), 1, 1, beat)
    log.close()
    (batch,) = batches(tmp_path)
    assert len(batch.row_groups) == 8
    ensure_divided(tmp_path, batch, Counter(range(9000)))


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize("has_function", [False, True])
def test_merged_batches_are_divided(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_function: bool
) -> None:
    monkeypatch.setattr(merging, "FEWEST_PARTS", 8)
    spec = SPEC
    if has_function:
        # A function of the key that changes nothing.
        same = PartitionMember((call("add_int", KEY, Literal(0, GsqlType.INT)),))
        spec = replace(SPEC, partitioning=replace(BY_KEY, members=(same,)))
    budget = ShedOldest(1 << 30, 1000, reserve_bytes=0)
    log = StreamLog(tmp_path, [spec], consumers=[Consumer("job")], budget=budget)
    for t in range(12):
        append(log, rows(t, range(1000 * t, 1000 * t + 1000)))
        log.write_heartbeat(t, t, [StreamHeartbeat("s", (Punctuation("tb", t + 1),))])
    log._merger.wait()
    log.close()
    largest = max(batches(tmp_path), key=lambda batch: batch.rows)
    assert largest.rows >= 8000
    assert len(largest.row_groups) == 8
    first = 1000 * largest.extents[0].least
    ensure_divided(tmp_path, largest, Counter(range(first, first + largest.rows)))


@pytest.mark.parametrize("partitions", [2, 3, 7, 64, 100, 1024])
def test_ranges_cover_all_partitions_once(partitions: int) -> None:
    ranges = Ranges(replace(BY_KEY, partitions=partitions))
    bounds = [ranges.bounds(number) for number in range(ranges.count)]
    assert [n for first, end in bounds for n in range(first, end)] == list(range(partitions))
    sizes = [end - first for first, end in bounds]
    assert max(sizes) - min(sizes) <= 1
    batch = rows(7, range(5 * partitions))
    found = dict(ranges.divided(batch))
    assert len(found) == ranges.count
    for number, part in found.items():
        first, end = bounds[number]
        keys = [
            key for key in batch["key"].to_pylist() if first <= partition(key, partitions) < end
        ]
        assert part["key"].to_pylist() == keys
