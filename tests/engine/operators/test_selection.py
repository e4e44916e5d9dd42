"""What a selection releases: every batch in the next step; it retains nothing."""

from __future__ import annotations

import math

from tests.engine.operators.driven import Driven, batches

TEXT = "SELECT time + 1 AS later, len FROM {} WHERE sqrt(len) > 2.0"


def driven(source: str = "a.TCP") -> Driven:
    return Driven(TEXT.format(source), "later")


def test_a_batch_is_read_in_the_next_step_without_any_promise() -> None:
    query = driven()
    first, second = query.batch(0, 7, 9), query.batch(0, 5, 6)
    (work,) = query.released()
    assert batches(work) == [first, second]
    assert [(extent.column, extent.least, extent.greatest) for extent in work.extents] == [
        ("later", 5, 9)
    ]
    assert query.waiting() == []
    assert query.released() == []


def test_heartbeats_alone_give_no_work_and_raise_the_promise() -> None:
    query = driven()
    query.beat(7)
    assert query.released() == []
    assert query.operator.output_bounds() == {"later": 7}


def test_the_promise_is_the_least_of_the_streams() -> None:
    query = driven("TCP")
    query.beat(7, 9)
    assert query.operator.output_bounds() == {"later": 7}


def test_no_row_is_late() -> None:
    query = driven()
    query.beat(7)
    late = query.batch(0, 1, 2)
    (work,) = query.released()
    assert (batches(work), work.inputs[0].late) == ([late], ())
    assert query.operator.late_tuples == 0


def test_it_is_finished_when_its_input_has_ended_and_is_read() -> None:
    query = driven()
    query.batch(0, 7, 9)
    query.end(0)
    assert query.operator.watermark == -math.inf
    assert len(query.released()) == 1
    assert query.operator.watermark == math.inf
    assert query.operator.output_bounds() == {"later": math.inf}


def test_a_restart_reads_no_batch_again() -> None:
    query = driven()
    query.batch(0, 7, 9)
    query.released()
    query.restart()
    assert query.released() == []
    later = query.batch(0, 9, 9)
    (work,) = query.released()
    assert batches(work) == [later]
