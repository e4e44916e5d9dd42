"""Rows that an operator keeps of the step in which they arrive hold back what it promises."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.steps.steps import Carry, Evaluation, Step, Steps
from gscope.engine.watermarks.bounds import NOTHING
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program, TopNode
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from gscope.engine.operators.base import Work
    from gscope.engine.watermarks.release import ReleasedInput

UNITED = """
DEFINE { query_name 'united'; visibility 'external'; }
MERGE R.time : S.time FROM a.TCP R, b.TCP S;
"""
FIRST = """
DEFINE { query_name 'first'; }
SELECT time, len FROM united ORDER BY len LIMIT 100;
"""
BOTH = """
DEFINE { query_name 'rest'; visibility 'external'; }
SELECT time, len FROM united;
DEFINE { query_name 'both'; }
MERGE F.time : S.time SLACK 3 FROM first F, rest S;
"""
TWO_KEYS = """
DEFINE { query_name 'counts'; }
SELECT tens, sevens, count(*) AS cnt FROM united GROUP BY time/10 AS tens, time/7 AS sevens;
"""


@cache
def program(text: str) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("a", "b"))).program


@dataclass
class TimePlane:
    """Evaluates steps on times alone; each operator passes on all rows that it releases.

    Attributes:
        segments: the rows of batches of the log and of carries, by path.
        answers: the rows of each query.
    """

    segments: dict[str, list[int]] = field(default_factory=dict)
    answers: dict[str, list[int]] = field(default_factory=dict)

    def run(self, steps: Steps) -> None:
        while (step := steps.next()) is not None:
            fresh: dict[str, list[int]] = {}
            for work in step.works:
                rows = [row for side in work.inputs for row in self._read(work, side, fresh)]
                fresh[work.node.query] = rows
                self.answers.setdefault(work.node.query, []).extend(rows)
            carries = [
                carry
                for work in step.works
                for side, taken in enumerate(work.inputs)
                for name in taken.carries
                if (carry := self._carry(step, work, side, name, fresh[name])) is not None
            ]
            steps.on_evaluated(Evaluation(carries=tuple(carries)))

    def _read(self, work: Work, taken: ReleasedInput, fresh: dict[str, list[int]]) -> list[int]:
        rows: list[int] = []
        for place in taken.batches:
            low = work.read_below if place in taken.partially_read else NOTHING
            inside = self.segments[place[1].path]
            rows += [time for time in inside if low <= epoch_of(work, time) < work.high]
        for name in taken.upstream:
            low = work.low if name in taken.overdue else NOTHING
            rows += [time for time in fresh[name] if low <= epoch_of(work, time) < work.high]
        return rows

    def _carry(self, step: Step, work: Work, side: int, name: str, rows: list[int]) -> Carry | None:
        rest = [time for time in rows if epoch_of(work, time) >= work.high]
        if not rest:
            return None
        path = f"{step.number}-{work.node.query}-{side}-{name}"
        self.segments[path] = rest
        extents = (Extent("time", min(rest), max(rest)),)
        return Carry(work.node.query, side, Batch(name, step.number, path, len(rest), 0, extents))


def epoch_of(work: Work, time: int) -> int:
    """Return the epoch of a row: a top of a whole input has one epoch."""
    return 0 if isinstance(work.node, TopNode) else time


def beat(stream: str, sequence: int, bound: int) -> Heartbeat:
    return Heartbeat(stream, sequence, 0, 0, (Punctuation("time", bound),))


def arrived(text: str, least: int, greatest: int, bound: int) -> Steps:
    """Return the steps after rows between two times and a heartbeat of all streams."""
    steps = Steps(program(text))
    one, other = steps.streams
    batch = Batch(one, 0, "0", 2, 0, (Extent("time", least, greatest),))
    steps.on_messages([batch, beat(one, 1, bound), beat(other, 0, bound)])
    step = steps.next()
    assert step is not None
    assert any(taken.carries for work in step.works for taken in work.inputs)
    return steps


def test_a_top_promises_no_more_than_the_rows_of_this_step_that_it_keeps() -> None:
    steps = arrived(UNITED + FIRST + BOTH, least=7, greatest=9, bound=20)
    assert steps.operators["first"].output_bounds() == {"time": 7}


def test_an_aggregation_promises_no_more_for_keys_besides_the_epoch() -> None:
    steps = arrived(UNITED + TWO_KEYS, least=28, greatest=29, bound=30)
    assert steps.operators["counts"].output_bounds() == {"tens": 2, "sevens": 4}


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Message], dict[str, list[int]]]:
    """Messages of two streams in some interleaving, and the rows of their segments."""
    segments: dict[str, list[int]] = {}
    logs: list[list[Message]] = []
    for stream in Steps(program(UNITED)).streams:
        log: list[Message] = []
        bound = 0
        for _ in range(draw(st.integers(0, 6))):
            if draw(st.booleans()):
                rows = draw(st.lists(st.integers(bound, bound + 9), min_size=1, max_size=4))
                path = f"{stream}-{len(log)}"
                extents = (Extent("time", min(rows), max(rows)),)
                log.append(Batch(stream, len(log), path, len(rows), 0, extents))
                segments[path] = rows
            else:
                bound += draw(st.integers(0, 9))
                log.append(beat(stream, len(log), bound))
        log.append(EndOfStream(stream, len(log)))
        logs.append(log)
    messages: list[Message] = []
    while any(logs):
        messages.append(draw(st.sampled_from([log for log in logs if log])).pop(0))
    return messages, segments


@given(scripts(), st.data())
def test_a_merge_loses_no_row_of_a_top_also_after_a_restart(
    script: tuple[list[Message], dict[str, list[int]]], data: st.DataObject
) -> None:
    messages, segments = script
    crash = data.draw(st.integers(0, len(messages) - 1), label="restart after message")
    compiled = program(UNITED + FIRST + BOTH)
    steps, plane = Steps(compiled), TimePlane(dict(segments))
    for position, message in enumerate(messages):
        steps.on_messages([message])
        plane.run(steps)
        if position == crash:
            needed, number = steps.needed(), steps.number
            state = json.loads(json.dumps(steps.snapshot()))
            steps = Steps(compiled)
            steps.restore(number, state)
            plane.run(steps)
            again = [m for m in messages[: position + 1] if m.sequence >= needed[m.stream]]
            steps.on_messages(again)
            plane.run(steps)
    assert steps.is_finished
    expected = sorted(row for rows in segments.values() for row in rows)
    assert sorted(plane.answers.get("first", [])) == expected
    assert sorted(plane.answers.get("both", [])) == sorted([*expected, *expected])
    assert all(operator.late_tuples == 0 for operator in steps.operators.values())
