"""The capture daemon of a replay is started before the program is known."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import pytest
from tests.cli.supervision.stage import ANSWERS, CAPTURES, HEAD, SETTINGS, Stage, stage
from tests.support.gscope_command import is_alive, wait_for

from gscope.cli.events import CAPTURE, JOB
from gscope.cli.supervision.supervisor import Interrupted

__all__ = ["stage"]

WAITS = """
(run_dir / f"pid-{started()}").write_text(str(os.getpid()))
if sys.argv[2:] == ["0", "early"]:
    assert sys.stdin.readline() == "capture\\n"
    assert (run_dir / "capture.json").exists()
    assert (run_dir / "program.json").exists()
"""


def prepare(stage: Stage, capture: str = WAITS + CAPTURES) -> int:
    """Start a daemon early; return its process id once it waits."""
    (stage.scripts / "fake_capture.py").write_text(HEAD + capture)

    stage.supervisor.prepare_capture()
    noted = stage.supervisor.run_dir / "pid-1"
    wait_for(lambda: noted.exists() and noted.read_text(), "the daemon")
    return int(noted.read_text())


def test_it_captures_once_its_settings_are_there(stage: Stage) -> None:
    pid = prepare(stage)
    stage.start(WAITS + CAPTURES, ANSWERS)
    assert stage.supervisor._processes[CAPTURE].process.pid == pid
    stage.run()
    assert stage.answers.steps == [1]
    assert not (stage.supervisor.run_dir / "pid-2").exists()


def test_one_that_has_died_is_replaced(stage: Stage) -> None:
    pid = prepare(stage)
    os.kill(pid, signal.SIGKILL)
    early = stage.supervisor._processes._early
    assert early is not None
    wait_for(lambda: early.has_ended, "its end")
    stage.start(WAITS + CAPTURES, ANSWERS)
    assert stage.supervisor._processes[CAPTURE].process.pid != pid
    stage.run()
    assert stage.answers.steps == [1]


def test_it_ends_with_a_run_that_does_not_begin(stage: Stage) -> None:
    pid = prepare(stage)
    with pytest.raises(Interrupted):
        stage.supervisor.on_signal(signal.SIGINT)
    stage.supervisor.stop()
    wait_for(lambda: not is_alive(pid), "its end")
    assert JOB not in stage.supervisor._processes


def test_a_capture_from_standard_input_starts_another_one(stage: Stage) -> None:
    pid = prepare(stage)
    (interface,) = SETTINGS.interfaces
    piped = replace(SETTINGS, interfaces=(replace(interface, files=("-",)),))
    stage.start(WAITS + CAPTURES, ANSWERS, piped)
    assert stage.supervisor._processes[CAPTURE].process.pid != pid
    assert not is_alive(pid)
    stage.run()
    assert stage.answers.steps == [1]
