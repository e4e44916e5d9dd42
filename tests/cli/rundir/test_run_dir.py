from __future__ import annotations

import fcntl
import os
import shutil
import stat
import subprocess
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from tests.support.requirements import needs_root

from gscope.cli.rundir import lock as run_lock
from gscope.cli.rundir.records import read_run
from gscope.cli.rundir.run_dir import RunDir
from gscope.errors import UsageError
from gscope.queries.run_folder.layout import RUN_FILE

if TYPE_CHECKING:
    from pathlib import Path

OTHER = 54321


def test_a_run_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with RunDir(tmp_path / "work") as run_dir:
        assert stat.S_IMODE(run_dir.path.stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700
    assert not run_dir.path.exists()


def left_behind(root: Path, name: str) -> Path:
    """The folder of a replay whose supervisor was killed."""
    with RunDir(root, name) as run_dir:
        run_dir.is_kept = True
        (run_dir.path / "log").mkdir()
    return run_dir.path


def test_folders_of_killed_runs_are_swept_away_and_those_of_living_ones_kept(
    tmp_path: Path,
) -> None:
    dead = left_behind(tmp_path, "dead")
    half_removed = left_behind(tmp_path, "half-removed")
    (half_removed / "lock").unlink()
    with RunDir(tmp_path) as living, RunDir(tmp_path):
        assert living.path.exists()
        assert not dead.exists()
        assert not half_removed.exists()


def test_a_run_is_taken_over_while_its_killed_supervisor_still_exits(tmp_path: Path) -> None:
    """The kernel closes the pipes to its children first, and its lock later: here by 0.2 s."""
    folder = left_behind(tmp_path, "flows")
    held = run_lock.take(folder)
    assert held is not None
    dead = subprocess.Popen(["true"])
    os.waitid(os.P_PID, dead.pid, os.WEXITED | os.WNOWAIT)
    record = read_run(folder)
    assert record is not None
    (folder / RUN_FILE).write_text(replace(record, pid=dead.pid).to_json())
    closing = threading.Timer(0.2, os.close, (held,))
    closing.start()
    with RunDir(tmp_path, "flows", is_exact=True) as run_dir:
        assert run_dir.resumed is not None
    closing.join()
    dead.wait()


def test_a_run_whose_supervisor_lives_is_not_taken_over(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows"), pytest.raises(UsageError, match="run flows is active"):
        RunDir(tmp_path, "flows", is_exact=True)


RECORDS = [None, "", "{}", '{"schema": 1, "name": "2025"}', '["run"]']


@pytest.mark.parametrize("record", RECORDS)
def test_folders_of_users_are_never_touched_whatever_their_name(
    tmp_path: Path, record: str | None
) -> None:
    theirs = tmp_path / "run-2025"
    theirs.mkdir()
    (theirs / "notes").write_text("keep")
    if record is not None:
        (theirs / "run.json").write_text(record)
    empty = tmp_path / "run-empty"
    empty.mkdir()
    inode = empty.stat().st_ino
    for name in ("2025", "empty"):
        with RunDir(tmp_path, name) as run_dir:
            assert run_dir.name == f"{name}-2"
    assert (theirs / "notes").read_text() == "keep"
    assert not (theirs / "lock").exists()
    assert empty.stat().st_ino == inode


@pytest.mark.parametrize("name", ["2025", "empty", "link"])
def test_a_users_folder_is_not_taken_for_a_run_that_was_asked_for(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "run-2025").mkdir()
    (tmp_path / "run-2025" / "notes").write_text("keep")
    (tmp_path / "run-empty").mkdir()
    (tmp_path / "run-link").symlink_to("run-2025")
    with pytest.raises(UsageError, match="is not a run folder of this user"):
        RunDir(tmp_path, name, is_exact=True)
    assert (tmp_path / "run-2025" / "notes").read_text() == "keep"
    assert (tmp_path / f"run-{name}").exists()


def test_links_to_folders_of_runs_are_not_followed(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    dead = left_behind(elsewhere, "dead")
    (tmp_path / "wd").mkdir(mode=0o700)
    (tmp_path / "wd" / "run-dead").symlink_to(dead)
    with RunDir(tmp_path / "wd"):
        assert (dead / "log").is_dir()


@needs_root
def test_a_run_of_another_user_is_left_alone(tmp_path: Path) -> None:
    dead = left_behind(tmp_path, "dead")
    os.chown(dead, OTHER, OTHER)
    with RunDir(tmp_path):
        assert (dead / "log").is_dir()


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o770])
def test_a_work_dir_that_others_can_write_is_refused(tmp_path: Path, mode: int) -> None:
    root = tmp_path / "wd"
    root.mkdir()
    root.chmod(mode)
    with pytest.raises(UsageError, match=r"other users can write .* name another with --work-dir"):
        RunDir(root)
    assert list(root.iterdir()) == []


@needs_root
def test_a_work_dir_that_another_user_has_prepared_is_refused(tmp_path: Path) -> None:
    mine = tmp_path / "data"
    dead = left_behind(mine, "dead")
    shared = tmp_path / "tmp"
    shared.mkdir()
    shared.chmod(0o1777)
    (shared / "gscope-0").symlink_to(mine)
    os.lchown(shared / "gscope-0", OTHER, OTHER)
    with pytest.raises(UsageError, match="belongs to another user"):
        RunDir(shared / "gscope-0")
    assert dead.exists()
    (shared / "theirs").mkdir(mode=0o700)
    os.chown(shared / "theirs", OTHER, OTHER)
    with pytest.raises(UsageError, match="belongs to another user"):
        RunDir(shared / "theirs")


def test_a_run_folder_that_cannot_be_deleted_as_a_whole_can_be_swept_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A supervisor that is killed in the middle of deleting leaves the record for last."""
    dead = left_behind(tmp_path, "dead")
    (dead / "summary.txt").write_text("whatever")

    def killed(path: Path, **_: object) -> None:
        raise KeyboardInterrupt(path)

    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            RunDir(tmp_path)
    assert dead.exists()
    with RunDir(tmp_path):
        assert not dead.exists()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="name another work dir with --work-dir"):
        RunDir(tmp_path / "file")


def test_cleaners_of_temporary_files_keep_out_of_a_folder_in_use(tmp_path: Path) -> None:
    with RunDir(tmp_path) as run_dir:
        run_dir.is_kept = True
        folder = os.open(run_dir.path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
