"""Bookkeeping without Spark: a data plane of plain sets evaluates each step."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from gscope.engine.steps.node_counts import NodeRun
from gscope.engine.steps.steps import Carry, Evaluation, Step, Steps
from gscope.engine.storage.commits import batch_to_json
from gscope.engine.watermarks import release_size
from gscope.queries.catalog.evaluate import evaluate
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import JoinNode, Program
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
    from gscope.queries.expressions.expressions import Column, Expression, PacketField, Value

QUERIES = """
DEFINE { query_name 'tens'; visibility 'external'; }
SELECT tb, count(*) as cnt FROM IP GROUP BY time/10 as tb;
DEFINE { query_name 'minutes'; }
SELECT mb, sum(cnt) as total FROM tens GROUP BY tb/6 as mb;
DEFINE { query_name 'pairs'; }
SELECT S.tb, S.cnt, R.cnt OUTER_JOIN FROM tens S, tens R WHERE S.tb = R.tb + 1;
DEFINE { query_name 'scaled'; }
SELECT mb, total, cnt OUTER_JOIN FROM minutes M, tens T WHERE T.tb/3 = M.mb*2;
"""


def program(*interfaces: str) -> Program:
    return compile_queries([QueryText(QUERIES, "q.gsql")], CompileContext(interfaces)).program


@dataclass
class SetPlane:
    """Evaluates steps on the values of temporal columns alone; rows of a query are its epochs.

    Attributes:
        answers: of each query the rows it gave; of a join the rows it read, by side.
        read: how many rows each query read, all sides together.
    """

    segments: dict[str, list[int]]
    answers: dict[str, list[int]] = field(default_factory=dict)
    carried: dict[str, list[int]] = field(default_factory=dict)
    read: Counter[str] = field(default_factory=Counter)

    def run(self, steps: Steps, step: Step) -> None:
        fresh: dict[str, list[int]] = {}
        runs = []
        for work in step.works:
            if not work.reads_rows:
                continue
            query = work.node.query
            sides = [self._input(work, side, fresh) for side in range(len(work.inputs))]
            self.read[query] += sum(map(len, sides))
            epochs = sorted(
                {epoch_of(work, s, row) for s, rows in enumerate(sides) for row in rows}
            )
            if isinstance(work.node, JoinNode):
                runs.append(NodeRun(query, max(map(len, sides)), cpu_ns=7))
                for side, rows in enumerate(sides):
                    self._answer(f"{query}.{side}", rows)
            else:
                runs.append(NodeRun(query, len(epochs), cpu_ns=7))
                fresh[query] = epochs
                self._answer(query, epochs)
                for row in epochs:
                    (extent,) = work.extents
                    assert extent.least <= row <= extent.greatest
        carries = [
            carry
            for work in step.works
            for side, taken in enumerate(work.inputs)
            for upstream in taken.carries
            if (carry := self._carry(step, work, side, upstream, fresh[upstream])) is not None
        ]
        steps.on_evaluated(Evaluation(carries=tuple(carries), runs=tuple(runs)))

    def _answer(self, name: str, rows: list[int]) -> None:
        self.answers.setdefault(name, []).extend(sorted(rows))

    def _input(self, work: Work, side: int, fresh: dict[str, list[int]]) -> list[int]:
        rows: list[int] = []
        taken = work.inputs[side]
        for _, batch in taken.batches:
            inside = self.segments.get(batch.path) or self.carried[batch.path]
            chosen = [row for row in inside if work.low <= epoch_of(work, side, row) < work.high]
            assert taken.straddles or chosen == inside
            rows += chosen
        for upstream in taken.upstream:
            below = [row for row in fresh[upstream] if epoch_of(work, side, row) < work.high]
            assert all(epoch_of(work, side, row) >= work.low for row in below)
            assert upstream in taken.carries or below == fresh[upstream]
            rows += below
        return rows

    def _carry(
        self, step: Step, work: Work, side: int, upstream: str, rows: list[int]
    ) -> Carry | None:
        rest = [row for row in rows if epoch_of(work, side, row) >= work.high]
        if not rest:
            return None
        path = f"carry-{step.number}-{work.node.query}-{side}"
        self.carried[path] = rest
        column = "mb" if upstream == "minutes" else "tb"
        extents = (Extent(column, min(rest), max(rest)),)
        batch = Batch(upstream, step.number, path, len(rest), 0, extents)
        return Carry(work.node.query, side, batch)

    def check(self, segments: dict[str, list[int]]) -> None:
        """Every epoch is answered once and in order; joins read every row of each side once."""
        tens = sorted({row for rows in segments.values() for row in rows})
        minutes = sorted({row // 6 for row in tens})
        expected = {"tens": tens, "minutes": minutes, "pairs.0": tens, "pairs.1": tens}
        expected |= {"scaled.0": minutes, "scaled.1": tens}
        assert {name: rows for name, rows in self.answers.items() if rows} == {
            name: rows for name, rows in expected.items() if rows
        }

    def check_counts(self, steps: Steps, segments: dict[str, list[int]]) -> None:
        """What operators have read and given is what the plane has; nothing waits."""
        for query in steps.operators:
            counts = steps.counts.fields(query)
            assert counts["tuples_in_total"] == counts["tuples_read_total"] == self.read[query]
        logged, tens = sum(map(len, segments.values())), len(self.answers.get("tens", ()))
        assert steps.counts.tuples_in("tens") == logged
        assert steps.counts.tuples_out("tens") == tens
        assert steps.counts.tuples_in("minutes") == tens
        assert steps.counts.tuples_out("minutes") == len(self.answers.get("minutes", ()))


def epoch_of(work: Work, side: int, row: int) -> int:
    epoch = work.inputs[side].epoch
    assert epoch is not None
    return value(epoch, row)


def value(epoch: Expression, row: int) -> int:
    def leaf(_: Column | PacketField) -> Value:
        return row

    result = evaluate(epoch, leaf)
    assert isinstance(result, int)
    return result


@st.composite
def scripts(draw: st.DrawFn) -> tuple[list[Message], dict[str, list[int]], list[int]]:
    """Draw interleaved messages of two streams, the segments that they name, and chunk sizes."""
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
    plane.check(segments)
    plane.check_counts(steps, segments)
    assert steps.is_finished
    assert steps.carried() == set()


def drain(steps: Steps, plane: SetPlane) -> None:
    """Evaluate all that is released, as the job does before it reads further messages."""
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
    with mock.patch.object(release_size, "MAX_STEP_ROWS", rows):
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
    plane.check(segments)
    plane.check_counts(steps, segments)
    assert steps.is_finished


def test_a_silent_stream_that_only_beats_holds_nothing_up() -> None:
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


def test_heartbeats_alone_move_every_watermark_and_cost_no_evaluation() -> None:
    steps = Steps(program("a", "b"))
    for bound in range(1, 20):
        for stream in ("tens@a", "tens@b"):
            steps.on_messages([Heartbeat(stream, bound, bound, 0, (Punctuation("tb", bound),))])
        step = steps.next()
        assert step is None or not step.reads_rows
        assert steps.next() is None
    assert steps.watermarks() == {"tens": 19, "minutes": 3, "pairs": 19, "scaled": 6}


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


def test_rows_below_the_watermark_are_counted_once_also_after_a_restart() -> None:
    steps = Steps(program("a"))
    plane = SetPlane({"s": [3], "partly": [2, 3, 5], "wholly": [1, 2]})
    steps.on_messages(
        [
            Batch("tens@a", 0, "s", 1, 0, (Extent("tb", 3, 3),)),
            Heartbeat("tens@a", 1, 1, 0, (Punctuation("tb", 4),)),
        ]
    )
    drain(steps, plane)
    late = [
        Batch("tens@a", 2, "partly", 3, 0, (Extent("tb", 2, 5),)),
        Batch("tens@a", 3, "wholly", 2, 0, (Extent("tb", 1, 2),)),
    ]
    steps.on_messages(late)
    step = steps.next()
    assert step is not None
    (work,) = [work for work in step.works if work.node.query == "tens"]
    assert [batch.path for _, batch in work.inputs[0].late] == ["partly"]
    assert steps.operators["tens"].late_tuples == 2
    steps.on_evaluated(Evaluation(late=(("tens", 2),)))
    state = json.loads(json.dumps(steps.snapshot()))
    assert (state["tens"]["late_tuples"], state["tens"]["waiting_tuples"]) == (4, 3)
    again = Steps(program("a"))
    again.restore(steps.number, state)
    again.on_messages([message for message in late if message.sequence >= steps.needed()["tens@a"]])
    again.on_messages([EndOfStream("tens@a", 4)])
    drain(again, plane)
    assert again.operators["tens"].late_tuples == 4
    assert plane.answers["tens"] == [3, 5]


def test_a_carried_batch_keeps_its_extents_as_json() -> None:
    batch = Batch("q", 1, "p", 2, 3, (Extent("tb", 4, 5),))
    assert batch_to_json(batch)["extents"] == ({"column": "tb", "least": 4, "greatest": 5},)


NEAR = """
DEFINE { query_name 'x'; } SELECT t, count(*) AS n FROM one.IP GROUP BY time AS t;
DEFINE { query_name 'y'; } SELECT t, count(*) AS n FROM two.IP GROUP BY time AS t;
DEFINE { query_name 'near'; } SELECT x.t, y.n FROM x LEFT JOIN y ON y.t BETWEEN x.t AND x.t + 4;
"""


def test_rows_that_an_interval_join_keeps_are_not_late() -> None:
    """The second side's rows from 6 to 9 are read by the step up to 6 and by the next one."""
    near = compile_queries([QueryText(NEAR, "q.gsql")], CompileContext(("one", "two"))).program
    steps = Steps(near)
    streams = [lfta.streams[0] for lfta in near.lftas]
    extents = (Extent("t", 0, 9),)
    steps.on_messages(Batch(name, 0, name, 10, 0, extents) for name in streams)
    steps.on_messages(Heartbeat(name, 1, 1, 0, (Punctuation("t", 10),)) for name in streams)
    first = steps.next()
    assert first is not None
    assert steps.watermarks()["near"] == 6
    carries = [Batch(name, first.number, name, 4, 0, (Extent("t", 6, 9),)) for name in "xy"]
    steps.on_evaluated(
        Evaluation(carries=tuple(Carry("near", n, each) for n, each in enumerate(carries)))
    )
    steps.on_messages(Heartbeat(name, 2, 2, 0, (Punctuation("t", 20),)) for name in streams)
    second = steps.next()
    assert second is not None
    (work,) = (work for work in second.works if work.node.query == "near")
    assert [taken.batches for taken in work.inputs] == [(("x", carries[0]),), (("y", carries[1]),)]
    assert [(taken.late_below, taken.late) for taken in work.inputs] == [((), ()), ((), ())]
    assert steps.operators["near"].late_tuples == 0


def test_punctuation_reaches_the_readers_of_a_stream_and_theirs() -> None:
    steps = Steps(program("a", "b"))
    streams = {stream for stream in steps.streams if stream.endswith("a")}
    assert streams
    for name in streams:
        assert steps.reached(name) == {"tens", "minutes", "pairs", "scaled"}
    assert steps.reached("tens") == {"minutes", "pairs", "scaled"}
    assert steps.reached("minutes") == {"scaled"}
    assert steps.reached("scaled") == steps.reached("unknown") == frozenset()
