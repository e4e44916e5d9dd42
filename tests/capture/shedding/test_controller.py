"""The controller as a pure function.

Falls, clamps, recovery, and a simulated ring that it has to keep from overflowing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from random import Random

import pytest

from gscope.capture.shedding.controller import (
    CALM_EPOCHS,
    FALL_INTERVAL_NS,
    RISE,
    LoadReason,
    LoadSignals,
    RateState,
    next_rate,
)

MS = 1_000_000
CALM = LoadSignals(occupancy=0.1, busy=0.3)
FULL = LoadSignals(occupancy=0.8, busy=1.0)


def follow(
    state: RateState, *turns: tuple[LoadSignals, int, int], least: float = 0.01
) -> RateState:
    """The state after signals, each with a time in ms and an epoch."""
    for signals, now_ms, epoch in turns:
        state = next_rate(state, signals, now_ms * MS, epoch, least)
    return state


FALLEN = follow(RateState(), (FULL, -50, 0), (FULL, 0, 0))
"""After a fall at time 0, in epoch 0."""


def test_a_ring_that_stays_full_for_50_ms_halves_the_rate() -> None:
    assert follow(RateState(), (FULL, 0, 1), (FULL, 20, 1), (FULL, 49, 1)).rate == 1.0
    state = follow(RateState(), (FULL, 0, 1), (FULL, 20, 1), (FULL, 50, 1))
    assert (state.rate, state.reason) == (0.5, LoadReason.RING)


def test_it_is_halved_again_only_after_100_ms() -> None:
    assert FALLEN.rate == 0.5
    assert follow(FALLEN, (FULL, 99, 1)).rate == 0.5
    assert follow(FALLEN, (FULL, 100, 1)).rate == 0.25


def test_it_is_halved_again_after_50_ms_while_packets_are_dropped() -> None:
    turns = [(replace(FULL, dropped_packets=n), 20 * n, 1) for n in range(1, 6)]
    # Reports come every 20 ms, so the first that is due comes after 60.
    rates = [follow(FALLEN, *turns[:n]).rate for n in range(1, 6)]
    assert rates == [0.5, 0.5, 0.25, 0.25, 0.25]
    assert follow(FALLEN, *turns, (replace(FULL, dropped_packets=9), 120, 1)).rate == 0.125


def test_a_ring_that_empties_is_given_time() -> None:
    emptier = replace(FULL, occupancy=0.7)
    assert follow(FALLEN, (emptier, 100, 1)).rate == 0.5
    assert follow(FALLEN, (emptier, 100, 1), (emptier, 149, 1)).rate == 0.5
    assert follow(FALLEN, (emptier, 100, 1), (emptier, 150, 1)).rate == 0.25


def test_a_ring_that_empties_a_block_at_a_time_is_given_time() -> None:
    """Two of three reports find it as full as the report before."""
    emptying = [(replace(FULL, occupancy=0.9 - n // 3 * 0.06), 20 * n, 1) for n in range(1, 20)]
    assert follow(FALLEN, *emptying).rate == 0.5


def test_a_thread_that_stood_still_for_a_moment_does_not_lower_it() -> None:
    """All 5 s a ring overflows, because its thread stood still, and empties at once."""
    state, dropped = RateState(rate=0.5), 0
    for turn in range(3000):
        since_stall = turn % 250
        dropped += 100 if since_stall == 0 else 0
        occupancy = max(0.0, 1.0 - since_stall * 0.25)
        signals = LoadSignals(occupancy, dropped_packets=dropped, busy=0.3)
        state = next_rate(state, signals, turn * 20 * MS, turn // 50, 0.01)
        assert state.rate >= 0.5, turn
    assert state.rate > 0.5, "it rises between the stalls"


def test_drops_that_go_on_halve_it_though_the_ring_is_empty() -> None:
    """As a source reports them that cannot say how full its buffer is."""
    turns = [(replace(CALM, dropped_packets=3 * n), 20 * n, 1) for n in range(1, 6)]
    state = follow(RateState(), (CALM, 0, 1), *turns)
    assert (state.rate, state.reason) == (0.5, LoadReason.DROPS)
    last = turns[-1][0]
    assert follow(state, (last, 500, 1), (last, 600, 1)).rate == 0.5, "each drop counts once"


def test_a_log_that_fills_halves_it_once_an_epoch() -> None:
    lags = replace(CALM, log_fill=0.6)
    turns = [(lags, 100 * n, n // 10) for n in range(35)]
    state = follow(RateState(), *turns)
    assert (state.rate, state.reason) == (0.125, LoadReason.LOG)


def test_rates_never_leave_the_limits() -> None:
    turns = [(FULL, 100 * n, 1) for n in range(50)]
    assert follow(RateState(), *turns, least=0.07).rate == 0.07
    calm = [(CALM, 1000 * n, n) for n in range(100)]
    assert follow(RateState(), *calm).rate == 1.0


def test_a_least_rate_above_the_rate_does_not_lift_it_under_load() -> None:
    assert follow(RateState(rate=0.05), (FULL, 0, 1), least=0.1).rate == 0.05


def test_the_rate_rises_by_a_quarter_after_three_calm_epochs() -> None:
    state = FALLEN
    rates = []
    for epoch in range(1, 9):
        state = follow(state, (CALM, 1000 * epoch, epoch), (CALM, 1000 * epoch + 500, epoch))
        rates.append(state.rate)
    # Epochs 1, 2 and 3 are calm as a whole; the fourth begins with the first rise.
    first = CALM_EPOCHS
    assert rates[:first] == [0.5] * first
    assert rates[first:] == pytest.approx([0.625, 0.78125, 0.9765625, 1, 1])
    assert state.reason is LoadReason.NONE


def test_short_epochs_do_not_speed_up_what_needs_time() -> None:
    """Epochs of 10 ms: every turn begins one."""
    lags = replace(CALM, log_fill=0.6)
    assert follow(RateState(), *((lags, 10 * n, n) for n in range(51))).rate == 0.5
    assert follow(RateState(), *((lags, 10 * n, n) for n in range(52))).rate == 0.25
    assert follow(FALLEN, *((CALM, 10 * n, n) for n in range(1, 50))).rate == 0.5
    assert follow(FALLEN, *((CALM, 10 * n, n) for n in range(1, 100))).rate == 0.625


def test_an_old_measurement_of_a_full_ring_does_not_halve_it_again() -> None:
    old = replace(FULL, is_measured=False)
    state = follow(FALLEN, (old, 150, 1), (old, 900, 1))
    assert state.rate == 0.5
    assert follow(state, (FULL, 901, 1)).rate == 0.25


def test_it_does_not_rise_between_borders() -> None:
    state = follow(FALLEN, *((CALM, 1000 * n, n) for n in range(1, 5)))
    assert state.rate == 0.625
    assert follow(state, *((CALM, 4000 + n, 4) for n in range(1, 500))).rate == 0.625


@pytest.mark.parametrize(
    "signals", [replace(CALM, busy=0.9), replace(CALM, log_fill=0.7), replace(CALM, occupancy=0.6)]
)
def test_one_moment_without_calm_begins_the_count_again(signals: LoadSignals) -> None:
    begin = follow(RateState(rate=0.1), *((CALM, 1000 * n, n) for n in range(4)))
    assert begin.rate == 0.1
    disturbed = follow(begin, (signals, 3500, 3), (CALM, 4000, 4))
    assert disturbed.rate <= 0.1
    assert follow(begin, (CALM, 4000, 4)).rate == 0.125


def test_busy_threads_do_not_let_it_fall() -> None:
    busy = replace(CALM, busy=1.0)
    assert follow(RateState(), *((busy, 100 * n, n) for n in range(20))).rate == 1.0


def test_equal_signals_give_equal_rates() -> None:
    random = Random(5)
    turns = [
        (
            LoadSignals(
                random.random(),
                random.random() < 0.9,
                n // 9,
                random.random(),
                random.random() / 1.5,
            ),
            40 * n,
            n // 25,
        )
        for n in range(400)
    ]
    assert follow(RateState(), *turns) == follow(RateState(), *turns)


@dataclass
class Ring:
    """A ring of ``size`` packets that a thread of ``capacity`` packets a second empties.

    A packet that is not kept costs ``floor`` of one that is: every packet is decoded.
    """

    size: float
    capacity: float
    floor: float = 0.2
    held: float = 0.0
    dropped: float = 0.0

    def turn(self, arriving: float, rate: float, seconds: float) -> LoadSignals:
        cost = self.floor + (1 - self.floor) * rate
        taken = min(self.held + arriving * seconds, self.capacity / cost * seconds)
        self.held += arriving * seconds - taken
        lost = max(0.0, self.held - self.size)
        self.dropped += lost
        self.held -= lost
        busy = taken * cost / (self.capacity * seconds)
        return LoadSignals(self.held / self.size, dropped_packets=round(self.dropped), busy=busy)


@pytest.mark.parametrize("load", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("ring_s", [0.02, 0.5, 2.0])
def test_drops_end_within_a_second_and_the_rate_recovers(load: float, ring_s: float) -> None:
    ring, state = Ring(size=ring_s * 1e6, capacity=1e6), RateState()
    last_drop_s, least = 0.0, 1.0
    for n in range(6000):
        now_s, dropped = n / 100, ring.dropped
        signals = ring.turn(load * 1e6 if 5 <= now_s < 30 else 0.5e6, state.rate, 0.01)
        state = next_rate(state, signals, n * 10 * MS, int(now_s), 0.01)
        least = min(least, state.rate)
        if ring.dropped > dropped:
            last_drop_s = now_s
    assert last_drop_s < 6.0
    assert 0.02 < least <= 0.5, "neither idle nor far below what the load asks for"
    assert state.rate == 1.0
    assert FALL_INTERVAL_NS == 100 * MS
    assert RISE == 1.25
