"""What a join of equal epochs releases: both sides up to the same bound, each row in one step."""

from __future__ import annotations

import math

import pytest
from tests.engine.operators.driven import Driven, batches

INNER = "SELECT x.time, y.len FROM a.TCP x JOIN b.TCP y ON x.time = y.time"
SHIFTED = "SELECT x.time, y.len FROM a.TCP x JOIN b.TCP y ON x.time = y.time + 3"


def test_both_sides_are_released_up_to_the_lesser_bound() -> None:
    query = Driven(INNER)
    left, right = query.batch(0, 1, 2), query.batch(1, 2, 8)
    query.beat(9, 5)
    (work,) = query.released()
    assert (work.low, work.high) == (-math.inf, 5)
    assert [batches(work, side) for side in range(2)] == [[left], [right]]
    assert [taken.straddles for taken in work.inputs] == [False, True]
    assert query.waiting() == [right]


def test_a_silent_side_that_beats_holds_no_row_of_the_other_back() -> None:
    query = Driven(INNER)
    left = query.batch(0, 1, 2)
    query.beat(5, 5)
    (work,) = query.released()
    assert [batches(work, side) for side in range(2)] == [[left], []]
    assert query.waiting() == []


def test_epochs_of_sides_are_compared_not_their_columns() -> None:
    query = Driven(SHIFTED)
    left, right = query.batch(0, 4, 4), query.batch(1, 1, 1)
    query.beat(5, 1)
    assert query.operator.watermark == -math.inf
    (work,) = query.released()
    assert work.high == 4
    assert work.inputs[0].batches == ()
    query.beat(5, 2)
    (work,) = query.released()
    assert (work.high, batches(work, 0), batches(work, 1)) == (5, [left], [right])


@pytest.mark.parametrize("kind", ["JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"])
def test_a_restart_reads_each_row_once(kind: str) -> None:
    query = Driven(INNER.replace("JOIN", kind))
    query.batch(0, 1, 2)
    right = query.batch(1, 2, 8)
    query.beat(5, 5)
    query.released()
    query.restart()
    assert query.released() == []
    query.end(0, 1)
    (work,) = (work for work in query.released() if work.reads_rows)
    assert [batches(work, side) for side in range(2)] == [[], [right]]
    assert (work.low, work.high) == (5, math.inf)
    assert query.operator.watermark == math.inf
