"""Tests, and what they start, use neither the user's default work dir nor the user's ``/tmp``."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.gscope_command import run
from tests.support.requirements import ROOT
from tests.support.temporary_place import TemporaryPlace

from gscope.cli.rundir.run_dir import default_work_dir

if TYPE_CHECKING:
    import pytest

KEEPS = ("os.environ.items()", "**os.environ", "TMPDIR", "GSCOPE_WORK_DIR")
"""What a file says that starts programs with another environment, and keeps them where they
belong."""

PRINTED = "from gscope.cli.rundir.run_dir import default_work_dir; print(default_work_dir())"


def test_runs_without_a_work_dir_of_their_own_are_in_a_folder_of_this_process(
    temporary_place: TemporaryPlace,
) -> None:
    own = temporary_place.path / f"gscope-{os.getuid()}"
    assert default_work_dir() == own
    there = subprocess.check_output([sys.executable, "-c", PRINTED], text=True)
    assert Path(there.strip()) == own
    assert own != temporary_place.usual / own.name
    assert run("stop").stderr.count("\n") == 1, "no run of another process is seen"


def test_folders_of_killed_processes_are_deleted_and_those_of_others_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DEBUG_TEMPROOT", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", tempfile.tempdir)
    monkeypatch.setenv("TMPDIR", os.environ["TMPDIR"])
    made = "from tests.support.temporary_place import TemporaryPlace; made = TemporaryPlace()"
    code = f"{made}; (made.path / 'x').mkdir(); print(made.path, flush=True); input()"
    folder = tmp_path / f"gscope-tests-{os.geteuid()}"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=-1, stdout=-1, text=True, cwd=ROOT
    ) as other:
        assert other.stdout is not None
        theirs = Path(other.stdout.readline().strip())
        first = TemporaryPlace()
        assert set(folder.iterdir()) == {theirs, first.path}
        other.kill()
        other.wait()
    assert (theirs / "x").exists()
    second = TemporaryPlace()
    assert set(folder.iterdir()) == {first.path, second.path}
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(second.path)
    second.close()
    assert tempfile.gettempdir() == os.environ["TMPDIR"] == str(first.path)
    first.close()
    assert list(folder.iterdir()) == []


def test_programs_with_another_environment_get_a_folder_too() -> None:
    found = []
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        if any(keep in text for keep in KEEPS) or path.name == "wheel_check.py":
            continue
        found += [
            f"{path.relative_to(ROOT)}:{keyword.value.lineno}"
            for call in ast.walk(ast.parse(text))
            # click adds to the environment that is there.
            if isinstance(call, ast.Call) and not ast.unparse(call.func).endswith(".invoke")
            for keyword in call.keywords
            if keyword.arg == "env" and "os.environ" not in ast.unparse(keyword.value)
        ]
    assert not found, f"these lose TMPDIR, and with it the work dir of the tests: {found}"
