"""What an aggregation releases and when.

Whole epochs, each in one step, once all inputs passed it.
"""

from __future__ import annotations

import math
from unittest import mock

from tests.engine.operators.driven import Driven, batches

from gscope.engine.watermarks import release_size

TENS = "SELECT tb, count(*) AS n FROM IP GROUP BY time/10 AS tb"


def driven() -> Driven:
    return Driven(TENS, "tb")


def test_an_epoch_is_released_once_every_stream_has_passed_it() -> None:
    query = driven()
    first, other = query.batch(0, 3, 3), query.batch(1, 3, 3)
    query.beat(4, 3)
    assert not any(work.reads_rows for work in query.released())
    query.beat(4, 4)
    (work,) = query.released()
    assert (work.high, batches(work)) == (4, [first, other])
    assert query.operator.watermark == 4


def test_batches_above_the_watermark_are_retained_and_all_others_forgotten() -> None:
    query = driven()
    query.batch(0, 2, 3)
    both = query.batch(0, 3, 5)
    above = query.batch(0, 5, 6)
    query.beat(4, 4)
    (work,) = query.released()
    assert work.inputs[0].straddles
    assert query.waiting() == [both, above]
    query.beat(6, 6)
    (work,) = query.released()
    assert (work.low, work.high, work.read_below) == (4, 6, 4)
    assert batches(work) == [both, above]
    assert [batch for _, batch in work.inputs[0].partially_read] == [both]
    assert query.waiting() == [above]


def test_rows_below_the_watermark_are_in_no_answer_and_counted() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.batch(0, 1, 3, rows=7)
    partly = query.batch(0, 3, 4, rows=2)
    (work,) = query.released()
    assert (work.low, work.high) == (4, 4)
    assert [batch for _, batch in work.inputs[0].late] == [partly]
    assert query.operator.late_tuples == 7
    assert query.waiting() == [partly]
    query.beat(5, 5)
    (work,) = query.released()
    assert (work.low, batches(work), work.inputs[0].late) == (4, [partly], ())


def test_a_backlog_is_released_in_pieces_of_at_least_one_epoch() -> None:
    query = driven()
    made = [query.batch(0, epoch, epoch, rows=60) for epoch in (1, 2, 2, 3)]
    query.end(0, 1)
    with mock.patch.object(release_size, "MAX_STEP_ROWS", 100):
        works = query.released()
    assert [batches(work) for work in works if work.reads_rows] == [made[:1], made[1:3], made[3:]]


def test_the_output_is_promised_what_the_watermark_has_passed() -> None:
    query = driven()
    query.beat(4, 6)
    query.released()
    assert query.operator.output_bounds() == {"tb": 4}
    query.end(0)
    query.released()
    assert query.operator.output_bounds() == {"tb": 6}
    query.end(1)
    query.released()
    assert query.operator.output_bounds() == {"tb": math.inf}
    assert query.operator.watermark == math.inf


def test_a_restart_neither_repeats_nor_loses_an_epoch() -> None:
    query = driven()
    query.batch(0, 2, 3)
    both = query.batch(0, 3, 5)
    query.beat(4, 4)
    query.released()
    query.restart()
    assert query.released() == []
    assert query.waiting() == [both]
    query.end(0, 1)
    works = [work for work in query.released() if work.reads_rows]
    assert [(work.low, batches(work)) for work in works] == [(4, [both])]
    assert query.waiting() == []
