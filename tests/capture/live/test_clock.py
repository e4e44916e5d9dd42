"""The clock of promises follows the real time, but no step ahead that is taken back."""

from __future__ import annotations

from gscope.capture.live.clock import LiveClock

SECOND = 1_000_000_000
MINUTE = 60 * SECOND


class Clocks:
    """Two clocks that pass time together; the wall clock can be stepped."""

    def __init__(self) -> None:
        self.wall = 1_700_000_000 * SECOND
        self.monotonic = 5 * SECOND

    def pass_time(self, ns: int) -> None:
        self.wall += ns
        self.monotonic += ns

    def clock(self) -> LiveClock:
        return LiveClock(lambda: self.wall, lambda: self.monotonic)


def test_without_steps_it_is_the_real_time() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.pass_time(3 * SECOND)
    assert clock.now_ns() == clocks.wall
    assert clock.steps_total == 0


def test_slewing_is_followed() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    for _ in range(1000):
        clocks.pass_time(SECOND)
        clocks.wall += 500_000
        assert clock.now_ns() == clocks.wall
    assert clock.steps_total == 0


def test_a_step_back_is_followed_at_once() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall -= 5 * MINUTE
    assert clock.now_ns() == clocks.wall
    assert clock.steps_total == 1


def test_a_step_ahead_is_followed_when_it_has_lasted() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    before = clocks.wall
    clocks.wall += 5 * MINUTE
    assert clock.now_ns() == before
    clocks.pass_time(4 * SECOND)
    assert clock.now_ns() == before + 4 * SECOND
    clocks.pass_time(SECOND)
    assert clock.now_ns() == clocks.wall
    assert clock.steps_total == 1


def test_a_step_ahead_that_is_taken_back_is_never_followed() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall += 5 * MINUTE
    clock.now_ns()
    clocks.pass_time(SECOND)
    clocks.wall -= 5 * MINUTE
    assert clock.now_ns() == clocks.wall
    clocks.wall += 5 * MINUTE
    clocks.pass_time(4 * SECOND)
    assert clock.now_ns() < clocks.wall
    assert clock.steps_total == 0
