"""Periods of drops: between readings, less the skew, whatever the clock does."""

from __future__ import annotations

import pytest

from gscope.capture.interface.loss_meter import LossMeter
from gscope.capture.sources.base import SourceStats
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.streams.losses import LossPeriod

SKEW = 10


class Ring:
    """A ring whose counter is read, by clocks that a test sets."""

    def __init__(self) -> None:
        self.wall_ns = 1000
        self.monotonic_ns = 0
        self.stats = SourceStats()
        self.meter = LossMeter(SKEW, lambda: self.wall_ns, lambda: self.monotonic_ns)

    def passes(self, ns: int) -> None:
        self.wall_ns += ns
        self.monotonic_ns += ns

    def read(self, dropped: int, bound_ns: int = MIN_TIME_NS, *, waits_ns: int = 0) -> None:
        """Read the counter, perhaps after a wait for packets."""
        began = self.meter.now()
        self.passes(waits_ns)
        if waits_ns:
            self.stats.drops_read_ns = self.wall_ns
        self.stats.dropped_packets += dropped
        self.meter.on_read(began, self.stats, bound_ns)

    @property
    def periods(self) -> list[tuple[int, int, int | None]]:
        return [(each.first_ns, each.last_ns, each.packets) for each in self.meter.losses.periods]


def test_a_period_lies_between_two_readings() -> None:
    ring = Ring()
    ring.read(0)
    ring.passes(100)
    ring.read(3)
    ring.passes(100)
    ring.read(0)
    assert ring.periods == [(1000 - SKEW, 1100, 3)]
    assert ring.meter.losses.periods[0] == LossPeriod("kernel", 990, 1100, 3)


def test_packets_that_only_their_numbers_miss_have_no_period() -> None:
    ring = Ring()
    ring.stats.absent_packets = 5
    ring.read(5)
    assert ring.periods == []
    ring.passes(100)
    ring.stats.absent_packets = 4
    ring.read(0)
    assert ring.periods == [(990, 1100, 1)]


def test_the_first_period_begins_with_the_meter() -> None:
    ring = Ring()
    ring.passes(50)
    ring.read(2)
    assert ring.periods == [(990, 1050, 2)]


def test_the_time_that_a_source_waits_for_packets_is_not_in_it() -> None:
    ring = Ring()
    ring.read(0, waits_ns=500)
    ring.passes(20)
    ring.read(1, waits_ns=7)
    assert ring.periods == [(1490, 1527, 1)]


def test_it_does_not_begin_below_the_promised_bound() -> None:
    ring = Ring()
    ring.passes(100)
    ring.read(1, 1040)
    ring.read(1, 1200)
    assert ring.periods == [(1040, 1100, 1), (1200, 1200, 1)]


@pytest.mark.parametrize("step_ns", [-300, -1, 300])
def test_a_step_of_the_clock_is_in_it(step_ns: int) -> None:
    ring = Ring()
    ring.read(0)
    ring.passes(40)
    before = ring.wall_ns
    ring.wall_ns += step_ns
    after = ring.wall_ns
    ring.passes(60)
    ring.read(1)
    ((first, last, _),) = ring.periods
    # Dropped at any moment: before the step, right after it, or now.
    for time_ns in (1000, before, after, ring.wall_ns):
        assert first <= time_ns <= last
