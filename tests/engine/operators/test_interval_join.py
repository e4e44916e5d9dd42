"""What an interval join releases: the first side once, the second as often as it has partners."""

from __future__ import annotations

import math

import pytest
from tests.engine.operators.driven import Driven, batches

TEXT = "SELECT x.time, y.len FROM a.TCP x {} b.TCP y ON y.time BETWEEN x.time AND x.time + 4"
FIRST, SECOND = 0, 1


def driven(kind: str = "JOIN") -> Driven:
    return Driven(TEXT.format(kind))


def test_the_watermark_is_the_first_bound_or_the_second_less_the_interval() -> None:
    query = driven()
    query.beat(9, 9)
    query.released()
    assert query.operator.watermark == 5
    query.beat(9, 20)
    query.released()
    assert query.operator.watermark == 9


def test_the_first_side_is_read_once_and_the_second_until_it_has_no_partners() -> None:
    query = driven("LEFT JOIN")
    early, late = query.batch(FIRST, 1, 1), query.batch(FIRST, 6, 6)
    partner = query.batch(SECOND, 5, 6)
    query.beat(5, 9)
    (work,) = query.released()
    assert (work.high, batches(work, FIRST), batches(work, SECOND)) == (5, [early], [partner])
    assert query.waiting() == [late, partner]
    query.beat(7, 11)
    (work,) = query.released()
    assert (work.low, work.high) == (5, 7)
    assert [batches(work, side) for side in range(2)] == [[late], [partner]]
    assert [batch for _, batch in work.inputs[SECOND].partially_read] == [partner]
    assert query.waiting() == []
    assert query.operator.late_tuples == 0


def test_a_full_join_reads_the_first_side_again_for_rows_without_partners() -> None:
    query = driven("FULL JOIN")
    row = query.batch(FIRST, 1, 1)
    query.beat(5, 9)
    (work,) = query.released()
    assert batches(work, FIRST) == [row]
    assert query.waiting() == [row]
    query.beat(6, 10)
    query.released()
    assert query.waiting() == []


def test_of_a_right_join_the_right_side_is_first() -> None:
    query = driven("RIGHT JOIN")
    left, right = query.batch(0, 1, 1), query.batch(1, 3, 3)
    query.beat(4, 4)
    (work,) = query.released()
    assert (work.high, batches(work, 1), batches(work, 0)) == (4, [right], [left])
    assert query.waiting() == [left]


@pytest.mark.parametrize(
    ("kind", "side", "reads"),
    [
        ("JOIN", FIRST, False),
        ("JOIN", SECOND, False),
        ("LEFT JOIN", FIRST, True),
        ("LEFT JOIN", SECOND, False),
        ("FULL JOIN", SECOND, True),
    ],
)
def test_rows_of_one_side_alone_are_read_only_if_they_give_answers(
    kind: str, side: int, reads: bool
) -> None:
    query = driven(kind)
    query.batch(side, 1, 1)
    query.end(0, 1)
    assert any(work.reads_rows for work in query.released()) is reads
    assert query.waiting() == []


def test_a_restart_keeps_what_later_steps_read() -> None:
    query = driven("LEFT JOIN")
    query.batch(FIRST, 1, 1)
    partner = query.batch(SECOND, 5, 6)
    query.beat(5, 9)
    query.released()
    query.restart()
    assert query.released() == []
    assert query.waiting() == [partner]
    later = query.batch(FIRST, 6, 6)
    query.end(0, 1)
    (work,) = (work for work in query.released() if work.reads_rows)
    assert [batches(work, side) for side in range(2)] == [[later], [partner]]
    assert [batch for _, batch in work.inputs[SECOND].partially_read] == [partner]
    assert query.operator.late_tuples == 0
    assert query.operator.watermark == math.inf
