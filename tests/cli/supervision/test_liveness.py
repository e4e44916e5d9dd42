"""Failure detection: silence counts, time away does not."""

from __future__ import annotations

import signal
import subprocess

import pytest
from tests.support.gscope_command import wait_for

from gscope.cli.config.settings import SETTINGS
from gscope.cli.supervision.liveness import LOOK_S, Liveness, SilenceLimits, is_runnable

SECOND = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def look_for(liveness: Liveness, clock: Clock, seconds: float) -> float | None:
    """Look at fixed intervals; return the first silence that exceeds its limit."""
    until = clock.now_s + seconds
    while clock.now_s < until:
        clock.now_s += LOOK_S
        if (silent := liveness.silence_s()) is not None:
            return silent
    return None


def test_silence_longer_than_the_patience_is_noticed() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    assert look_for(liveness, clock, 5) is None
    assert look_for(liveness, clock, 1) == 5.5


def test_a_sign_of_life_begins_it_again() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    for _ in range(10):
        assert look_for(liveness, clock, 4) is None
        liveness.on_sign()


def test_a_sign_that_reports_a_silence_counts_that_much_less() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    liveness.on_sign(silent_s=4)
    assert look_for(liveness, clock, 1) is None
    liveness.on_sign(silent_s=5.6)
    assert look_for(liveness, clock, 1) is not None


def test_no_process_is_watched_without_limits() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    liveness.expect(None)
    assert look_for(liveness, clock, 100) is None


def test_time_in_which_the_supervisor_itself_did_not_look_is_no_silence() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    assert look_for(liveness, clock, 3) is None
    clock.now_s += 1000
    assert liveness.silence_s() is None
    assert look_for(liveness, clock, 3) is not None


def test_by_default_five_heartbeats_may_be_missing_but_never_less_than_five_seconds() -> None:
    assert SilenceLimits.of(None, SECOND // 10).stream_s == 5
    assert SilenceLimits.of(None, 3 * SECOND).stream_s == 15
    assert SilenceLimits.of(2 * SECOND, SECOND).stream_s == 2
    assert SilenceLimits.of(2 * SECOND, SECOND).job_s == 60


def test_a_process_that_waits_for_a_processor_is_given_more_time() -> None:
    clock = Clock()
    liveness = Liveness(5, clock)
    waited = 0.0
    while liveness.silence_s(is_runnable=lambda: True) is None:
        clock.now_s += LOOK_S
        waited += LOOK_S
    assert 60 < waited <= 61


def test_who_runs_is_runnable_and_who_sleeps_or_is_gone_is_not() -> None:
    with subprocess.Popen(["sh", "-c", "while :; do :; done"]) as busy:
        assert wait_for(lambda: is_runnable(busy.pid), "a loop")
        busy.send_signal(signal.SIGSTOP)
        wait_for(lambda: not is_runnable(busy.pid), "the halt")
        busy.kill()
    assert not is_runnable(busy.pid)


@pytest.mark.parametrize(("key", "least_s"), [("failure.timeout", 2), ("failure.step_timeout", 60)])
def test_a_timeout_below_what_signs_of_life_allow_is_refused(key: str, least_s: int) -> None:
    (setting,) = (each for each in SETTINGS if each.key == key)
    assert setting.parse(f"{least_s}s") == least_s * SECOND
    assert setting.parse("auto") is None
    with pytest.raises(ValueError, match="expected at least"):
        setting.parse(f"{least_s - 1}s")
