"""Releases in pieces: whole epochs, nothing twice, nothing left out."""

from __future__ import annotations

import itertools
import math

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.release import ENDED, Port, affordable, by_epochs, discard, release
from gscope.queries.catalog.evaluate import call
from gscope.queries.catalog.types import GsqlType
from gscope.queries.plan.expressions import Column, Literal
from gscope.queries.streams.messages import Batch, Extent

TIME = Column("time", GsqlType.INT, is_nullable=False)
EPOCH = call("idiv_int", TIME, Literal(10, GsqlType.INT))


def batch(number: int, least: int, greatest: int, rows: int = 1) -> Batch:
    return Batch("s", number, f"p{number}", rows, 0, (Extent("time", least, greatest),))


@st.composite
def batches(draw: st.DrawFn) -> list[Batch]:
    spans = draw(st.lists(st.tuples(st.integers(0, 90), st.integers(0, 25)), max_size=12))
    return [
        batch(number, least, least + length, draw(st.integers(1, 50)))
        for number, (least, length) in enumerate(spans)
    ]


@given(batches())
def test_groups_by_epochs_hold_every_batch_once_and_share_no_epoch(made: list[Batch]) -> None:
    groups = by_epochs([("s", each) for each in made], EPOCH)
    assert sorted(b.sequence for group in groups for b in group) == list(range(len(made)))
    spans = [
        (
            min(b.extent("time").least for b in group) // 10,
            max(b.extent("time").greatest for b in group) // 10,
        )
        for group in groups
    ]
    assert all(before[1] < after[0] for before, after in itertools.pairwise(spans))


@given(batches(), st.integers(1, 120))
def test_a_backlog_is_released_in_pieces_that_end_and_skip_nothing(
    made: list[Batch], rows: int
) -> None:
    port = Port("s", pending=list(made))
    seen: dict[int, int] = {}
    low = -math.inf
    for _ in range(len(made) + 1):
        whole = release([port], EPOCH, low, ENDED)
        high = affordable(whole, EPOCH, rows)
        assert high > low
        for _, each in release([port], EPOCH, low, high).batches:
            first, last = each.extent("time").least // 10, each.extent("time").greatest // 10
            for epoch in range(first, last + 1):
                if low <= epoch < high:
                    seen[each.sequence] = seen.get(each.sequence, 0) + 1
        discard([port], EPOCH, high)
        low = high
        if high == ENDED:
            break
    assert low == ENDED
    assert port.pending == []
    for each in made:
        span = each.extent("time").greatest // 10 - each.extent("time").least // 10 + 1
        assert seen[each.sequence] == span


def test_a_piece_has_at_least_one_epoch_however_large() -> None:
    port = Port("s", pending=[batch(0, 0, 9, 1000), batch(1, 10, 19, 1000)])
    assert affordable(release([port], EPOCH, -math.inf, ENDED), EPOCH, 10) == 1


def test_what_is_small_is_released_at_once() -> None:
    port = Port("s", pending=[batch(0, 0, 9), batch(1, 10, 19)])
    assert affordable(release([port], EPOCH, -math.inf, 5), EPOCH, 10) == 5
