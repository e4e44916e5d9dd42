"""A disk that is full, by us or by others.

A live log goes on, a replay's says so in one sentence.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from tests.support.requirements import needs, needs_root, skip_as_refused

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.budget import Budget, ShedOldest, WaitForRoom
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.sealing import WRITTEN_AT_ONCE_ROWS
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Extent, Heartbeat, Punctuation, Shed

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPEC = StreamSpec("a", (("t", Direction.INCREASING),), epoch="t", packets="count0")
DISK_BYTES = 1 << 20
LIVE = ShedOldest(1 << 30, reserve_bytes=32 << 10)

pytestmark = [needs_root, needs("mount")]


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of a megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "tmpfs", str(folder)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        skip_as_refused("mounting a small disk")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def open_log(disk: Path, budget: Budget = LIVE) -> StreamLog:
    return StreamLog(disk / "log", [SPEC], consumers=[Consumer("job")], budget=budget)


def second(log: StreamLog, t: int, rows: int = 500) -> None:
    columns = {"t": pa.array([t] * rows, pa.int64()), "count0": pa.array([2] * rows, pa.int64())}
    log.append("a", pa.record_batch(columns), (Extent("t", t, t),))
    log.write_heartbeat(t, t, [StreamHeartbeat("a", (Punctuation("t", t + 1),))])


def seconds(log: StreamLog, count: int) -> None:
    for t in range(count):
        second(log, t)


def fill(disk: Path) -> Path:
    """Another process takes every byte that is left."""
    path = disk / "of-another-process"
    with path.open("ab", buffering=0) as file:
        for size in (1 << 16, 1 << 12, 1):
            try:
                while file.write(bytes(size)):
                    pass
            except OSError:
                continue
    return path


def ensure_sum(log: StreamLog, tuples: int) -> None:
    stats = log.stats
    assert stats.tuples_total == tuples
    assert stats.released_tuples_total + stats.waiting_tuples + stats.shed_tuples_total == tuples
    assert stats.shed_packets_total == 2 * stats.shed_tuples_total


@pytest.mark.parametrize("rows", [500, WRITTEN_AT_ONCE_ROWS + 1])
def test_a_live_log_sheds_when_its_disk_is_full(disk: Path, rows: int) -> None:
    log = open_log(disk)
    for t in range(200):
        second(log, t, rows)
    ensure_sum(log, 200 * rows)
    assert log.stats.shed_tuples_total > 0
    assert log.stats.waiting_tuples > 0
    log.close()
    again = open_log(disk)
    ensure_sum(again, 200 * rows)
    again.close()


@pytest.mark.parametrize("rows", [500, WRITTEN_AT_ONCE_ROWS + 1])
def test_a_disk_that_others_fill_stops_nothing_and_all_goes_on_when_there_is_room(
    disk: Path, rows: int
) -> None:
    log = open_log(disk)
    second(log, 0, rows)
    theirs = fill(disk)
    for t in range(1, 50):
        second(log, t, rows)
        fill(disk)
    log.acknowledge("job", {})
    assert log.stats.full_disk_total > 0
    theirs.unlink()
    second(log, 50, rows)
    ensure_sum(log, 51 * rows)
    *_, before, last = log.read({"a": log._held["a"].base}, timeout_s=0)
    assert isinstance(last, Heartbeat)
    assert last.punctuations == (Punctuation("t", 51),)
    assert not isinstance(before, Shed)
    log.acknowledge("job", {"a": last.sequence + 1})
    log.end(["a"])
    log.close()
    again = open_log(disk)
    ensure_sum(again, 51 * rows)
    assert again.is_ended
    again.close()


def test_the_end_on_a_full_disk_is_one_sentence(disk: Path) -> None:
    log = open_log(disk)
    fill(disk)
    with pytest.raises(StreamError, match="the disk is full"):
        log.end(["a"])
    log.close()


def test_a_replay_on_a_full_disk_is_one_sentence(disk: Path) -> None:
    log = open_log(disk, WaitForRoom(1 << 30))
    with pytest.raises(StreamError, match="no space left on device"):
        seconds(log, 300)
    log.close()


def test_a_folder_that_cannot_be_written_is_one_sentence(disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
    with pytest.raises(StreamError, match=r"cannot make the folder .*: read-only file system"):
        open_log(disk)
