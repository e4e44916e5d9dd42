"""Bounds of answers: passed on behind the rows below them, and never more than is promised."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gscope.cli.delivery.answer_bounds import whole_bound
from gscope.cli.delivery.checkpoint import DeliveryCheckpoint, StreamPosition
from gscope.cli.delivery.delivery import Delivery
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.process_events import CommittedOutput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from gscope.queries.plan.program import Program

QUERIES = """
DEFINE { query_name 'seen'; } SELECT time AS t, srcPort FROM a.UDP;
DEFINE { query_name 'counts'; } SELECT tb, count(*) AS n FROM UDP GROUP BY time/10 AS tb;
DEFINE { query_name 'both'; } SELECT time, srcPort FROM UDP;
"""
COLUMNS = {"seen": "t", "counts": "tb", "both": "time"}


def _compiled() -> Program:
    """Return the program, with a second stream of the result that is one."""
    program = compile_queries([QueryText(QUERIES, "q")], CompileContext(("a", "b"))).program
    lftas = (
        replace(each, interfaces=("a", "b")) if each.name == "seen" else each
        for each in program.lftas
    )
    return replace(program, lftas=tuple(lftas))


PROGRAM = _compiled()
STREAMS = PROGRAM.lfta("seen").streams


class Log:
    """A sink, and what receives bounds: notes both in order."""

    def __init__(self) -> None:
        self.rows: dict[str, list[int]] = {query: [] for query in COLUMNS}
        self.bounds: dict[str, int] = {}
        self.unsettled: list[str] = []

    def begin(self, query: str, schema: pa.Schema) -> None: ...

    def write(self, query: str, table: pa.Table) -> None:
        values = table[COLUMNS[query]].cast(pa.int64()).to_pylist()
        assert all(value >= self.bounds.get(query, -math.inf) for value in values)
        self.rows[query] += values

    def on_bound(self, query: str, bound: int) -> None:
        assert bound > self.bounds.get(query, -math.inf)
        self.bounds[query] = bound
        self.unsettled.append(query)

    def settle(self, *, is_last: bool) -> dict[str, Any]:
        self.unsettled.clear()
        return {}

    def publish(self) -> None: ...

    def close(self, *, is_complete: bool) -> None: ...


class FromMemory(Delivery):
    """Reads the outputs of steps from a dictionary."""

    tables: dict[str, list[pa.Table]]

    def _size(self, output: CommittedOutput) -> int:
        return 0

    def _read(self, output: CommittedOutput) -> Iterator[pa.Table]:
        yield from self.tables[output.path]


def delivery(log: Log, folder: Path, *, is_live: bool, is_interleaved: bool = False) -> FromMemory:
    made = FromMemory(
        PROGRAM,
        folder,
        log,
        DeliveryCheckpoint(folder) if is_live else None,
        is_interleaved=is_interleaved,
        on_bound=log.on_bound,
    )
    made.tables = {}
    return made


def table(query: str, values: list[int]) -> pa.Table:
    other = next(name for name in PROGRAM.schema(query).names if name != COLUMNS[query])
    epochs = pa.array(values, pa.int64())
    return pa.table({COLUMNS[query]: epochs, other: pa.array(range(len(values)), pa.int64())})


def promised(**bounds: float) -> dict[str, dict[str, float]]:
    return {query: {COLUMNS[query]: bound} for query, bound in bounds.items()}


def output(answers: FromMemory, step: int, query: str, values: list[int]) -> CommittedOutput:
    made = CommittedOutput(query, f"{query}/{step}", len(values))
    answers.tables[made.path] = [table(query, values)]
    return made


JOB_STEPS = st.lists(
    st.tuples(st.sampled_from(["commit", "idle", "again"]), st.integers(0, 9), st.integers(-2, 9)),
    max_size=12,
)


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JOB_STEPS, st.booleans())
def test_a_bound_of_the_job_follows_the_rows_below_it(
    tmp_path: Path, steps: list[tuple[str, int, int]], is_live: bool
) -> None:
    (tmp_path / "delivered.json").unlink(missing_ok=True)
    log = Log()
    answers = delivery(log, tmp_path, is_live=is_live)
    given_rows: list[int] = []
    reached, number = 0, 0
    for kind, more, behind in steps:
        bounds = promised(counts=reached + more, both=reached + more - behind)
        if kind == "again" and number:
            # A restarted job reports what it committed before, without bounds.
            answers.on_commit(number, [])
            continue
        if kind == "commit":
            number += 1
            values = sorted(reached + n for n in range(more + 1))
            given_rows += values
            answers.on_commit(number, [output(answers, number, "counts", values)], bounds)
        else:
            answers.on_bounds(bounds)
        reached += more
        assert log.bounds["counts"] == reached
        written = [value for value in log.rows["counts"] if value < reached]
        assert written == [value for value in given_rows if value < reached]
        assert not log.unsettled
    answers.finish()
    assert log.rows["counts"] == given_rows


def test_a_bound_of_streams_is_the_least_of_those_that_go_on(tmp_path: Path) -> None:
    log = Log()
    answers = delivery(log, tmp_path, is_live=True)
    first, second = STREAMS

    def read(rows: list[int], **positions: StreamPosition) -> int | None:
        given_rows = [("seen", [table("seen", rows)])] if rows else []
        streams = {{"one": first, "two": second}[name]: at for name, at in positions.items()}
        answers.on_rows(given_rows, streams, lambda _: None)
        assert not log.unsettled
        return log.bounds.get("seen")

    assert read([3], one=StreamPosition(1, 1, 5)) is None
    assert read([1, 2], two=StreamPosition(1, 1, 4)) == 4
    assert read([4, 6], two=StreamPosition(2, 2, 7)) == 5
    # A delivery that goes on knows what the one before it had delivered.
    answers = delivery(log, tmp_path, is_live=True)
    assert read([], one=StreamPosition(2, 2, 6)) == 6
    assert read([8], one=StreamPosition(3, 3, 9, has_ended=True)) == 7
    assert read([], two=StreamPosition(3, 3, 8)) == 8
    # All have ended: the greatest is how far the packets had come.
    assert read([8], two=StreamPosition(4, 4, 8, has_ended=True)) == 9
    answers.finish()
    assert log.bounds == {"seen": 9}


@pytest.mark.parametrize("has_ended", [True, False])
def test_at_the_end_of_the_input_the_clock_stands_for_the_infinite_bound(
    tmp_path: Path, has_ended: bool
) -> None:
    log = Log()
    answers = delivery(log, tmp_path, is_live=False)
    answers.on_commit(1, [output(answers, 1, "counts", [1, 2, 5])], promised(counts=4))
    ended = promised(counts=math.inf, both=-math.inf)
    answers.on_commit(2, [output(answers, 2, "counts", [6])], ended)
    answers.on_answered(promised(counts=8, both=-math.inf))
    assert log.bounds == {"counts": 4}
    answers.finish(has_ended=has_ended)
    assert log.rows["counts"] == [1, 2, 5, 6]
    assert log.bounds == {"counts": 8 if has_ended else 4}


def test_bounds_of_interleaved_answers_wait_for_the_end(tmp_path: Path) -> None:
    log = Log()
    answers = delivery(log, tmp_path, is_live=False, is_interleaved=True)
    answers.on_commit(1, [output(answers, 1, "counts", [1, 2])], promised(counts=3, both=30))
    answers.on_bounds(promised(counts=4, both=40))
    assert log.bounds == {}
    answers.on_rows([], {each: StreamPosition(1, 1, 35, True) for each in STREAMS}, lambda _: None)
    answers.on_answered(promised(counts=5, both=50))
    answers.finish()
    assert log.rows["counts"] == [1, 2]
    assert log.bounds == {"seen": 35, "counts": 5, "both": 50}


def test_an_answer_that_has_reached_its_limit_has_no_bounds(tmp_path: Path) -> None:
    text = "DEFINE { query_name 'seen'; } SELECT time AS t, srcPort FROM UDP LIMIT 2"
    program = compile_queries([QueryText(text, "q")], CompileContext(("a",))).program
    ((query, _),) = program.results
    (stream,) = program.lftas[0].streams
    found: list[tuple[str, int]] = []
    log = Log()
    answers = Delivery(program, tmp_path, log, on_bound=lambda *each: found.append(each))
    rows = [table("seen", [1]), table("seen", [7, 8])]
    for number, each in enumerate(rows):
        position = StreamPosition(number, number, 5 + number)
        answers.on_rows([(query, [each])], {stream: position}, lambda _: None)
    assert log.rows["seen"] == [1, 7]
    assert found == [(query, 5)]


def test_a_bound_that_a_float_does_not_state_is_unknown() -> None:
    assert [whole_bound(each) for each in (7, -7, 6.5, 2.0**52)] == [7, -7, 7, 2**52]
    assert whole_bound(1 << 62) == 1 << 62
    assert [whole_bound(each) for each in (math.inf, -math.inf, 2.0**60)] == [None] * 3
