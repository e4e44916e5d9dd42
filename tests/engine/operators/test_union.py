"""What a merge of latent inputs releases: every batch in the next step, in no order."""

from __future__ import annotations

import math

from tests.engine.operators.driven import Driven, batches

TEXT = "MERGE x.time : y.time FROM a.TCP x, b.TCP y"


def driven() -> Driven:
    return Driven(TEXT, latent=frozenset({"a", "b"}))


def test_rows_pass_as_they_come_whatever_the_other_input_does() -> None:
    query = driven()
    one = query.batch(0, 7, 9)
    (work,) = query.released()
    assert [batches(work, side) for side in range(2)] == [[one], []]
    other = query.batch(1, 3, 4)
    (work,) = query.released()
    assert [batches(work, side) for side in range(2)] == [[], [other]]
    assert query.waiting() == []
    assert query.operator.late_tuples == 0


def test_extents_are_those_of_the_inputs_that_are_read() -> None:
    query = driven()
    query.batch(1, 3, 4)
    (work,) = query.released()
    (extent,) = (extent for extent in work.extents if extent.column == "time")
    assert (extent.least, extent.greatest) == (3, 4)


def test_the_promise_is_the_least_of_the_inputs() -> None:
    query = driven()
    query.beat(7, 9)
    assert query.operator.output_bounds()["time"] == 7
    query.end(0)
    assert query.operator.output_bounds()["time"] == 9


def test_it_is_finished_when_all_inputs_have_ended_and_are_read() -> None:
    query = driven()
    query.batch(1, 3, 4)
    query.end(0, 1)
    assert query.operator.watermark == -math.inf
    query.released()
    assert query.operator.watermark == math.inf


def test_a_restart_reads_no_batch_again() -> None:
    query = driven()
    query.batch(0, 7, 9)
    query.released()
    query.restart()
    assert query.released() == []
