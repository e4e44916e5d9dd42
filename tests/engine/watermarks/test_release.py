"""Releases in pieces: whole epochs, each row exactly once."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.watermarks.bounds import ENDED, NOTHING
from gscope.engine.watermarks.ports import Port
from gscope.engine.watermarks.release import ReleasedInput, Side
from gscope.engine.watermarks.release_size import affordable_bound, group_by_epochs, pack_groups
from gscope.queries.catalog.evaluate import call
from gscope.queries.expressions.expressions import Column, Literal
from gscope.queries.expressions.types import GsqlType
from gscope.queries.streams.messages import Batch, Extent

TIME = Column("time", GsqlType.INT, is_nullable=False)
EPOCH = call("idiv_int", TIME, Literal(10, GsqlType.INT))
SHIFTED = call("add_int", EPOCH, Literal(2, GsqlType.INT))


def batch(number: int, least: int, greatest: int, rows: int = 1) -> Batch:
    return Batch("s", number, f"p{number}", rows, 0, (Extent("time", least, greatest),))


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    spans = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 25)), max_size=12))
    return [
        batch(number, least, least + length, draw(st.integers(1, 50)))
        for number, (least, length) in enumerate(spans)
    ]


def side(made: list[Batch]) -> Side:
    return Side(EPOCH, {"s": Port("s", pending=list(made))})


def taken(made: list[Batch]) -> ReleasedInput:
    return ReleasedInput(EPOCH, tuple(("s", each) for each in made))


@given(batches(), batches())
def test_groups_by_epochs_hold_every_batch_once_and_share_no_epoch(
    left: list[Batch], right: list[Batch]
) -> None:
    shifted = ReleasedInput(SHIFTED, taken(right).batches)
    groups = group_by_epochs([taken(left), shifted])
    assert sorted(b.sequence for group in groups for b in group[0]) == list(range(len(left)))
    assert sorted(b.sequence for group in groups for b in group[1]) == list(range(len(right)))
    spans = []
    for group in groups:
        epochs = [(b, 0) for b in group[0]] + [(b, 2) for b in group[1]]
        least = min(b.extent("time").least // 10 + offset for b, offset in epochs)
        spans.append((least, max(b.extent("time").greatest // 10 + offset for b, offset in epochs)))
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))


def test_small_groups_are_joined_and_large_ones_stay_alone() -> None:
    sizes = (10, 20, 150_000, 5, 99_990, 30)
    groups = [([batch(number, 0, 0, rows)],) for number, rows in enumerate(sizes)]
    joined = pack_groups(groups, 100_000)
    assert [[b.sequence for b in side] for (side,) in joined] == [[0, 1], [2], [3, 4], [5]]
    assert pack_groups([], 100_000) == []


@given(st.lists(st.integers(1, 400), max_size=200), st.integers(1, 20))
def test_groups_joined_for_a_number_of_branches_are_not_more(sizes: list[int], half: int) -> None:
    groups = [([batch(number, 0, 0, rows)],) for number, rows in enumerate(sizes)]
    assert len(pack_groups(groups, 2 * sum(sizes) // (2 * half))) <= 2 * half


@given(batches(), st.integers(1, 120))
def test_a_backlog_is_released_in_pieces_that_end_and_skip_nothing(
    made: list[Batch], rows: int
) -> None:
    waits = side(made)
    seen: dict[int, int] = {}
    low = NOTHING
    for _ in range(len(made) + 1):
        high = affordable_bound([waits.release(low, ENDED)], ENDED, rows)
        assert high > low
        for _, each in waits.release(low, high).batches:
            first, last = each.extent("time").least // 10, each.extent("time").greatest // 10
            for epoch in range(first, last + 1):
                if low <= epoch < high:
                    seen[each.sequence] = seen.get(each.sequence, 0) + 1
        waits.discard(high)
        low = high
        if high == ENDED:
            break
    assert low == ENDED
    assert waits.pending == []
    for each in made:
        span = each.extent("time").greatest // 10 - each.extent("time").least // 10 + 1
        assert seen[each.sequence] == span


def test_a_piece_has_at_least_one_epoch_however_large() -> None:
    waits = side([batch(0, 0, 9, 1000), batch(1, 10, 19, 1000)])
    assert affordable_bound([waits.release(NOTHING, ENDED)], ENDED, 10) == 1


def test_a_piece_counts_the_rows_of_all_sides() -> None:
    left, right = taken([batch(0, 0, 9, 6), batch(1, 10, 19, 6)]), taken([batch(0, 0, 9, 6)])
    assert affordable_bound([left, right], ENDED, 15) == 1
    assert affordable_bound([left, right], ENDED, 20) == ENDED


def test_what_is_small_is_released_at_once() -> None:
    waits = side([batch(0, 0, 9), batch(1, 10, 19)])
    assert affordable_bound([waits.release(NOTHING, 5)], 5, 10) == 5


def test_rows_below_the_watermark_are_late_once_however_long_their_batch_waits() -> None:
    waits = side([batch(0, 0, 9), batch(1, 0, 30)])
    assert waits.take_late(NOTHING) == []
    assert waits.take_late(2) == []
    waits.ports["s"].pending.append(batch(2, 15, 40))
    assert [each.sequence for _, each in waits.take_late(2)] == [2]
    assert waits.take_late(2) == []


def test_the_clock_is_that_of_the_port_that_has_come_furthest_also_for_a_falling_column() -> None:
    ports = {name: Port(name) for name in "ab"}
    both = Side(EPOCH, ports)
    for port, reached in zip(ports.values(), (130, 301), strict=True):
        port.raise_clock({"time": reached, "-down": reached})
    down = Column("down", GsqlType.INT, is_nullable=False)
    assert (both.clock(EPOCH), both.clock(TIME), both.clock(down)) == (30, 301, -301)
    # A restarted job knows the clock, and no bounds yet.
    for port in ports.values():
        port.bounds.clear()
    assert both.clock(down) == -301


def test_a_partly_read_batch_is_never_read_whole() -> None:
    """An earlier step has read rows that are above the watermark, but not late in other batches."""
    port = Port("s", pending=[batch(0, 60, 90)])
    assert not Side(EPOCH, {"s": port}).release(6, 10).straddles
    port.partially_read = frozenset({0})
    assert Side(EPOCH, {"s": port}).release(6, 10).straddles
