from __future__ import annotations

import fcntl
import os
import stat
from typing import TYPE_CHECKING

import pytest

from gscope.cli.run_dir import RunDir
from gscope.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path


def test_a_run_folder_is_private_and_gone_afterwards(tmp_path: Path) -> None:
    with RunDir(tmp_path / "work") as run_dir:
        assert stat.S_IMODE(run_dir.path.stat().st_mode) == 0o700
        assert stat.S_IMODE((tmp_path / "work").stat().st_mode) == 0o700
    assert not run_dir.path.exists()


def test_folders_of_killed_runs_are_swept_away_and_those_of_living_ones_kept(
    tmp_path: Path,
) -> None:
    dead = tmp_path / "run-dead"
    dead.mkdir()
    (dead / "lock").touch()
    half_removed = tmp_path / "run-half-removed"
    half_removed.mkdir()
    with RunDir(tmp_path) as living, RunDir(tmp_path):
        assert living.path.exists()
        assert not dead.exists()
        assert not half_removed.exists()


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UsageError, match="name another with --work-dir"):
        RunDir(tmp_path / "file")


def test_cleaners_of_temporary_files_keep_out_of_a_folder_in_use(tmp_path: Path) -> None:
    with RunDir(tmp_path) as run_dir:
        run_dir.is_kept = True
        folder = os.open(run_dir.path, os.O_RDONLY)
        with pytest.raises(BlockingIOError):
            fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    os.close(folder)
