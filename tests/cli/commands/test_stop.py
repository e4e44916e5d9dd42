"""``gscope stop`` on processes that hold a run's lock as supervisors do."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest
from tests.cli.rundir.test_records import killed

from gscope.cli.main import run
from gscope.cli.rundir.run_dir import RunDir

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SUPERVISOR = """
import signal, sys, time
from pathlib import Path
from gscope.cli.rundir.run_dir import RunDir

came = []
for number in (signal.SIGINT, signal.SIGTERM):
    if sys.argv[4] == "ignores" and number == signal.SIGINT:
        signal.signal(number, signal.SIG_IGN)
    else:
        signal.signal(number, lambda n, _frame: came.append(n))
with RunDir(Path(sys.argv[1]), sys.argv[2]) as run_dir:
    run_dir.file.change(state="running", is_live=True)
    print("up", flush=True)
    while len(came) < int(sys.argv[3]):
        time.sleep(0.01)  # pause() would miss a signal that comes before it
    if sys.argv[4] == "fails":
        run_dir.is_kept = True
        run_dir.file.enter("failed", "the disk is full")
    run_dir.write_summary(f"gscope: {len(came)} signals\\n")
"""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a run that ends after a number of signals."""
    started: list[subprocess.Popen[str]] = []

    def begin(name: str, signals: int = 1, how: str = "ends") -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-c", SUPERVISOR, str(tmp_path), name, str(signals), how],
            stdout=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        return process

    yield begin
    for process in started:
        process.kill()
        process.communicate()


def stop(tmp_path: Path, *arguments: str) -> int:
    return run(["stop", "--work-dir", str(tmp_path), *arguments])


def test_it_waits_for_the_end_and_reports_the_summary(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows")
    assert stop(tmp_path) == 0
    assert capsys.readouterr().out == "flows has ended\ngscope: 1 signals\n"
    assert list(tmp_path.iterdir()) == []


def test_now_is_a_second_signal(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows", signals=2)
    assert stop(tmp_path, "--run", "flows", "--now") == 0
    assert "2 signals" in capsys.readouterr().out


def test_now_ends_a_run_that_ignores_interrupts_because_a_script_started_it(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows", signals=2, how="ignores")
    assert stop(tmp_path, "--run", "flows", "--now", "--timeout", "5s") == 0
    assert "2 signals" in capsys.readouterr().out


def test_a_run_that_takes_longer_is_reported(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows", signals=3)
    assert stop(tmp_path, "--timeout", "100ms") == 1
    assert "still emitting its remaining answers after 100ms" in capsys.readouterr().err


def test_a_run_that_does_not_end_soon_is_announced_with_what_ends_it(
    tmp_path: Path,
    start: Callable[..., object],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("gscope.cli.commands.stop._PATIENCE_NS", 50_000_000)
    start("flows", signals=2)
    assert stop(tmp_path, "--timeout", "100ms") == 1
    waiting, late = capsys.readouterr().err.splitlines()
    assert waiting == (
        "gscope: flows is delivering its remaining rows; `gscope stop --now --run flows` stops it"
        " without them"
    )
    assert "still emitting its remaining answers after 100ms" in late
    assert stop(tmp_path) == 0


def test_of_several_runs_one_must_be_named(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows")
    start("dns")
    assert stop(tmp_path) == 2
    assert "name one with --run: flows, dns" in capsys.readouterr().err
    assert stop(tmp_path, "--run", "dns") == 0
    assert stop(tmp_path) == 0
    assert stop(tmp_path) == 1
    assert "no run is active" in capsys.readouterr().err


def test_a_failure_at_the_end_is_reported(
    tmp_path: Path, start: Callable[..., object], capsys: pytest.CaptureFixture[str]
) -> None:
    start("flows", how="fails")
    assert stop(tmp_path) == 1
    assert "flows failed: the disk is full" in capsys.readouterr().err
    assert stop(tmp_path) == 1
    assert "flows is failed: `gscope run --run flows`" in capsys.readouterr().err


def test_what_a_killed_run_left_is_removed_when_it_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = killed(tmp_path, "flows")
    assert stop(tmp_path) == 1
    assert "flows is stale" in capsys.readouterr().err
    assert path.exists()
    assert stop(tmp_path, "--run", "flows") == 0
    assert capsys.readouterr().out == "flows had been killed; removed its folder\n"
    assert not path.exists()


def test_a_run_that_is_killed_meanwhile_is_waited_for(
    tmp_path: Path,
    start: Callable[..., subprocess.Popen[str]],
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = start("flows", signals=9)
    killing = threading.Timer(0.2, process.kill)
    killing.start()
    assert stop(tmp_path) == 0
    killing.join()
    assert process.wait() == -signal.SIGKILL
    assert "flows has ended" in capsys.readouterr().out


def test_a_stranger_with_the_number_of_a_run_that_ended_gets_no_signal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    stranger = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=-1)
    with RunDir(tmp_path, "flows") as run_dir:
        run_dir.file.change(pid=stranger.pid)
        seen = run_dir.file.record
    try:
        monkeypatch.setattr("gscope.cli.rundir.records.choose_run", lambda _dir, _name: seen)
        assert stop(tmp_path) == 0
        assert capsys.readouterr().out == "flows has ended\n"
        assert stranger.poll() is None
    finally:
        stranger.communicate()
    assert stranger.returncode == 0
