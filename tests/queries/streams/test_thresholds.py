"""Schedules of thresholds against a list of all packets.

Each packet is there with the threshold it was tested by.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

import pytest

from gscope.capture.shedding.moving_thresholds import MovingThresholds
from gscope.queries.int64 import MAX_TIME_NS, MIN_TIME_NS
from gscope.queries.streams.thresholds import MOST_STEPS, ThresholdSchedule, least

FULL = (1 << 64) - 1


@dataclass
class Capture:
    """An interface with lanes: every packet has a time, and was tested by a threshold."""

    random: Random
    bound: int = MIN_TIME_NS
    latest: int = MIN_TIME_NS
    now: int = 1000
    threshold: int = FULL
    tested: list[tuple[int, int]] = field(default_factory=list)
    sent: list[ThresholdSchedule] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.moving = MovingThresholds(self._set)
        self.moving.add(["a"], ThresholdSchedule.constant(FULL))

    def _set(self, _: str, threshold: int) -> None:
        self.threshold = threshold

    def packets(self) -> None:
        self.now += self.random.randint(0, 30)
        times = [self.now - self.random.randint(0, 20) for _ in range(self.random.randint(0, 5))]
        times = [max(time, self.bound) for time in times]
        if times:
            self.moving.reach(max(times))
        self.tested += [(time, self.threshold) for time in times]
        self.latest = max([self.latest, *times])

    def change(self) -> None:
        held = self.moving.threshold(0)
        if self.random.random() < 0.6:
            low = self.random.randint(0, held)
            self.moving.lower(0, low, self.bound, lambda: self.latest)
        elif self.moving.next_rise_ns is None:
            border = max(self.latest + 1, self.now // 60 * 60 + 60)
            self.moving.let_rise(0, self.random.randint(held, FULL), self.bound, border)

    def heartbeat(self) -> None:
        self.bound = max(self.bound, self.now - 20)
        schedule = self.moving.schedule("a", self.bound)
        assert schedule is not None
        self.sent.append(schedule)


def run(seed: int, turns: int) -> Capture:
    capture = Capture(Random(seed))
    for _ in range(turns):
        capture.random.choice([capture.packets] * 6 + [capture.change, capture.heartbeat])()
    capture.heartbeat()
    return capture


@pytest.mark.parametrize("seed", range(40))
def test_schedule_bounds_what_every_packet_was_tested_by(seed: int) -> None:
    capture = run(seed, 120)
    schedule = capture.sent[-1]
    for time, threshold in capture.tested:
        step = schedule.at(time)
        assert step.threshold <= threshold <= step.ceiling, (time, threshold, schedule)


@pytest.mark.parametrize("seed", range(40))
def test_what_is_below_the_promised_bound_stays(seed: int) -> None:
    capture = run(seed, 80)
    for early, late in zip(capture.sent, capture.sent[1:], strict=False):
        for time in range(960, early.bound_ns):
            assert late.at(time) == early.at(time)


@pytest.mark.parametrize("seed", range(20))
def test_a_reader_that_misses_heartbeats_learns_the_same(seed: int) -> None:
    capture = run(seed, 80)
    known = ThresholdSchedule.constant(FULL)
    for schedule in capture.sent:
        if capture.random.random() < 0.4 or schedule is capture.sent[-1]:
            known = known.followed_by(schedule)
    last = capture.sent[-1]
    assert [known.at(t) for t in range(960, capture.now)] == [
        last.at(t) for t in range(960, capture.now)
    ]


def test_thresholds_that_do_not_move_leave_nothing_to_do() -> None:
    capture = Capture(Random(1))
    for _ in range(50):
        capture.packets()
        capture.heartbeat()
    assert all(schedule.is_constant for schedule in capture.sent)
    assert {threshold for _, threshold in capture.tested} == {FULL}


def test_epochs_after_a_fall_need_no_trimming() -> None:
    schedule = ThresholdSchedule.constant(FULL).lowered(100, bound_ns=50, clear_ns=70)
    steps = [schedule.at(time) for time in (49, 50, 69, 70, MAX_TIME_NS)]
    assert [(s.threshold, s.ceiling) for s in steps] == [
        (FULL, FULL),
        (100, FULL),
        (100, FULL),
        (100, 100),
        (100, 100),
    ]


def test_a_fall_cancels_a_rise_that_waits() -> None:
    schedule = ThresholdSchedule.constant(100).raised(200, bound_ns=10, from_ns=60)
    assert schedule.at(60).threshold == 200
    fallen = schedule.lowered(50, bound_ns=20, clear_ns=40)
    assert [fallen.at(t).threshold for t in (10, 20, 60)] == [100, 50, 50]
    assert fallen.at(60).ceiling == 50


def test_a_schedule_is_bounded_and_errs_to_the_safe_side() -> None:
    schedule = ThresholdSchedule.constant(FULL)
    exact = {}
    for n in range(1, 500):
        low = n % 7 * 1000 + 10
        if low <= schedule.steps[-1].threshold:
            schedule = schedule.lowered(low, 100 * n, 100 * n)
        else:
            schedule = schedule.raised(low, 100 * n, 100 * n)
        exact[100 * n] = low
        assert len(schedule.steps) <= MOST_STEPS
    for time, threshold in exact.items():
        step = schedule.at(time)
        assert step.threshold <= threshold <= step.ceiling
    assert schedule.at(100 * 499).threshold == exact[100 * 499]


@pytest.mark.parametrize("seed", range(10))
def test_the_least_of_streams_is_that_of_each_moment(seed: int) -> None:
    captures = [run(100 * seed + n, 60) for n in range(3)]
    last = [capture.sent[-1] for capture in captures]
    together = least(last)
    assert together.bound_ns == min(each.bound_ns for each in last)
    random = Random(seed)
    for _ in range(100):
        first = random.randint(900, 4000)
        end = first + random.choice((0, 5, 60))
        steps = [each.at(time) for each in last for time in range(first, end + 1)]
        found = together.within(first, end)
        assert found.threshold == min(step.threshold for step in steps)
        assert found.ceiling == max(step.ceiling for step in steps)


@pytest.mark.parametrize("seed", range(20))
def test_what_is_foretold_holds_before_and_after_a_change(seed: int) -> None:
    random = Random(seed)
    schedule = ThresholdSchedule.constant(random.randrange(1000))
    for bound in range(0, 100, 20):
        threshold = random.randrange(1000)
        clear = bound + random.randrange(30)
        foretold = schedule.foretelling(threshold, bound)
        held = schedule.steps[-1].threshold
        if threshold < held:
            changed = schedule.lowered(threshold, bound, clear)
        else:
            changed = schedule.raised(threshold, bound, clear)
        for time in range(bound - 5, bound + 60):
            for known in (schedule.at(time), changed.at(time)):
                assert foretold.at(time).threshold <= known.threshold
                assert known.ceiling <= foretold.at(time).ceiling
            if time < bound:
                assert foretold.at(time) == schedule.at(time)
        schedule = changed
