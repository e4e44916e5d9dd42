"""Files of live runs.

They grow, and a run that was killed at any moment goes on where it was on record.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.cli.sinks import part_files
from gscope.cli.sinks.growing_files import LiveFolder
from gscope.cli.sinks.replay_files import FolderSink
from gscope.errors import GscopeError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TABLE = pa.table({"n": [1, 2], "t": ["a", None]})
OTHER = pa.table({"n": [3], "t": ["b"]})


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def sinks() -> Iterator[list[LiveFolder]]:
    """What is opened here is closed, also what stands for a process that was killed."""
    opened: list[LiveFolder] = []
    yield opened
    for sink in opened:
        sink.close(is_complete=False)


def opened(
    folder: Path, kind: str, before: dict[str, Any] | None = None, **more: Any
) -> LiveFolder:
    sink = LiveFolder(folder, kind, {"q": TABLE.schema}, before or {}, **more)
    sink.begin("q", TABLE.schema)
    return sink


def settled(sink: LiveFolder, *, is_last: bool = False) -> dict[str, Any]:
    """What would be on record, after JSON."""
    position = sink.settle(is_last=is_last)
    assert position is not None
    return dict(json.loads(json.dumps(position)))


def killed(sink: LiveFolder) -> None:
    """As the end of its process would, let its locks go and nothing else."""
    for lock in sink._locks.values():
        lock.close()


def visible(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("[!.]*"))


def part_rows(folder: Path) -> list[int]:
    names = sorted(folder.glob("q-*.parquet"), key=lambda path: path.name.split("-")[-1])
    return [n for name in names for n in pq.read_table(name)["n"].to_pylist()]


@pytest.mark.parametrize(("kind", "heading"), [("csv", "n,t\n"), ("ndjson", "")])
def test_rows_are_there_as_soon_as_they_are_written(
    tmp_path: Path, kind: str, heading: str
) -> None:
    sink = opened(tmp_path, kind)
    path = tmp_path / f"q.{kind}"
    assert path.read_text() == heading
    sink.write("q", TABLE)
    assert len(path.read_text().splitlines()) == 2 + bool(heading)
    sink.close(is_complete=True)
    assert visible(tmp_path) == [f"q.{kind}"] == [path.name for path in tmp_path.iterdir()]


def test_what_is_not_on_record_is_cut_off_and_comes_again(
    tmp_path: Path, sinks: list[LiveFolder]
) -> None:
    first = opened(tmp_path, "csv")
    sinks.append(first)
    first.write("q", TABLE)
    on_record = settled(first)
    first.write("q", OTHER)
    killed(first)
    second = opened(tmp_path, "csv", on_record)
    second.write("q", OTHER)
    second.close(is_complete=True)
    assert (tmp_path / "q.csv").read_text() == "n,t\n1,a\n2,\n3,b\n"


def test_a_new_run_goes_on_in_the_file(tmp_path: Path) -> None:
    for table in (TABLE, OTHER):
        sink = opened(tmp_path, "csv")
        sink.write("q", table)
        sink.close(is_complete=True)
    assert (tmp_path / "q.csv").read_text() == "n,t\n1,a\n2,\n3,b\n"


@pytest.mark.parametrize("is_killed", [False, True])
def test_what_another_run_wrote_meanwhile_is_not_cut_off(
    tmp_path: Path, sinks: list[LiveFolder], *, is_killed: bool
) -> None:
    first = opened(tmp_path, "csv")
    sinks.append(first)
    first.write("q", TABLE)
    on_record = settled(first)
    with (tmp_path / "q.csv").open("a") as torn:
        torn.write("4,to")  # killed within a line, which is not on record
    killed(first)
    second = opened(tmp_path, "csv")
    sinks.append(second)
    second.write("q", OTHER)
    settled(second)
    killed(second) if is_killed else second.close(is_complete=True)
    again = opened(tmp_path, "csv", on_record)
    again.write("q", OTHER)
    again.close(is_complete=True)
    assert (tmp_path / "q.csv").read_text() == "n,t\n1,a\n2,\n3,b\n3,b\n"


def test_a_file_that_was_moved_away_is_left_alone(tmp_path: Path) -> None:
    first = opened(tmp_path, "csv")
    first.write("q", TABLE)
    on_record = settled(first)
    first.close(is_complete=False)
    (tmp_path / "q.csv").rename(tmp_path / "q.csv.1")
    (tmp_path / "q.csv").write_text("n,t\n" + "7,x\n" * 10)
    second = opened(tmp_path, "csv", on_record)
    second.close(is_complete=True)
    assert (tmp_path / "q.csv").read_text().count("7,x") == 10


@pytest.mark.parametrize("is_kept", [True, False])
def test_rows_after_a_rotation_begin_a_new_file(tmp_path: Path, is_kept: bool) -> None:
    sink = opened(tmp_path, "csv")
    sink.write("q", TABLE)
    (tmp_path / "q.csv").rename(tmp_path / "q.csv.1")
    if not is_kept:
        (tmp_path / "q.csv.1").unlink()
    sink.write("q", OTHER)
    position = settled(sink)["files"]["q"]
    sink.close(is_complete=True)
    assert (tmp_path / "q.csv").read_text() == "n,t\n3,b\n"
    assert position == {"size": 8, "inode": (tmp_path / "q.csv").stat().st_ino}
    assert not is_kept or (tmp_path / "q.csv.1").read_text() == "n,t\n1,a\n2,\n"


def test_rows_of_another_answer_are_not_mixed_in(tmp_path: Path) -> None:
    (tmp_path / "q.csv").write_text("time,srcIP\n1,10.0.0.1\n")
    with pytest.raises(UsageError, match=r"q.csv differs in its columns.*move it away"):
        opened(tmp_path, "csv")
    assert [path.name for path in tmp_path.iterdir()] == ["q.csv"]


def test_a_run_that_never_captured_leaves_no_empty_file(tmp_path: Path) -> None:
    LiveFolder(tmp_path, "csv", {"q": TABLE.schema}, {}).close(is_complete=False)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_parts_are_seen_when_they_are_whole_and_on_record(tmp_path: Path, kind: str) -> None:
    clock = Clock()
    sink = opened(tmp_path, kind, monotonic=clock)
    sink.write("q", TABLE)
    assert sink.settle(is_last=False) is None
    clock.now_s = part_files.PART_S
    sink.write("q", OTHER)
    assert settled(sink)["files"]["q"]["finished"].endswith(f"-000001.{kind}")
    assert visible(tmp_path) == []
    sink.publish()
    (name,) = visible(tmp_path)
    assert name.startswith("q-20")
    sink.write("q", OTHER)
    settled(sink, is_last=True)
    sink.publish()
    sink.close(is_complete=True)
    assert [name[-len(f"000001.{kind}") :] for name in visible(tmp_path)] == [
        f"000001.{kind}",
        f"000002.{kind}",
    ]
    assert visible(tmp_path) == sorted(path.name for path in tmp_path.iterdir())


def test_a_large_part_is_finished(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(part_files, "PART_ROWS", 3)
    sink = opened(tmp_path, "parquet", monotonic=Clock())
    sink.write("q", TABLE)
    assert sink.settle(is_last=False) is None
    sink.write("q", TABLE)
    assert sink.settle(is_last=False) is not None
    sink.publish()
    sink.close(is_complete=False)
    assert part_rows(tmp_path) == [1, 2, 1, 2]


@pytest.mark.parametrize("moment", ["open", "settled", "recorded", "published"])
def test_parts_of_a_run_killed_at_any_moment_hold_every_row_once(
    tmp_path: Path, sinks: list[LiveFolder], moment: str
) -> None:
    first = opened(tmp_path, "parquet")
    sinks.append(first)
    on_record: dict[str, Any] = {}
    first.write("q", TABLE)
    if moment != "open":
        position = settled(first, is_last=True)
        if moment != "settled":
            on_record = position
        if moment == "published":
            first.publish()
    killed(first)
    second = opened(tmp_path, "parquet", on_record)
    if not on_record:
        second.write("q", TABLE)
    second.write("q", OTHER)
    settled(second, is_last=True)
    second.publish()
    second.close(is_complete=True)
    assert part_rows(tmp_path) == [1, 2, 3]


def test_a_part_that_was_not_finished_goes(tmp_path: Path) -> None:
    sink = opened(tmp_path, "arrow")
    sink.write("q", TABLE)
    sink.close(is_complete=False)
    assert list(tmp_path.iterdir()) == []


def test_a_position_in_another_folder_means_nothing(tmp_path: Path) -> None:
    first = opened(tmp_path / "a", "csv")
    on_record = settled(first)
    first.close(is_complete=True)
    second = opened(tmp_path / "b", "csv", on_record)
    second.write("q", OTHER)
    second.close(is_complete=True)
    assert (tmp_path / "b" / "q.csv").read_text() == "n,t\n3,b\n"


def test_live_and_replay_cannot_write_one_file(tmp_path: Path) -> None:
    live = opened(tmp_path, "csv")
    with pytest.raises(UsageError, match=r"another run is writing .*q\.csv"):
        FolderSink(tmp_path, "csv", ["q"])
    with pytest.raises(UsageError, match="another run is writing"):
        opened(tmp_path, "csv")
    live.close(is_complete=True)
    FolderSink(tmp_path, "csv", ["q"]).close(is_complete=False)
    assert visible(tmp_path) == ["q.csv"]


def test_what_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="cannot write to"):
        opened(tmp_path / "file" / "below", "csv")
    with pytest.raises(UsageError, match="tables cannot be written to files"):
        opened(tmp_path, "table")
    (tmp_path / "q.ndjson").symlink_to("/dev/full")
    sink = opened(tmp_path, "ndjson")
    with pytest.raises(GscopeError, match="no space left"):
        sink.write("q", TABLE)
    sink.close(is_complete=False)
