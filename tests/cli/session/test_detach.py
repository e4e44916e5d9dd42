"""Going into the background, with a run that is a few lines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from tests.support.gscope_command import is_alive, wait_for

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BEGIN = """
import os, signal, sys, time
from pathlib import Path
from gscope.cli.session.detach import detach
from gscope.cli.rundir.run_dir import RunDir

found = detach()
if isinstance(found, int):
    sys.exit(found)
with RunDir(Path(sys.argv[1]), "flows") as run_dir:
    (run_dir.path / "logs").mkdir()
    run_dir.file.listen(found.on_change)
"""
CAPTURES = """
    run_dir.file.change(folder="/answers", metrics="http://127.0.0.1:40001/metrics")
    run_dir.file.enter("running")
    print("to the log", flush=True)
    print(sys.stdin.read() == "", os.getsid(0) not in (os.getpid(), int(sys.argv[2])), flush=True)
    signal.sigwait([signal.SIGUSR2])
"""


def detached(tmp_path: Path, text: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BEGIN + text, str(tmp_path), str(os.getsid(0))],
        capture_output=True,
        text=True,
        input="unread",
        timeout=60,
        check=False,
    )


@pytest.fixture
def blocked() -> Iterator[None]:
    """SIGUSR2 is inherited as blocked, so that it stays pending until it is waited for."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
    yield
    signal.pthread_sigmask(signal.SIG_SETMASK, before)


def test_the_command_ends_when_packets_are_captured(tmp_path: Path, blocked: None) -> None:
    done = detached(tmp_path, CAPTURES)
    assert (done.returncode, done.stdout) == (0, "")
    first, pid = done.stderr.split()[1], int(done.stderr.split()[6])
    assert first == "flows"
    assert " and writing to /answers; " in done.stderr
    assert f"`gscope stop --run flows --work-dir {tmp_path}`" in done.stderr
    assert "metrics are at http://127.0.0.1:40001/metrics; " in done.stderr
    log = tmp_path / "run-flows" / "logs" / "stderr.log"
    wait_for(lambda: log.read_text().count("\n") == 2, "the run's words in its log")
    assert log.read_text() == "to the log\nTrue True\n"
    os.kill(pid, signal.SIGUSR2)
    wait_for(lambda: not is_alive(pid), "the end of the run")


def test_a_run_without_answers_reports_where_it_serves_its_rows(
    tmp_path: Path, blocked: None
) -> None:
    ends = "    found.served_at = '127.0.0.1:9470'\n    run_dir.file.enter('running')\n"
    done = detached(tmp_path, ends)
    assert done.returncode == 0
    assert " and serving its rows at 127.0.0.1:9470; `gscope status" in done.stderr


def test_an_error_before_that_is_the_command_s(tmp_path: Path) -> None:
    done = detached(
        tmp_path, "    print('gscope: no such device', file=sys.stderr)\n    sys.exit(2)"
    )
    assert (done.returncode, done.stderr) == (2, "gscope: no such device\n")
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_is_killed_before_that_is_reported_by_the_exit_code(tmp_path: Path) -> None:
    done = detached(tmp_path, "    os.kill(os.getpid(), signal.SIGKILL)")
    assert done.returncode == 128 + signal.SIGKILL


def test_what_interrupts_the_command_interrupts_the_run(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [
            sys.executable,
            "-c",
            BEGIN + "    print('up', flush=True)\n    while True: time.sleep(0.01)",
            str(tmp_path),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "up\n"
    process.send_signal(signal.SIGINT)
    # The end of the pipe is the end of all three processes.
    assert process.stdout.read() == ""
    assert process.wait(60) != 0
    process.stdout.close()
    assert list(tmp_path.iterdir()) == []
