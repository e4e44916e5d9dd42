from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gscope.cli.rundir import run_log
from gscope.cli.rundir.run_dir import RunDir
from gscope.cli.rundir.run_log import RunLog

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_every_line_has_a_time_and_says_who_spoke(tmp_path: Path) -> None:
    log = RunLog(tmp_path)
    log.note("capture", "one\ntwo %s")
    log.close()
    log.note("capture", "too late")
    lines = (tmp_path / "logs" / "run.log").read_text().splitlines()
    assert [line.split(" ", 1)[1] for line in lines] == ["capture: one", "capture: two %s"]
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z ", line) for line in lines)


def test_a_child_that_floods_it_takes_bounded_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_log, "MAX_FILE_BYTES", 10_000)
    log = RunLog(tmp_path)
    for number in range(100):
        log.note("job", f"{number} " + "x" * 10_000)
    log.close()
    files = list((tmp_path / "logs").iterdir())
    assert len(files) == 1 + run_log.KEPT_FILES
    assert sum(file.stat().st_size for file in files) <= 5 * 10_000
    assert "99 xxx" in (tmp_path / "logs" / "run.log").read_text()


def test_changes_of_the_run_are_noted(tmp_path: Path) -> None:
    with RunDir(tmp_path, "flows") as run_dir:
        log = RunLog(run_dir.path, tmp_path / "extra.log")
        run_dir.file.listen(log.on_change)
        run_dir.file.on_process("job", "starting", 42)
        run_dir.file.enter("running")
        run_dir.file.on_restart("job", "ended with code 1")
        run_dir.file.on_process("job", "starting", 43)
        run_dir.file.enter("failed", "the disk is full")
        log.close()
    said = [line.split(" ", 1)[1] for line in (tmp_path / "extra.log").read_text().splitlines()]
    assert said == [
        "run: job started as process 42",
        "run: running",
        "run: job ended with code 1; restarting it",
        "run: job started as process 43",
        "run: failed: the disk is full",
    ]


def test_a_full_disk_costs_lines_only(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "run.log").symlink_to("/dev/full")
    log = RunLog(tmp_path)
    log.note("run", "lost note")
    log.close()
