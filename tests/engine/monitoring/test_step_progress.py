"""The duration of the current step, and the time since one of its tasks ended."""

from __future__ import annotations

import pytest

from gscope.engine.monitoring.step_progress import MAX_PAUSE_S, CurrentStep, StepWatch


class Clock:
    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> StepWatch:
    return StepWatch(clock)


def looked(watch: StepWatch, clock: Clock, *ended_tasks: int) -> list[float]:
    """Return the time without the end of a task, measured every second."""
    still = []
    for ended in ended_tasks:
        clock.now_s += 1
        step = watch.look(ended)
        assert step is not None
        still.append(step.still_seconds)
    return still


def test_without_a_step_there_is_nothing_to_tell(watch: StepWatch) -> None:
    assert not watch.is_under_way
    assert watch.look(3) is None


def test_a_step_stands_still_while_no_task_ends(watch: StepWatch, clock: Clock) -> None:
    watch.begin(7)
    assert looked(watch, clock, 5, 5, 5, 6, 6, 8, 8) == [0, 1, 2, 0, 1, 0, 1]
    assert watch.look(8) == CurrentStep(7, 7.0, 1.0)


def test_another_step_begins_anew(watch: StepWatch, clock: Clock) -> None:
    watch.begin(1)
    looked(watch, clock, 5, 5, 5)
    watch.end()
    assert not watch.is_under_way
    watch.begin(2)
    assert looked(watch, clock, 5, 5) == [0, 1]


def test_time_in_which_nobody_could_look_hardly_counts(watch: StepWatch, clock: Clock) -> None:
    watch.begin(1)
    looked(watch, clock, 5)
    clock.now_s += 3600
    assert looked(watch, clock, 5) == [MAX_PAUSE_S]


def test_whoever_listens_is_told(watch: StepWatch, clock: Clock) -> None:
    looks: list[CurrentStep] = []
    watch.on_look = looks.append
    watch.look(1)
    watch.begin(4)
    looked(watch, clock, 1, 1)
    assert [step.still_seconds for step in looks] == [0, 1]
