"""Thresholds over epochs against a loop over all of their times.

Hashes of segments against the plain one.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from gscope.engine.steps.epoch_thresholds import SampleThresholds, joined_ranges
from gscope.engine.watermarks.trim import ThresholdRange
from gscope.queries.catalog.evaluate import call
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.expressions.expressions import Column, Literal, PacketField
from gscope.queries.expressions.types import GsqlType
from gscope.queries.int64 import MIN_TIME_NS
from gscope.queries.plan.partitioning.row_hashes import row_hashes
from gscope.queries.plan.sampling.keyed_hash import HashKey, hash_terms
from gscope.queries.plan.sampling.moving_samples import MovingSample, moving_samples
from gscope.queries.plan.sampling.sampled_rows import ThresholdSource
from gscope.queries.plan.sampling.trimmed_sides import TrimmedSide
from gscope.queries.streams.thresholds import ThresholdSchedule, ThresholdStep

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

SECOND_NS = 1_000_000_000
KEY = HashKey.of_seed(5)
TIME = PacketField("time", GsqlType.INT, is_nullable=False)
TB = Column("tb", GsqlType.INT, is_nullable=False)
CLOCKS = {
    "plain": (call("idiv_int", TIME, Literal(3, GsqlType.INT)), lambda s: s // 3),
    "shifted": (
        call("add_int", call("idiv_int", TIME, Literal(3, GsqlType.INT)), Literal(1, GsqlType.INT)),
        lambda s: s // 3 + 1,
    ),
    # Its epochs begin within those of the others.
    "coarse": (
        call("idiv_int", call("add_int", TIME, Literal(1, GsqlType.INT)), Literal(9, GsqlType.INT)),
        lambda s: (s + 1) // 9,
    ),
}


def side(clock: str, source: ThresholdSource, *, is_logged: bool = True) -> TrimmedSide:
    return TrimmedSide(((source, CLOCKS[clock][0]),), TB, (TB,), is_logged)


def random_schedule(random: Random) -> ThresholdSchedule:
    times = sorted(random.sample(range(100 * SECOND_NS, 130 * SECOND_NS), random.randrange(6)))
    steps = []
    for time_ns in [MIN_TIME_NS, *times]:
        low, high = sorted((random.randrange(100), random.randrange(100)))
        steps.append(ThresholdStep(time_ns, low, high))
    return ThresholdSchedule(random.choice([MIN_TIME_NS, 200 * SECOND_NS]), tuple(steps))


@pytest.mark.parametrize("seed", range(30))
def test_an_epoch_has_the_least_threshold_of_its_times_on_all_sides(seed: int) -> None:
    random = Random(seed)
    schedules = {name: random_schedule(random) for name in ("s@a", "s@b", "t@a")}
    sides = (
        side("plain", ThresholdSource(("s@a", "s@b"))),
        side("shifted", ThresholdSource(("t@a",))),
    )
    thresholds = SampleThresholds([MovingSample(("s", "t"), 0.0, {"q": sides})], KEY)
    for stream, schedule in schedules.items():
        thresholds.on_schedule(stream, schedule)
    restored = SampleThresholds([MovingSample(("s", "t"), 0.0, {"q": sides})], KEY)
    restored.restore(thresholds.snapshot("q"))
    assert restored.ranges("q") == thresholds.ranges("q")
    for epoch in range(30, 50):
        steps = []
        for names, clock in (("s@a", "plain"), ("s@b", "plain"), ("t@a", "shifted")):
            own = [second for second in range(80, 160) if CLOCKS[clock][1](second) == epoch]
            first, end = own[0] * SECOND_NS, (own[-1] + 1) * SECOND_NS
            inside = [s.from_ns for s in schedules[names].steps if first < s.from_ns < end]
            steps += [schedules[names].at(time_ns) for time_ns in (first, *inside)]
        (found,) = (r for r in thresholds.ranges("q") if r.first <= epoch < r.end)
        assert found.threshold == min(step.threshold for step in steps)
        assert found.ceiling == max(step.ceiling for step in steps)


@pytest.mark.parametrize("seed", range(30))
def test_an_epoch_above_a_shifted_join_has_the_least_of_all_epochs_in_it(seed: int) -> None:
    random = Random(seed)
    below = (
        side("plain", ThresholdSource(("s@a",))),
        side("shifted", ThresholdSource(("t@a",))),
    )
    readers = {
        "by_left": (side("coarse", ThresholdSource((), "join", 0), is_logged=False),),
        "by_right": (side("coarse", ThresholdSource((), "join", 1), is_logged=False),),
    }
    thresholds = SampleThresholds([MovingSample(("s", "t"), 0.0, {"join": below, **readers})], KEY)
    for stream in ("s@a", "t@a"):
        thresholds.on_schedule(stream, random_schedule(random))
    of_join = {e: at(thresholds.ranges("join"), e).threshold for e in range(20, 60)}
    for name, clock in (("by_left", "plain"), ("by_right", "shifted")):
        for epoch in range(12, 17):
            seconds = range(9 * epoch - 1, 9 * epoch + 8)
            assert {CLOCKS["coarse"][1](second) for second in seconds} == {epoch}
            expected = min(of_join[CLOCKS[clock][1](second)] for second in seconds)
            assert at(thresholds.ranges(name), epoch).threshold == expected


ROWS = "GROUP BY srcIP"
LONG = {
    "window": f"SELECT window_end, srcIP, max(len) FROM TCP [RANGE 7 SLIDE 3] {ROWS}",
    "hopping": f"SELECT window_end, srcIP, max(len) FROM TCP [RANGE 2 SLIDE 5] {ROWS}",
    "join": "SELECT S.time as t, A.time as u, S.srcIP as ip FROM TCP S JOIN TCP A"
    " WHERE A.time >= S.time - 4 and A.time <= S.time + 2 and S.srcIP = A.srcIP",
    "right": "SELECT S.time, A.time FROM TCP S RIGHT JOIN TCP A"
    " ON A.time >= S.time - 4 and A.time <= S.time + 2 and S.srcIP = A.srcIP",
    "never": "SELECT time, srcIP, running_sum(len) FROM TCP GROUP BY time, srcIP"
    " CLOSING_WHEN running_sum(len) > 9",
}
CONCERNED: dict[str, Callable[[int], range]] = {
    "window": lambda end: range(end - 7, end),
    "hopping": lambda end: range(end - 2, end),
    "join": lambda first: range(first - 4, first + 3),
    "right": lambda second: range(second - 2, second + 5),
    "never": lambda second: range(90, second + 1),
}
"""The seconds that concern a window, by its end, or a row, by the time of its first side."""


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("seed", range(10))
def test_what_lives_longer_has_the_least_threshold_of_all_times_that_concern_it(
    seed: int, name: str
) -> None:
    thresholds, schedule = of_query(LONG[name], seed)
    unit = SECOND_NS if name in ("window", "hopping") else 1
    for second in range(98, 135):
        if name in ("window", "hopping") and second % {"window": 3, "hopping": 5}[name]:
            continue
        concerned = CONCERNED[name](second)
        first, end = concerned[0] * SECOND_NS, (concerned[-1] + 1) * SECOND_NS
        inside = [s.from_ns for s in schedule.steps if first < s.from_ns < end]
        steps = [schedule.at(time_ns) for time_ns in (first, *inside)]
        found = at(thresholds.ranges("q"), second * unit)
        assert found.threshold == min(step.threshold for step in steps)
        assert found.ceiling >= max(schedule.at(second * SECOND_NS - 1).threshold, found.threshold)


@pytest.mark.parametrize("seed", range(10))
def test_a_reader_by_the_other_side_has_the_least_of_all_rows_that_it_may_have(seed: int) -> None:
    reader = "SELECT tb, ip, count(*) FROM q GROUP BY u/5 as tb, ip"
    thresholds, _ = of_query(LONG["join"], seed, reader)
    below = thresholds.ranges("q")
    for epoch in range(20, 27):
        # The second side is at most 4 s before the first, and at most 2 s behind it.
        firsts = {u + d for u in range(5 * epoch, 5 * epoch + 5) for d in range(-2, 5)}
        limits = [at(below, first).threshold for first in firsts]
        found = at(thresholds.ranges("reader"), epoch)
        assert (found.threshold, found.ceiling) == (min(limits), max(limits))


def of_query(text: str, seed: int, reader: str = "") -> tuple[SampleThresholds, ThresholdSchedule]:
    """The thresholds of a query, and the random schedule of its stream."""
    texts = [QueryText(f"DEFINE {{ query_name q; }} {text}", "q")]
    if reader:
        texts.append(QueryText(f"DEFINE {{ query_name reader; }} {reader}", "reader"))
    program = compile_queries(texts, CompileContext(("a",), {}, samples=True)).program
    (sample,), _ = moving_samples(program)
    (stream,) = {stream for lfta in program.lftas for stream in lfta.streams}
    thresholds, schedule = SampleThresholds([sample], KEY), random_schedule(Random(seed))
    thresholds.on_schedule(stream, schedule)
    return thresholds, schedule


def test_the_thresholds_of_a_query_are_placed_at_times_of_today() -> None:
    # Epochs of 3 s, and of 9 s that begin 1 s before a multiple of 9.
    sides = {
        "low": (side("plain", ThresholdSource(("s@a",))),),
        "high": (side("coarse", ThresholdSource((), "low"), is_logged=False),),
    }
    thresholds = SampleThresholds([MovingSample(("s",), 0.0, sides)], KEY)
    begin = 1_700_000_010
    assert CLOCKS["plain"][1](begin - 1) < CLOCKS["plain"][1](begin)
    steps = [
        ThresholdStep(from_ns, threshold, threshold)
        for from_ns, threshold in (
            (MIN_TIME_NS, 10),
            (begin * SECOND_NS, 90),
            ((begin + 30) * SECOND_NS, 40),
        )
    ]
    thresholds.on_schedule("s@a", ThresholdSchedule(MIN_TIME_NS, tuple(steps)))
    for second in range(begin - 20, begin + 50):
        epoch = CLOCKS["coarse"][1](second)
        inside = [
            each for each in range(second - 9, second + 9) if CLOCKS["coarse"][1](each) == epoch
        ]
        # An epoch of 3 s counts as a whole where one of its seconds is inside.
        near = {3 * (each // 3) + part for each in inside for part in range(3)}
        expected = min(10 if each < begin else 90 if each < begin + 30 else 40 for each in near)
        assert at(thresholds.ranges("high"), epoch).threshold == expected


def at(ranges: Sequence[ThresholdRange], epoch: int) -> ThresholdRange:
    (found,) = (each for each in ranges if each.first <= epoch < each.end)
    return found


def test_ranges_that_overlap_are_joined() -> None:
    parts = [ThresholdRange(0, 5, 9, 9), ThresholdRange(3, 8, 4, 7)]
    assert joined_ranges(parts) == (
        ThresholdRange(0, 3, 9, 9),
        ThresholdRange(3, 5, 4, 9),
        ThresholdRange(5, 8, 4, 7),
    )


VALUES: dict[GsqlType, list[int | None]] = {
    GsqlType.INT: [0, -1, 5, 2**63 - 1, -(2**63), None],
    GsqlType.TIMESTAMP: [0, 1_700_000_000_000_000_000, None],
    GsqlType.MAC: [0, 0x020000000001, None],
    GsqlType.BOOL: [True, False, None],
    GsqlType.IP: [0, 0xFFFF << 32 | 0x0A000001, 0x20010DB8 << 96 | 1, 2**128 - 1, None],
}


@pytest.mark.parametrize("kind", VALUES)
def test_the_hash_of_a_row_is_that_of_its_packets(kind: GsqlType) -> None:
    values = VALUES[kind]
    ports = [random % 65536 for random in range(7, 7 + len(values))]
    stored = (
        pa.array([None if v is None else int(v).to_bytes(16) for v in values], pa.binary(16))
        if kind is GsqlType.IP
        else pa.array(values)
    )
    table = pa.table({"x": stored, "port": pa.array(ports, pa.uint16())})
    terms = (Column("x", kind, is_nullable=True), Column("port", GsqlType.INT, is_nullable=False))
    expected = [
        hash_terms((v, p), (kind, GsqlType.INT), KEY) for v, p in zip(values, ports, strict=True)
    ]
    assert row_hashes(table, terms, KEY).tolist() == expected
    assert row_hashes(table.slice(1), terms, KEY).tolist() == expected[1:]


def test_computed_terms_hash_as_well() -> None:
    number = Column("x", GsqlType.INT, is_nullable=True)
    term = call("idiv_int", number, Literal(10, GsqlType.INT))
    table = pa.table({"x": pa.array([5, 19, None])})
    expected = [hash_terms((v,), (GsqlType.INT,), KEY) for v in (0, 1, None)]
    assert row_hashes(table, (term,), KEY).tolist() == expected
