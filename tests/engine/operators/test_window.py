"""What a window releases: whole windows, in bounded steps, with the slices still held."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.engine.operators.driven import Driven, batches
from tests.engine.operators.windowed import windowed

from gscope.engine.operators import window
from gscope.engine.steps.needed_bounds import needed_promises
from gscope.engine.storage.parquet_files import State, WrittenFile
from gscope.engine.watermarks.event_time import EventTimes
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.int64 import MAX_INT, MIN_INT
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.queries.streams.messages import Extent

LATE = SlidingWindow(18, 15)
"""Slices of 12 and 3 in turn: number n holds from 15·(n DIV 2) on, and 12 later if n is odd."""

SECOND = 1_000_000_000


def driven(overlapping: SlidingWindow | RepeatedSlices = LATE) -> Driven:
    return Driven(windowed(overlapping), SLICE)


def state(least: int, greatest: int, live: int = 1, kept: int = 0) -> State:
    extents = (Extent(SLICE, least, greatest),)
    files = (WrittenFile("slices", kept, 0, extents),) if kept else ()
    return State("w", 1, "state-1", live + kept, 0, extents, files=("live",), kept=files)


def test_a_heartbeat_that_closes_no_window_makes_no_step() -> None:
    query = driven()
    query.beat(0, 0)
    query.released()
    query.batch(0, 0, 0)
    query.beat(1, 1)  # the last three seconds of the window are open
    assert query.released() == []
    query.beat(2, 2)
    (work,) = query.released()
    assert (work.low, work.high) == (0, 2)
    query.operator.state = state(1, 1)
    query.beat(3, 3)
    assert query.released() == []


def test_a_window_is_answered_without_tuples_of_its_own_while_slices_are_held() -> None:
    query = driven()
    query.batch(0, 1, 1)
    query.beat(2, 2)
    query.released()
    held = query.operator.state = state(1, 1)
    query.beat(4, 4)
    (work,) = query.released()
    assert (work.low, work.high, work.state, batches(work)) == (2, 4, held, [])
    assert work.reads_rows
    (start, end) = work.extents
    assert (start, end) == (Extent("window_start", 12, 12), Extent("window_end", 30, 30))


def test_the_state_is_untouched_where_no_window_closes() -> None:
    query = driven()
    query.beat(4, 4)
    query.released()
    held = query.operator.state = state(3, 3)
    late = query.batch(0, 2, 5)
    (work,) = query.released()
    assert ([b for _, b in work.inputs[0].late], work.state, work.reads_rows) == (
        [late],
        None,
        False,
    )
    assert query.operator.state == held
    query.beat(6, 6)
    (work,) = query.released()
    assert (work.state, batches(work)) == (held, [late])


def test_the_punctuation_is_the_next_window() -> None:
    query = driven()
    assert query.operator.output_bounds() == {"window_start": -math.inf, "window_end": -math.inf}
    query.beat(7, 7)
    query.released()
    assert query.operator.output_bounds() == {"window_start": 42, "window_end": 60}
    query.end(0, 1)
    query.released()
    assert query.operator.output_bounds() == {"window_start": math.inf, "window_end": math.inf}
    assert query.operator.clock() == {"window_start": 42, "window_end": 60}


def test_timestamps_are_in_nanoseconds() -> None:
    query = Driven(windowed(LATE, unit_ns=SECOND), SLICE)
    query.batch(0, 6, 6)
    query.beat(8, 8)
    (work,) = query.released()
    assert work.extents == (
        Extent("window_start", 42 * SECOND, 42 * SECOND),
        Extent("window_end", 60 * SECOND, 60 * SECOND),
    )


def test_where_a_row_waits_the_end_of_its_window_is_needed() -> None:
    query = driven()
    assert needed_promises(query.steps.operators) == {}
    query.batch(0, 6, 6)
    query.beat(7, 7)
    assert not any(work.reads_rows for work in query.released())
    assert needed_promises(query.steps.operators) == {"low@a": {SLICE: 8}, "low@b": {SLICE: 8}}
    query.beat(8, 8)
    query.released()
    assert needed_promises(query.steps.operators) == {}
    query.operator.state = state(7, 7)
    assert needed_promises(query.steps.operators) == {"low@a": {SLICE: 10}, "low@b": {SLICE: 10}}


def test_a_reader_of_windows_needs_the_window_that_it_waits_for() -> None:
    query = Driven(windowed(LATE, SlidingWindow(60, 60)), SLICE)
    operators = query.steps.operators
    query.beat(8, 8)
    assert query.steps.next() is not None
    port = operators["rows"].sides[0].ports["w"]
    port.pending.append(query.batch(0, 8, 8))  # any batch: its extent gives no window_end
    port.pending[:] = [replace(port.pending[0], extents=(Extent("window_end", 60, 60),))]
    operators["w"].sides[0].ports["low@a"].pending.clear()
    # The window that ends at 120 must be next: that of 105 has slices below 14.
    assert needed_promises(operators) == {"low@a": {SLICE: 14}, "low@b": {SLICE: 14}}


def test_years_without_tuples_cost_no_steps() -> None:
    query = driven(SlidingWindow(3600, 1))
    query.batch(0, 5, 5)
    query.batch(0, 10**9, 10**9)
    query.beat(10**9, 10**9)
    (work,) = query.released()
    assert work.high == 10**9
    query.operator.state = state(10**9 - 1, 10**9 - 1)
    query.end(0, 1)
    assert [work.high for work in query.released()] == [math.inf]


def test_a_step_answers_a_bounded_number_of_rows() -> None:
    query = driven(SlidingWindow(1000, 1))
    query.batch(0, 0, 99, rows=100_000)
    query.beat(100, 100)
    step = query.steps.next()
    assert step is not None
    # As many rows enter in each of n windows: 1,000 * n * n = 1,000,000.
    assert step.works[0].high == 31
    query.operator.state = state(0, 30, live=31_000)
    step = query.steps.next()
    assert step is not None
    high = step.works[0].high
    assert 0 < (high - 31) * (31_000 + 1000 * (high - 31)) <= window.MAX_STEP_ANSWERS
    query.operator.state = None
    query.released()
    query.operator.state = state(0, 99, live=100_000, kept=100_000)
    query.end(0, 1)
    ends = [work.high for work in query.released()]
    assert ends == [*range(110, 1091, 10), math.inf]


def test_a_burst_is_not_taken_for_evenly_spread_rows() -> None:
    query = driven(SlidingWindow(1000, 1))
    query.batch(0, 0, 0, rows=50_000)
    query.batch(0, 1, 9_999, rows=1_000)
    query.beat(10_000, 10_000)
    (work, *_) = query.released()
    # Each of these windows has the rows of the burst.
    assert work.high == 19


def test_late_rows_may_arrive_with_a_burst() -> None:
    query = driven(SlidingWindow(1000, 1))
    query.beat(10, 10)
    query.released()
    late = query.batch(0, 3, 9)
    query.batch(0, 10, 99, rows=100_000)
    query.beat(100, 100)
    (work, *_) = query.released()
    assert work.high == 39
    assert query.operator.late_tuples == late.rows


def test_strides_over_times_without_rows_end_at_the_next_batch() -> None:
    query = driven(SlidingWindow(1000, 1))
    query.batch(0, 0, 10**6, rows=2_000)  # one row at each end, for all that is known
    query.batch(0, 900_000, 10**6, rows=900_000)
    query.beat(10**6, 10**6)
    ends = [work.high for work in query.released()]
    before = [end for end in ends if end <= 900_000]
    assert len(before) < 10
    assert before[-1] == 900_000
    # 9 rows enter in each window.
    assert ends[len(before)] - 900_000 < 400


def test_a_batch_that_arrives_after_silence_is_answered_in_bounded_steps() -> None:
    query = driven(SlidingWindow(1000, 1))
    assert isinstance(query.operator, window.WindowOperator)
    query.operator.idle = 20
    query.batch(0, 0, 99, rows=100_000)
    query.beat(100, 100)
    assert query.released()[0].high == 31


def test_tumbling_windows_need_no_bound() -> None:
    query = driven(SlidingWindow(10, 10))
    query.batch(0, 0, 999, rows=400_000)
    query.end(0, 1)
    assert [work.high for work in query.released()] == [math.inf]


@pytest.mark.parametrize("unit", [None, SECOND])
def test_the_time_of_a_watermark_is_the_beginning_of_a_slice(unit: int | None) -> None:
    program = windowed(LATE, SlidingWindow(60, 60), unit_ns=unit)
    times = EventTimes(program)
    assert [times.of("w", n) for n in (2, 3, 4)] == [15 * SECOND, 27 * SECOND, 30 * SECOND]
    # A reader of windows that counts time in the end of windows is as far as the clock.
    assert times.of("rows", 60 * SECOND) == (None if unit is None else 60 * SECOND)


@pytest.mark.parametrize("total", ["count(*)", "sum(id*1.0)"])
@pytest.mark.parametrize(
    ("lengths", "first", "last"),
    [
        ("RANGE 100 SLIDE 33", MAX_INT - 5, MAX_INT),
        ("RANGE 4611686018427387904", MAX_INT - 5, MAX_INT),
        ("RANGE 9 SLIDE 4611686018427387904", MIN_INT, MIN_INT + 5),
        ("SLICES 7, 3", MIN_INT, MAX_INT),
    ],
)
def test_no_window_leaves_64_bits(total: str, lengths: str, first: int, last: int) -> None:
    text = (
        f"SELECT window_start, window_end, {total} AS n "
        f"FROM (SELECT increasing(id) AS n, id FROM IPV4) t [{lengths}]"
    )
    compiled = compile_queries([QueryText(text, "q.gsql")], CompileContext(("a",))).program
    query = Driven(compiled, "n")
    query.batch(0, first, last)
    query.beat(last)
    query.batch(0, last, last)
    works = query.released()
    query.end(0)
    works += query.released()
    assert [b for work in works for b in batches(work)]
    edges: list[float] = [x for w in works for e in w.extents for x in (e.least, e.greatest)]
    edges += [bound for w in works for bound in (w.low, w.high) if math.isfinite(bound)]
    assert edges
    assert all(MIN_INT <= edge <= MAX_INT for edge in edges)


def test_a_window_of_packets_ends_with_64_bits_of_nanoseconds() -> None:
    query = Driven(windowed(SlidingWindow(60, 20), unit_ns=SECOND), SLICE)
    last = MAX_INT // SECOND // 20
    query.batch(0, last, last)
    query.end(0, 1)
    (work,) = query.released()
    (start, end) = work.extents
    assert end == Extent("window_end", MAX_INT, MAX_INT)
    assert MAX_INT - 60 * SECOND < start.least <= start.greatest < MAX_INT


def test_windows_along_seconds_end_in_nanoseconds() -> None:
    text = """
        DEFINE { query_name 'seconds'; } SELECT time AS t, sum(len*1.0) AS s FROM IP GROUP BY time;
        DEFINE { query_name 'w'; } SELECT window_end, sum(s*1.0) AS s FROM seconds [RANGE 18 SLIDE 15];
        DEFINE { query_name 'top'; }
        SELECT e, count(*) AS n FROM w GROUP BY window_end / INTERVAL '60 sec' AS e
    """  # noqa: E501
    compiled = compile_queries([QueryText(text, "q.gsql")], CompileContext(("a",))).program
    times = EventTimes(compiled)
    assert times.of("w", 30) == 30 * SECOND
    assert times.of("top", 2) == 120 * SECOND
