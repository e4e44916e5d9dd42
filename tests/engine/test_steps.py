"""Bookkeeping without Spark: a data plane of plain sets evaluates the works of each step."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine import release
from gscope.engine.commits import batch_to_json
from gscope.engine.steps import Carry, Evaluation, Step, Steps
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.plan.compile import QueryText, Surroundings, compile_queries
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
    from gscope.engine.release import Taken
    from gscope.queries.plan.expressions import Column, Expression, PacketField, Value
    from gscope.queries.plan.program import Program

QUERIES = """
DEFINE { query_name 'tens'; visibility 'external'; }
SELECT tb, count(*) as cnt FROM IP GROUP BY time/10 as tb;
DEFINE { query_name 'minutes'; }
SELECT mb, sum(cnt) as total FROM tens GROUP BY tb/6 as mb;
"""


def program(*interfaces: str) -> Program:
    return compile_queries([QueryText(QUERIES, "q.gsql")], Surroundings(interfaces)).program


@dataclass
class SetPlane:
    """Evaluates steps on the values of ``tb`` alone; rows of a query are its epochs."""

    segments: dict[str, list[int]]
    answers: dict[str, list[int]] = field(default_factory=lambda: {"tens": [], "minutes": []})
    carried: dict[str, list[int]] = field(default_factory=dict)

    def run(self, steps: Steps, step: Step) -> None:
        fresh: dict[str, list[int]] = {}
        for work in step.works:
            if work.reads_rows:
                (taken,) = work.inputs
                assert taken.epoch is not None
                epochs = {value(taken.epoch, row) for row in self._input(work, taken, fresh)}
                query = work.node.query
                fresh[query] = sorted(epochs)
                self.answers[query] += fresh[query]
                for row in fresh[query]:
                    extent = next(e for e in work.extents)
                    assert extent.least <= row <= extent.greatest
        carries = [
            carry
            for work in step.works
            for upstream in work.inputs[0].carries
            if (carry := self._carry(step, work, fresh[upstream])) is not None
        ]
        steps.on_evaluated(Evaluation(carries=tuple(carries)))

    def _input(self, work: Work, taken: Taken, fresh: dict[str, list[int]]) -> list[int]:
        rows: list[int] = []
        for _, batch in taken.batches:
            inside = self.segments.get(batch.path) or self.carried[batch.path]
            chosen = [row for row in inside if within(work, row)]
            assert taken.straddles or chosen == inside
            rows += chosen
        for upstream in taken.upstream:
            rows += [row for row in fresh[upstream] if within(work, row)]
        return rows

    def _carry(self, step: Step, work: Work, rows: list[int]) -> Carry | None:
        epoch = work.inputs[0].epoch
        assert epoch is not None
        rest = [row for row in rows if value(epoch, row) >= work.high]
        if not rest:
            return None
        path = f"carry-{step.number}"
        self.carried[path] = rest
        extents = (Extent("tb", min(rest), max(rest)),)
        batch = Batch("tens", step.number, path, len(rest), 0, extents)
        return Carry(work.node.query, 0, batch)


def value(epoch: Expression, row: int) -> int:
    def leaf(_: Column | PacketField) -> Value:
        return row

    result = evaluate(epoch, leaf)
    assert isinstance(result, int)
    return result


def within(work: Work, row: int) -> bool:
    epoch = work.inputs[0].epoch
    assert epoch is not None
    return work.low <= value(epoch, row) < work.high


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Message], dict[str, list[int]], list[int]]:
    """Messages of two streams in some interleaving, the segments they name, chunk sizes."""
    segments: dict[str, list[int]] = {}
    logs: list[list[Message]] = []
    for name in ("tens@a", "tens@b"):
        log: list[Message] = []
        bound = draw(st.integers(0, 5))
        for _ in range(draw(st.integers(0, 6))):
            sequence = len(log)
            if draw(st.booleans()):
                rows = draw(st.lists(st.integers(bound, bound + 9), min_size=1, max_size=5))
                path = f"{name}-{sequence}"
                segments[path] = rows
                extents = (Extent("tb", min(rows), max(rows)),)
                log.append(Batch(name, sequence, path, len(rows), 0, extents))
            else:
                bound += draw(st.integers(0, 8))
                log.append(Heartbeat(name, sequence, 0, 0, (Punctuation("tb", bound),)))
        log.append(EndOfStream(name, len(log)))
        logs.append(log)
    messages: list[Message] = []
    while any(logs):
        source = draw(st.sampled_from([log for log in logs if log]))
        messages.append(source.pop(0))
    chunks = draw(st.lists(st.integers(1, 5), min_size=len(messages), max_size=len(messages)))
    return messages, segments, chunks


@given(scripts())
def test_any_interleaving_answers_every_epoch_once_and_in_order(
    script: tuple[list[Message], dict[str, list[int]], list[int]],
) -> None:
    messages, segments, chunks = script
    steps = Steps(program("a", "b"))
    plane = SetPlane(segments)
    before = steps.watermarks()
    rest = list(messages)
    while rest:
        taken, rest = rest[: chunks[0]], rest[chunks.pop(0) :]
        steps.on_messages(taken)
        step = steps.next()
        if step is not None:
            plane.run(steps, step)
        after = steps.watermarks()
        assert all(after[query] >= before[query] for query in after)
        before = after
    tens = sorted({row for rows in segments.values() for row in rows})
    assert plane.answers["tens"] == tens
    assert plane.answers["minutes"] == sorted({row // 6 for row in tens})
    assert steps.is_finished
    assert steps.carried() == set()


def drain(steps: Steps, plane: SetPlane) -> None:
    """Everything that is released, as the job does before it looks for more messages."""
    while (step := steps.next()) is not None:
        plane.run(steps, step)


@given(scripts(), st.data(), st.integers(1, 6))
def test_a_restart_from_any_commit_repeats_and_loses_nothing(
    script: tuple[list[Message], dict[str, list[int]], list[int]], data: st.DataObject, rows: int
) -> None:
    messages, segments, _ = script
    crash = data.draw(st.integers(0, len(messages) - 1), label="crash after message")
    plane = SetPlane(segments)
    steps = Steps(program("a", "b"))
    with mock.patch.object(release, "MAX_STEP_ROWS", rows):
        for position, message in enumerate(messages):
            steps.on_messages([message])
            step = steps.next()
            if step is not None:
                plane.run(steps, step)
            if position == crash:
                needed = steps.needed()
                state = json.loads(json.dumps(steps.snapshot()))
                number = steps.number
                steps = Steps(program("a", "b"))
                steps.restore(number, state)
                drain(steps, plane)
                again = [m for m in messages[: position + 1] if m.sequence >= needed[m.stream]]
                steps.on_messages(again)
            if position >= crash:
                drain(steps, plane)
        drain(steps, plane)
    tens = sorted({row for rows in segments.values() for row in rows})
    assert plane.answers["tens"] == tens
    assert plane.answers["minutes"] == sorted({row // 6 for row in tens})
    assert steps.is_finished


def test_a_silent_stream_that_only_beats_holds_nobody_up() -> None:
    steps = Steps(program("a", "b"))
    plane = SetPlane({"s": [3]})
    steps.on_messages(
        [
            Batch("tens@a", 0, "s", 1, 0, (Extent("tb", 3, 3),)),
            Heartbeat("tens@a", 1, 1, 0, (Punctuation("tb", 4),)),
        ]
    )
    assert steps.next() is None
    steps.on_messages([Heartbeat("tens@b", 0, 1, 0, (Punctuation("tb", 9),))])
    step = steps.next()
    assert step is not None
    plane.run(steps, step)
    assert plane.answers["tens"] == [3]
    assert steps.watermarks()["tens"] == 4


def test_what_is_not_released_is_still_needed() -> None:
    steps = Steps(program("a"))
    steps.on_messages(
        [
            Batch("tens@a", 0, "s", 1, 0, (Extent("tb", 3, 3),)),
            Batch("tens@a", 1, "t", 1, 0, (Extent("tb", 4, 4),)),
            Heartbeat("tens@a", 2, 1, 0, (Punctuation("tb", 4),)),
        ]
    )
    steps.next()
    assert steps.needed() == {"tens@a": 1}


def test_a_bound_beyond_all_numbers_survives_a_commit() -> None:
    steps = Steps(program("a"))
    steps.on_messages([EndOfStream("tens@a", 0)])
    steps.next()
    state = json.loads(json.dumps(steps.snapshot()))
    assert state["tens"]["watermark"] == math.inf


def test_a_carried_batch_keeps_its_extents_as_json() -> None:
    batch = Batch("q", 1, "p", 2, 3, (Extent("tb", 4, 5),))
    assert batch_to_json(batch)["extents"] == ({"column": "tb", "least": 4, "greatest": 5},)
