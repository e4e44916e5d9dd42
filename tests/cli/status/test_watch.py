"""``--watch`` of ``gscope status`` and ``gscope explain`` on a terminal of the test's own."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from typing import TYPE_CHECKING

from tests.cli.status.run_folder import run_folder
from tests.engine.steps.watched_steps import steps

from gscope.queries.plan.program_file import write_program
from gscope.queries.run_folder.layout import PROGRAM_FILE

if TYPE_CHECKING:
    from pathlib import Path

PATIENCE_S = 60.0
LINES, COLUMNS = 40, 80


class Watching:
    """The command on a terminal of 80 columns."""

    def __init__(self, work: Path, *words: str, lines: int = LINES) -> None:
        self._terminal, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", lines, COLUMNS, 0, 0))
        self.process = subprocess.Popen(
            [
                *(sys.executable, "-m", "gscope", *(words or ("status",))),
                *("--watch", "--work-dir", str(work)),
            ],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={**os.environ, "TERM": "xterm", "COLUMNS": str(COLUMNS), "LINES": str(lines)},
        )
        os.close(theirs)
        self.shown = ""

    def wait_for(self, words: str) -> None:
        """Read until ``words`` were shown."""
        until = time.monotonic() + PATIENCE_S
        while words not in self.shown:
            assert select.select([self._terminal], [], [], until - time.monotonic())[0], self.shown
            self.shown += os.read(self._terminal, 65536).decode(errors="replace")

    def press(self, key: str) -> None:
        os.write(self._terminal, key.encode())

    def end(self) -> int:
        code = self.process.wait(PATIENCE_S)
        os.close(self._terminal)
        return code


def test_it_follows_the_run_until_q(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir:
        watching = Watching(tmp_path)
        watching.wait_for("q quits")
        watching.wait_for("aggregation")
        run_dir.file.on_restart("job", "signal SIGKILL")
        watching.wait_for("signal SIGKILL")
        watching.press("q")
        assert watching.end() == 0


def test_a_low_terminal_shows_how_to_leave(tmp_path: Path) -> None:
    with run_folder(tmp_path):
        watching = Watching(tmp_path, lines=10)
        watching.wait_for("q quits")
        watching.press("q")
        assert watching.end() == 0


def test_it_ends_with_the_run(tmp_path: Path) -> None:
    with run_folder(tmp_path, has_reported=False):
        watching = Watching(tmp_path)
        watching.wait_for("q quits")
    watching.wait_for("run talkers has ended")
    assert watching.end() == 0


def test_ctrl_c_leaves(tmp_path: Path) -> None:
    with run_folder(tmp_path, has_reported=False):
        watching = Watching(tmp_path)
        watching.wait_for("q quits")
        watching.process.send_signal(signal.SIGINT)
        assert watching.end() == 0


def test_a_plan_is_followed_from_its_compilation_to_its_end(tmp_path: Path) -> None:
    with run_folder(tmp_path) as run_dir:
        watching = Watching(tmp_path, "explain", "--run", "talkers")
        watching.wait_for("has no plan yet")
        write_program(run_dir.path / PROGRAM_FILE, steps("eth0", "eth1").program)
        watching.wait_for("LFTA tens")
    watching.wait_for("run talkers has ended")
    assert watching.end() == 0


def test_ctrl_c_leaves_a_plan(tmp_path: Path) -> None:
    with run_folder(tmp_path):
        watching = Watching(tmp_path, "explain", "--run", "talkers")
        watching.wait_for("q quits")
        watching.process.send_signal(signal.SIGINT)
        assert watching.end() == 0
