"""Lists of losses: nothing that was lost leaves them, and they stay small."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gscope.queries.streams.loss_reasons import REASONS
from gscope.queries.streams.losses import (
    MOST_LOSSES,
    NO_LOSSES,
    Losses,
    LossPeriod,
    LostRows,
    united,
)
from gscope.queries.streams.messages import Extent


@st.composite
def periods(draw: st.DrawFn) -> LossPeriod:
    first = draw(st.integers(0, 300))
    last = first + draw(st.integers(0, 9))
    return LossPeriod(draw(st.sampled_from(REASONS)), first, last, draw(st.none() | st.just(2)))


def moments(held: Losses, reason: str) -> set[int]:
    found = (each for each in held.periods if each.reason == reason)
    return {moment for each in found for moment in range(each.first_ns, each.last_ns + 1)}


@given(st.lists(periods(), max_size=3 * MOST_LOSSES))
def test_no_moment_of_a_loss_is_forgotten(given_periods: list[LossPeriod]) -> None:
    losses = NO_LOSSES
    for period in given_periods:
        losses = losses.with_period(period)
    assert len(losses.periods) <= MOST_LOSSES
    firsts = [each.first_ns for each in losses.periods]
    assert firsts == sorted(firsts)
    for reason in REASONS:
        lost = {
            moment
            for each in given_periods
            if each.reason == reason
            for moment in range(each.first_ns, each.last_ns + 1)
        }
        assert lost <= moments(losses, reason)
        if len(given_periods) <= MOST_LOSSES:
            assert lost == moments(losses, reason)


def test_periods_that_touch_are_joined_before_others() -> None:
    losses = NO_LOSSES
    # Two long bursts of drops, one reading after another, far from each other.
    for begin in (0, 10_000):
        for number in range(2 * MOST_LOSSES):
            first = begin + 10 * number
            losses = losses.with_period(LossPeriod("kernel", first, first + 10, 1))
    assert len(losses.periods) == MOST_LOSSES
    assert sum(each.packets or 0 for each in losses.periods) == 4 * MOST_LOSSES
    assert not any(640 < moment < 10_000 for moment in moments(losses, "kernel"))


def test_the_oldest_are_joined_if_none_touch() -> None:
    losses = NO_LOSSES
    for number in range(MOST_LOSSES + 2):
        losses = losses.with_period(LossPeriod("kernel", 10 * number, 10 * number, None))
    first, second, *_ = losses.periods
    assert (first.first_ns, first.last_ns, first.packets) == (0, 20, None)
    assert (second.first_ns, second.last_ns) == (30, 30)


def test_what_several_streams_list_is_one_loss() -> None:
    both = LossPeriod("kernel", 5, 9, 3)
    one, other = LossPeriod("restart", 7, 20), LossPeriod("kernel", 30, 31, 1)
    rows = LostRows((Extent("tb", 1, 2),), 4)
    found = united([Losses((both, one), (rows,)), Losses((both, other), (rows,))])
    assert found == Losses((both, one, other), (rows,))
    assert not united([])


def test_rows_beyond_the_limit_are_joined() -> None:
    losses = NO_LOSSES
    for number in range(MOST_LOSSES + 1):
        losses = losses.with_rows(LostRows((Extent("tb", number, number + 1),), number))
    assert len(losses.rows) == MOST_LOSSES
    assert losses.rows[0] == LostRows((Extent("tb", 0, 2),), 1)


def test_rows_of_other_columns_are_joined_in_those_that_all_have() -> None:
    losses = NO_LOSSES
    for n in range(MOST_LOSSES + 2):
        extents = (Extent("fine", n, n),) if n == 1 else (Extent("tb", n, n), Extent("fine", n, n))
        losses = losses.with_rows(LostRows(extents, (1 << 63) - 1))
    assert losses.rows[0] == LostRows((Extent("fine", 0, 2),), (1 << 63) - 1)
    assert losses.rows[1].extents == (Extent("tb", 3, 3), Extent("fine", 3, 3))
