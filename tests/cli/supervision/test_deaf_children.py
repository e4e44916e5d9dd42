"""Signals end a run whatever hangs below the supervisor."""

from __future__ import annotations

import os
import signal
import threading

import pytest
from tests.cli.supervision.stage import CAPTURES, SUMMARY, Stage, stage
from tests.support.gscope_command import descendants

from gscope.cli.supervision import process_set
from gscope.cli.supervision.liveness import SilenceLimits
from gscope.cli.supervision.supervisor import Interrupted
from gscope.errors import GscopeError

__all__ = ["stage"]

pytestmark = pytest.mark.usefixtures("_short_grace")

DEAF = """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
emit("ready")
while True:
    time.sleep(1)
"""


@pytest.fixture
def _short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Kill a deaf job after a moment: both tests wait for it, and both end with a kill."""
    monkeypatch.setattr(process_set, "JOB_GRACE_S", 0.3)


def test_a_signal_ends_a_replay_whose_job_never_answers(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SilenceLimits, "job_s", 1.0)
    stage.start(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + CAPTURES + "time.sleep(1000)\n", DEAF
    )
    monkeypatch.setattr(stage.answers, "begin", lambda: stage.supervisor.on_signal(signal.SIGTERM))
    with pytest.raises(
        GscopeError,
        match=r"the (HFTA job|capture daemon) did not respond for \d+ s after the sig",
    ) as caught:
        stage.run()
    assert caught.value.exit_code == 128 + signal.SIGTERM
    stage.supervisor.stop()


def test_a_job_that_is_ready_after_the_signal_is_watched_too(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SilenceLimits, "job_s", 1.0)
    # The daemon's last report comes after the signal was handled, and then the job gets ready.
    stage.start(
        'signal.signal(signal.SIGTERM, lambda *_: (run_dir / "stopped").touch())\n'
        'emit("listening")\n'
        'while not (run_dir / "stopped").exists(): time.sleep(0.01)\n'
        + SUMMARY
        + "time.sleep(1000)\n",
        'while not (run_dir / "stopped").exists(): time.sleep(0.01)\n' + DEAF,
    )
    monkeypatch.setattr(stage.answers, "begin", lambda: stage.supervisor.on_signal(signal.SIGTERM))
    with pytest.raises(GscopeError, match=r"the HFTA job did not respond for \d+ s after the sig"):
        stage.run()
    stage.supervisor.stop()


def test_a_second_signal_leaves_at_once_whatever_hangs(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start(
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + CAPTURES + "time.sleep(1000)\n", DEAF
    )
    second = threading.Timer(1.0, os.kill, (os.getpid(), signal.SIGUSR2))

    def signalled() -> None:
        stage.supervisor.on_signal(signal.SIGTERM)
        second.start()

    monkeypatch.setattr(stage.answers, "begin", signalled)
    before = signal.signal(signal.SIGUSR2, lambda number, _: stage.supervisor.on_signal(number))
    try:
        with pytest.raises(Interrupted):
            stage.run()
    finally:
        second.join()
        signal.signal(signal.SIGUSR2, before)
    stage.supervisor.stop()
    assert not any("fake_" in line for line in descendants(os.getpid()).values())
