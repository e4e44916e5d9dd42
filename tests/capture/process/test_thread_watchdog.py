"""Signs of life of the capture daemon: the most silent thread counts."""

from __future__ import annotations

import io
import json

from gscope.capture.process.thread_watchdog import PERIOD_S, ThreadWatchdog
from gscope.queries.streams.event_codec import EventWriter


class Stage:
    def __init__(self) -> None:
        self.now_s = 50.0
        self.out = io.StringIO()
        self.watchdog = ThreadWatchdog(EventWriter(self.out), lambda: self.now_s)

    def wait(self, seconds: float) -> float:
        """Let time pass, reporting as often as the daemon does; the silence reported last."""
        for _ in range(round(seconds / PERIOD_S)):
            self.now_s += PERIOD_S
            self.watchdog.report()
        reported = json.loads(self.out.getvalue().splitlines()[-1])
        assert reported["event"] == "alive"
        return float(reported["silent_s"])


def test_the_most_silent_thread_is_reported() -> None:
    stage = Stage()
    stage.watchdog.on_turn("a")
    stage.watchdog.on_turn("b")
    assert stage.wait(2) == 2
    stage.watchdog.on_turn("a")
    assert stage.wait(1) == 3


def test_a_thread_that_has_ended_is_not_silent() -> None:
    stage = Stage()
    stage.watchdog.on_turn("a")
    stage.watchdog.on_end("a")
    assert stage.wait(10) == 0


def test_time_in_which_the_process_was_not_let_run_is_no_silence() -> None:
    stage = Stage()
    stage.watchdog.on_turn("a")
    stage.wait(1)
    stage.now_s += 100
    assert stage.wait(0.5) <= 2


def test_it_is_reported_while_the_process_lives() -> None:
    stage = Stage()
    with stage.watchdog:
        while not stage.out.getvalue():
            pass
    assert "alive" in stage.out.getvalue()
