"""An ordinary user, without any capability, for tests that root runs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import command

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

UID = 1_000_660_001
ROOT = Path(__file__).parents[2]


class User:
    """A user with a folder of their own, who runs ``gscope`` there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "own"
        self.started: list[subprocess.Popen[str]] = []
        for path in (self.folder, self.folder / "tmp"):
            path.mkdir()
            os.chown(path, UID, UID)
        kept = {key: os.environ[key] for key in ("PATH", "LANG", "JAVA_HOME") if key in os.environ}
        own = {"TMPDIR": str(self.folder / "tmp"), "GSCOPE_NO_ARCHIVE": "1"}
        self._environment = kept | own | {"PYTHONPATH": str(ROOT)}

    def start(self, *words: str | Path, before: Sequence[str] = ()) -> subprocess.Popen[str]:
        """Start a command of gscope, as an argument of the program ``before`` if there is one."""
        become = [sys.executable, "-m", "tests.safety.as_user", str(UID), str(UID)]
        process = subprocess.Popen(
            [*become, *before, *command(*words, "--work-dir", "wd")],
            cwd=self.folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def run(self, *words: str | Path) -> tuple[int, str, str]:
        """Return the exit code of a command, its standard output and its standard error."""
        process = self.start(*words)
        out, error = process.communicate(timeout=300)
        return process.returncode, out, error


@pytest.fixture
def user(open_folder: Path) -> Iterator[User]:
    made = User(open_folder)
    yield made
    for process in made.started:
        if process.poll() is None:
            process.kill()
            process.communicate()
