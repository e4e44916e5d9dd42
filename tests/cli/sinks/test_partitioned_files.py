"""Folders by time: every row once after a kill at any moment, nothing visible that is not whole."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest

from gscope.cli.config.partition_unit import PartitionUnit
from gscope.cli.sinks import open_parts, part_files, partitioned_files
from gscope.cli.sinks.growing_files import LiveFolder
from gscope.cli.sinks.replay_files import FolderSink
from gscope.cli.sinks.time_partitions import TimePartitions
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

HOUR = 3600
SCHEMA = pa.schema({"time": pa.int64(), "n": pa.int64()})


def rows(*times: int) -> pa.Table:
    """Rows at these hours since 1970, which are also their numbers."""
    return pa.table({"time": [HOUR * t for t in times], "n": list(times)}, SCHEMA)


def by(unit: str = "hour") -> dict[str, TimePartitions]:
    return {"q": TimePartitions(PartitionUnit(unit), "time", 1_000_000_000, is_integer=True)}


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def sinks() -> Iterator[list[LiveFolder]]:
    """What stands for processes that were killed; closed at the end."""
    opened: list[LiveFolder] = []
    yield opened
    for sink in opened:
        sink.close(is_complete=False)


def live(folder: Path, before: dict[str, Any] | None = None, unit: str = "hour") -> LiveFolder:
    sink = LiveFolder(folder, "parquet", {"q": SCHEMA}, before or {}, Clock(), by(unit))
    sink.begin("q", SCHEMA)
    return sink


def settled(sink: LiveFolder, *, is_last: bool = True) -> dict[str, Any]:
    """What would be on record, after JSON."""
    position = sink.settle(is_last=is_last)
    assert position is not None
    return dict(json.loads(json.dumps(position)))


def killed(sink: LiveFolder) -> None:
    """As the end of its process would, let its locks go and nothing else."""
    for lock in sink._locks.values():
        lock.close()


def seen(folder: Path) -> list[tuple[int, int]]:
    """What DuckDB reads: the number of each row, and the hour since 1970 of its partition."""
    if not any(folder.glob("q/date*")):
        return []
    found = duckdb.connect().sql(
        "SELECT n, epoch(date)::BIGINT // 3600 + hour FROM"
        f" read_parquet('{folder}/q/**/*.parquet', hive_partitioning = true) ORDER BY n"
    )
    return found.fetchall()


def once(*times: int) -> list[tuple[int, int]]:
    return [(t, t) for t in times]


def hidden(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob(".*")]


MOMENTS = ("open", "settled", "recorded", "one shown", "shown")


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_run_killed_at_any_moment_shows_every_row_once(
    tmp_path: Path, sinks: list[LiveFolder], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = live(tmp_path)
    sinks.append(first)
    first.write("q", rows(1, 2))
    before = settled(first)
    first.publish()
    first.write("q", rows(2, 3, 30))
    on_record = before
    if moment != "open":
        position = settled(first)
        if moment != "settled":
            on_record = position
    if moment == "one shown":
        shown = open_parts.publish
        monkeypatch.setattr(partitioned_files, "publish", once_then(shown))
        with pytest.raises(GscopeError, match="killed"):
            first.publish()
        monkeypatch.setattr(partitioned_files, "publish", shown)
    elif moment == "shown":
        first.publish()
    killed(first)
    expected = {"open": once(1, 2), "settled": once(1, 2), "recorded": once(1, 2)}
    expected |= {"one shown": once(1, 2, 2), "shown": once(1, 2, 2, 3, 30)}
    assert seen(tmp_path) == expected[moment]
    second = live(tmp_path, on_record)
    sinks.append(second)
    assert list(tmp_path.rglob(".partial")) == []
    if on_record is before:
        second.write("q", rows(2, 3, 30))
    second.write("q", rows(3))
    settled(second)
    second.publish()
    second.close(is_complete=True)
    assert seen(tmp_path) == once(1, 2, 2, 3, 3, 30)
    assert hidden(tmp_path) == []


def once_then(publish: Any) -> Any:
    """``publish`` that ends as a kill would after its first file."""
    calls: list[str] = []

    def wrapped(staging: Path, name: str, folder: Path) -> None:
        if calls:
            raise OSError(4, "killed")
        calls.append(name)
        publish(staging, name, folder)

    return wrapped


def test_recorded_parts_stay_when_they_cannot_be_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = live(tmp_path)
    first.write("q", rows(1, 2))
    settled(first)
    shown = open_parts.publish
    monkeypatch.setattr(partitioned_files, "publish", once_then(shown))
    with pytest.raises(GscopeError, match=f"cannot write {tmp_path / 'q'}"):
        first.publish()
    monkeypatch.setattr(partitioned_files, "publish", shown)
    # The run ends with this error, and delivers what it still holds, which is recorded or not.
    first.write("q", rows(5))
    on_record = settled(first)
    first.write("q", rows(6))
    first.close(is_complete=False)
    assert seen(tmp_path) == once(1)
    second = live(tmp_path, on_record)
    assert seen(tmp_path) == once(1, 2, 5)
    second.close(is_complete=True)
    assert hidden(tmp_path) == []


def test_parts_appear_when_they_are_large_or_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(partitioned_files, "PART_ROWS", 3)
    clock = Clock()
    sink = LiveFolder(tmp_path, "parquet", {"q": SCHEMA}, {}, clock, by())
    sink.write("q", rows(1, 2))
    assert sink.settle(is_last=False) is None
    sink.write("q", rows(1))
    settled(sink, is_last=False)
    assert seen(tmp_path) == []
    sink.publish()
    assert seen(tmp_path) == once(1, 1, 2)
    assert len(list(tmp_path.rglob("*.parquet"))) == 2
    sink.write("q", rows(2))
    clock.now_s = part_files.PART_S
    settled(sink, is_last=False)
    sink.publish()
    sink.close(is_complete=True)
    assert seen(tmp_path) == once(1, 1, 2, 2)
    assert len(list(tmp_path.rglob("*.parquet"))) == 3


def test_few_files_are_open_at_once_and_no_row_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(open_parts, "MOST_OPEN", 3)
    sink = live(tmp_path)
    for _ in range(3):
        sink.write("q", rows(*range(8)))
        of_answer = sink._files["q"]
        assert isinstance(of_answer, partitioned_files.PartitionedParts)
        assert len(of_answer._parts._open) == 3
    settled(sink)
    sink.publish()
    sink.close(is_complete=True)
    assert seen(tmp_path) == once(*(n for n in range(8) for _ in range(3)))
    assert len(list(tmp_path.rglob("*.parquet"))) == 24


def test_small_deliveries_become_one_row_group(tmp_path: Path) -> None:
    sink = live(tmp_path)
    for _ in range(50):
        sink.write("q", rows(1))
    settled(sink)
    sink.publish()
    sink.close(is_complete=True)
    found = duckdb.connect().sql(
        f"SELECT count(DISTINCT row_group_id), max(num_values) FROM"
        f" parquet_metadata('{tmp_path}/q/**/*.parquet')"
    )
    assert found.fetchall() == [(1, 50)]


def test_a_later_run_adds_parts_but_no_other_partitions(tmp_path: Path) -> None:
    for number in (1, 2):
        sink = live(tmp_path)
        sink.write("q", rows(number))
        settled(sink)
        sink.publish()
        sink.close(is_complete=True)
    assert seen(tmp_path) == once(1, 2)
    for unit in ("day", "minute", "month"):
        with pytest.raises(UsageError, match="q is partitioned by date and hour, and not by"):
            live(tmp_path, unit=unit)
    assert seen(tmp_path) == once(1, 2)


def test_a_run_without_rows_leaves_nothing(tmp_path: Path) -> None:
    live(tmp_path).close(is_complete=False)
    assert list(tmp_path.iterdir()) == []
    sink = live(tmp_path)
    sink.write("q", rows(1))
    sink.close(is_complete=False)
    assert list(tmp_path.iterdir()) == []


def replayed(folder: Path, tables: Sequence[pa.Table], *, is_complete: bool = True) -> None:
    sink = FolderSink(folder, "parquet", ["q"], by())
    sink.begin("q", SCHEMA)
    for table in tables:
        sink.write("q", table)
    assert seen(folder) == []
    sink.close(is_complete=is_complete)


def test_a_replay_shows_all_partitions_at_once_or_none(tmp_path: Path) -> None:
    replayed(tmp_path, [rows(1, 2)], is_complete=False)
    assert list(tmp_path.iterdir()) == []
    replayed(tmp_path, [rows(1, 2), rows(2, 40)])
    assert seen(tmp_path) == once(1, 2, 2, 40)
    assert hidden(tmp_path) == []
    with pytest.raises(UsageError, match="has partitions already, and a replay does not add"):
        FolderSink(tmp_path, "parquet", ["q"], by())
    assert seen(tmp_path) == once(1, 2, 2, 40)
    assert hidden(tmp_path) == []


def test_what_a_killed_replay_left_goes(tmp_path: Path) -> None:
    first = FolderSink(tmp_path, "parquet", ["q"], by())
    first.begin("q", SCHEMA)
    first.write("q", rows(1, 2))
    (writer,) = first._writers.values()
    assert isinstance(writer, partitioned_files.PartitionedAnswer)
    writer._lock.close()
    replayed(tmp_path, [rows(3)])
    assert seen(tmp_path) == once(3)
    assert hidden(tmp_path) == []
    assert writer._parts is not None
    writer._parts.abandon()


def test_an_empty_answer_of_a_replay_has_its_columns(tmp_path: Path) -> None:
    replayed(tmp_path, [])
    found = duckdb.connect().sql(
        f"SELECT * FROM read_parquet('{tmp_path}/q/**/*.parquet', hive_partitioning = true)"
    )
    assert found.columns == ["time", "n", "date", "hour"]
    assert found.fetchall() == []


def test_a_month_is_text_to_duckdb(tmp_path: Path) -> None:
    sink = FolderSink(tmp_path, "parquet", ["q"], by("month"))
    sink.begin("q", SCHEMA)
    sink.write("q", rows(1, 32 * 24))
    sink.close(is_complete=True)
    found = duckdb.connect().sql(
        "SELECT n, month FROM"
        f" read_parquet('{tmp_path}/q/**/*.parquet', hive_partitioning = true) ORDER BY n"
    )
    assert found.fetchall() == [(1, "1970-01"), (32 * 24, "1970-02")]


def test_live_and_replay_cannot_write_one_folder(tmp_path: Path) -> None:
    sink = live(tmp_path)
    with pytest.raises(UsageError, match=r"another run is writing .*q\.parquet"):
        FolderSink(tmp_path, "parquet", ["q"], by())
    sink.close(is_complete=True)
    assert list(tmp_path.iterdir()) == []
