"""What a running aggregation releases.

Epochs in pieces while groups live, with the state they left.
"""

from __future__ import annotations

import math

from tests.engine.operators.driven import Driven, batches

from gscope.engine.operators import running
from gscope.engine.storage.parquet_files import State
from gscope.queries.streams.messages import Extent

TEXT = (
    "SELECT tb, srcIP, running_sum(len) AS s FROM IP"
    " GROUP BY time/10 AS tb, srcIP CLOSING_WHEN count(*) = 0"
)


def driven() -> Driven:
    return Driven(TEXT, "tb")


def state(step: int, rows: int = 1) -> State:
    return State("q", step, f"state-{step}", rows, 0, ())


def test_epochs_are_released_whole_and_without_groups_there_is_no_state() -> None:
    query = driven()
    rows = query.batch(0, 3, 3)
    query.beat(4, 4)
    (work,) = query.released()
    assert (work.high, batches(work), work.state) == (4, [rows], None)


def test_the_state_goes_to_each_step_that_closes_an_epoch_and_to_no_other() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.operator.state = state(1)
    late = query.batch(0, 2, 4)
    (work,) = query.released()
    assert ([batch for _, batch in work.inputs[0].late], work.state) == ([late], None)
    query.beat(5, 5)
    (work,) = query.released()
    assert (work.high, work.state) == (5, state(1))
    assert query.operator.state == state(1)


def test_late_rows_of_a_query_leave_the_state_alone() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.operator.state = state(1)
    (port, _) = query.steps.streams
    work = query.operator.advance({port: (Extent("tb", 2, 7),)})
    assert work is not None
    (taken,) = work.inputs
    assert (work.reads_rows, taken.overdue, taken.carries) == (False, (port,), (port,))


def test_live_groups_are_answered_in_epochs_without_tuples() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.operator.state = state(1)
    query.beat(6, 6)
    (work,) = query.released()
    assert work.reads_rows
    assert [(extent.least, extent.greatest) for extent in work.extents] == [(4, 5)]


def test_while_groups_live_a_step_answers_a_bounded_number_of_epochs_and_rows() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.operator.state = state(1)
    query.beat(1 << 40, 1 << 40)
    step = query.steps.next()
    assert step is not None
    assert step.works[0].high == 4 + running.MAX_STEP_EPOCHS
    query.operator.state = state(2, rows=running.MAX_STEP_ANSWERS // 2)
    step = query.steps.next()
    assert step is not None
    assert step.works[0].high == step.works[0].low + 2


def test_at_the_end_the_open_epoch_is_answered_once_and_the_state_is_gone() -> None:
    query = driven()
    query.batch(0, 3, 3)
    query.beat(3, 3)
    query.end(0, 1)
    (work,) = query.released()
    assert (work.high, work.last) == (math.inf, 3)
    query.operator.state = None
    assert query.operator.watermark == math.inf
    assert query.released() == []


def test_a_restart_keeps_the_state() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    query.operator.state = state(1)
    query.restart()
    assert query.operator.state == state(1)
    query.beat(5, 5)
    (work,) = query.released()
    assert (work.low, work.high, work.state) == (4, 5, state(1))
