"""What a merge releases, and when.

Rows in the order of their time, each once, simultaneous ones at once.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.steps.steps import Steps
from gscope.engine.watermarks import release_size
from gscope.engine.watermarks.bounds import NOTHING
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.messages import Batch, EndOfStream, Extent, Heartbeat, Punctuation

if TYPE_CHECKING:
    from gscope.engine.operators.base import Work
    from gscope.queries.plan.program import Program
    from gscope.queries.streams.messages import Message

UNION = "MERGE R.time : S.time FROM a.TCP R, b.TCP S"


def program(text: str = UNION) -> Program:
    return compile_queries([QueryText(text, "union.gsql")], CompileContext(("a", "b"))).program


@dataclass
class RowPlane:
    """Evaluates merges on the times of rows alone."""

    segments: dict[str, list[int]]
    answers: list[int] = field(default_factory=list)

    def run(self, steps: Steps) -> None:
        while (step := steps.next()) is not None:
            for work in step.works:
                rows = sorted(row for side in range(2) for row in self._read(work, side))
                assert not rows or not self.answers or rows[0] >= self.answers[-1]
                self.answers += rows

    def _read(self, work: Work, side: int) -> list[int]:
        taken = work.inputs[side]
        rows: list[int] = []
        for place in taken.batches:
            low = work.read_below if place in taken.partially_read else NOTHING
            if taken.late and place not in taken.partially_read:
                low = work.low
            rows += [row for row in self.segments[place[1].path] if low <= row < work.high]
        return rows


def batch(stream: str, sequence: int, *rows: int) -> Batch:
    path = f"{stream}-{sequence}"
    return Batch(stream, sequence, path, len(rows), 0, (Extent("time", min(rows), max(rows)),))


def beat(stream: str, sequence: int, bound: int) -> Heartbeat:
    return Heartbeat(stream, sequence, 0, 0, (Punctuation("time", bound),))


def test_simultaneous_tuples_do_not_wait() -> None:
    steps = Steps(program())
    one, other = steps.streams
    plane = RowPlane({f"{one}-1": [7, 7], f"{one}-2": [7], f"{other}-1": [7]})
    steps.on_messages([beat(one, 0, 7), beat(other, 0, 7), batch(one, 1, 7, 7)])
    plane.run(steps)
    assert plane.answers == [7, 7]
    steps.on_messages([batch(one, 2, 7), batch(other, 1, 7)])
    plane.run(steps)
    assert plane.answers == [7, 7, 7, 7]
    assert steps.needed() == {one: 3, other: 2}


def test_rows_above_the_watermark_wait_and_are_not_read_twice() -> None:
    steps = Steps(program())
    one, other = steps.streams
    plane = RowPlane({f"{one}-1": [7, 8, 9]})
    steps.on_messages([beat(one, 0, 7), beat(other, 0, 7), batch(one, 1, 7, 8, 9)])
    plane.run(steps)
    assert plane.answers == [7]
    steps.on_messages([beat(one, 2, 9), beat(other, 1, 8)])
    plane.run(steps)
    assert plane.answers == [7, 8]
    steps.on_messages([EndOfStream(other, 2)])
    plane.run(steps)
    assert plane.answers == [7, 8, 9]


def test_slack_keeps_rows_back_by_as_much() -> None:
    steps = Steps(program("MERGE R.time : S.time SLACK 3 FROM a.TCP R, b.TCP S"))
    one, other = steps.streams
    plane = RowPlane({f"{one}-1": [7]})
    steps.on_messages([batch(one, 0, 7), beat(one, 1, 9), beat(other, 0, 9)])
    plane.segments[f"{one}-0"] = [7]
    plane.run(steps)
    assert plane.answers == []
    steps.on_messages([beat(one, 2, 10), beat(other, 1, 10)])
    plane.run(steps)
    assert plane.answers == [7]


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Message], dict[str, list[int]]]:
    """Messages of two streams in some interleaving, and the rows of the segments that they name."""
    segments: dict[str, list[int]] = {}
    logs: list[list[Message]] = []
    for stream in Steps(program()).streams:
        log: list[Message] = []
        bound = draw(st.integers(0, 3))
        for _ in range(draw(st.integers(0, 7))):
            if draw(st.booleans()):
                rows = draw(st.lists(st.integers(bound, bound + 4), min_size=1, max_size=4))
                log.append(batch(stream, len(log), *rows))
                segments[f"{stream}-{len(log) - 1}"] = rows
            else:
                bound += draw(st.integers(0, 3))
                log.append(beat(stream, len(log), bound))
        log.append(EndOfStream(stream, len(log)))
        logs.append(log)
    messages: list[Message] = []
    while any(logs):
        messages.append(draw(st.sampled_from([log for log in logs if log])).pop(0))
    return messages, segments


@given(scripts(), st.data(), st.integers(1, 6))
def test_every_row_comes_once_and_in_order_also_after_a_restart(
    script: tuple[list[Message], dict[str, list[int]]], data: st.DataObject, rows: int
) -> None:
    messages, segments = script
    crash = data.draw(st.integers(0, len(messages) - 1), label="crash after message")
    steps = Steps(program())
    plane = RowPlane(segments)
    with mock.patch.object(release_size, "MAX_STEP_ROWS", rows):
        for position, message in enumerate(messages):
            steps.on_messages([message])
            plane.run(steps)
            if position == crash:
                needed = steps.needed()
                state = json.loads(json.dumps(steps.snapshot()))
                number, steps = steps.number, Steps(program())
                steps.restore(number, state)
                plane.run(steps)
                for again in messages[: position + 1]:
                    if again.sequence >= needed[again.stream]:
                        steps.on_messages([again])
                        plane.run(steps)
    assert plane.answers == sorted(row for inside in segments.values() for row in inside)
    assert steps.is_finished
    assert all(operator.watermark == math.inf for operator in steps.operators.values())
