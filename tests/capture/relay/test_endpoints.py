"""The clock of another host: an estimate that holds whatever the network does."""

from __future__ import annotations

import random

import pytest

from gscope.capture.log.agent.client import ClockReading
from gscope.capture.relay.endpoints import OffsetEstimate

SECOND_NS = 1_000_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ns = 10 * SECOND_NS

    def __call__(self) -> int:
        return self.now_ns


def reading(offset_ns: int, there_ns: int, back_ns: int) -> ClockReading:
    """Return what a client sees whose request takes ``there_ns``, and the reply ``back_ns``."""
    took_ns = there_ns + back_ns
    return ClockReading(offset_ns + there_ns - took_ns // 2, -(-took_ns // 2))


@pytest.mark.parametrize("seed", range(20))
def test_the_offset_is_within_the_error_on_any_network(seed: int) -> None:
    """The clocks drift apart by up to 50 microseconds a second."""
    chance = random.Random(seed)
    clock = Clock()
    estimate = OffsetEstimate(clock)
    offset_ns = float(chance.randint(-10 * SECOND_NS, 10 * SECOND_NS))
    drift = chance.uniform(-50e-6, 50e-6)
    for _ in range(100):
        step_ns = chance.randint(1, 5 * SECOND_NS)
        clock.now_ns += step_ns
        offset_ns += drift * step_ns
        ways = chance.randint(0, 200_000_000), chance.randint(0, 200_000_000)
        estimate.add(reading(int(offset_ns), *ways))
        best = estimate.best()
        assert best is not None
        assert abs(best.offset_ns - offset_ns) <= best.error_ns + 1
        assert best.error_ns <= sum(ways) // 2 + 1


def test_a_clock_that_is_set_is_noticed() -> None:
    clock = Clock()
    estimate = OffsetEstimate(clock)
    assert estimate.best() is None
    estimate.add(ClockReading(0, 1_000))
    clock.now_ns += SECOND_NS
    estimate.add(ClockReading(5 * SECOND_NS, 50_000_000))
    best = estimate.best()
    assert best is not None
    assert best.offset_ns == 5 * SECOND_NS
