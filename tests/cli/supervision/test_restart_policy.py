"""When a process is started again: backoff, budget, forgetting."""

from __future__ import annotations

from gscope.cli.supervision.restart_policy import RestartPolicy, Restarts

POLICY = RestartPolicy(first_s=1, longest_s=5, budget=4, window_s=100, stable_s=20)


class Clock:
    def __init__(self) -> None:
        self.now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_pauses_double_up_to_the_longest() -> None:
    restarts = Restarts(POLICY, Clock())
    assert [restarts.on_failure() for _ in range(4)] == [1, 2, 4, 5]


def test_the_budget_is_all_there_is_within_the_window() -> None:
    clock = Clock()
    restarts = Restarts(POLICY, clock)
    for _ in range(4):
        assert restarts.on_failure() is not None
        clock.now_s += 10
    assert restarts.on_failure() is None
    assert restarts.verdict == "it failed 5 times in 1.66667 minutes"


def test_what_is_longer_ago_than_the_window_is_forgotten() -> None:
    clock = Clock()
    restarts = Restarts(POLICY, clock)
    for _ in range(20):
        restarts.on_start()
        clock.now_s += 26
        assert restarts.on_failure() == 1


def test_a_process_that_ran_long_enough_begins_with_the_first_pause() -> None:
    clock = Clock()
    restarts = Restarts(POLICY, clock)
    assert (restarts.on_failure(), restarts.on_failure()) == (1, 2)
    restarts.on_start()
    clock.now_s += 19
    assert restarts.on_failure() == 4
    restarts.on_start()
    clock.now_s += 20
    assert restarts.on_failure() == 1
