"""Running aggregations in steps: one answer for all batchings of rows and all crashes."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.running.fold_reference import Tuple, epoch_rows, value_of

from gscope.engine.operators import running
from gscope.engine.running.fold import Epochs, fold
from gscope.engine.running.vectors import from_arrow
from gscope.engine.steps.steps import Carry, Evaluation, Step, Steps
from gscope.engine.storage.parquet_files import State
from gscope.engine.watermarks import release_size
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.plan.program import Program, RunningNode
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    import pyarrow as pa

    from gscope.engine.operators.base import Work
    from gscope.queries.plan.program import HftaNode

# A text key makes the LFTA send plain rows.
QUERIES = """
DEFINE { query_name 'hosts'; visibility 'external'; }
SELECT tb, host, count(*) as n, running_count(*) as total FROM TCP
GROUP BY time/10 as tb, str_truncate(TCP_data, 1) as host CLOSING_WHEN running_count(*) > 3 and count(*) = 0;
DEFINE { query_name 'pairs'; }
SELECT pair, sum(n) as n, running_sum(total) as totals FROM hosts GROUP BY tb/2 as pair CLOSING_WHEN FALSE;
"""  # noqa: E501


CLOSES_WHEN_EMPTY = """
DEFINE { query_name 'hosts'; }
SELECT tb, host, count(*) as n, running_count(*) as total FROM TCP
GROUP BY time/10 as tb, str_truncate(TCP_data, 1) as host CLOSING_WHEN count(*) = 0
"""


def program(text: str = QUERIES) -> Program:
    return compile_queries([QueryText(text, "q.gsql")], CompileContext(("a", "b"))).program


@dataclass
class FoldPlane:
    """Evaluates steps with the fold, on rows kept in memory."""

    segments: dict[str, list[Tuple]]
    states: dict[str, pa.Table] = field(default_factory=dict)
    answers: dict[str, list[tuple[Any, ...]]] = field(default_factory=dict)

    def run(self, steps: Steps, step: Step) -> None:
        fresh: dict[str, list[Tuple]] = {}
        states = [
            (work.node.query, self._fold(step, work, fresh))
            for work in step.works
            if work.reads_rows
        ]
        carries = tuple(
            carry
            for work in step.works
            for upstream in work.inputs[0].carries
            if (carry := self._carry(step, work, fresh[upstream])) is not None
        )
        steps.on_evaluated(Evaluation(carries=carries, states=tuple(states)))

    def _fold(self, step: Step, work: Work, fresh: dict[str, list[Tuple]]) -> State | None:
        node, (taken,) = work.node, work.inputs
        assert isinstance(node, RunningNode)
        assert taken.epoch is not None
        rows = [row for _, batch in taken.batches for row in self.segments[batch.path]]
        rows += [row for upstream in taken.upstream for row in fresh[upstream]]
        inside = [row for row in rows if work.low <= epoch_of(work, row) < work.high]
        tables: list[pa.Table] = []
        before = None if work.state is None else self.states[work.state.path]
        after, _ = fold(
            node,
            epoch_rows(node, inside),
            before,
            Epochs(work.low, work.high, work.last),
            tables.append,
        )
        made = [
            dict(zip(node.schema.names, row, strict=True)) for t in tables for row in _rows(node, t)
        ]
        first = node.schema.columns[0].name
        for row in made:
            (extent,) = work.extents
            assert extent.column == first
            assert extent.least <= row[first] <= extent.greatest
        self.answers.setdefault(node.query, []).extend(tuple(row.values()) for row in made)
        fresh[node.query] = made
        if not after.num_rows:
            return None
        path = f"{step.number}-{node.query}"
        self.states[path] = after
        return State(node.query, step.number, path, after.num_rows, 0, ())

    def _carry(self, step: Step, work: Work, rows: list[Tuple]) -> Carry | None:
        rest = [row for row in rows if epoch_of(work, row) >= work.high]
        if not rest:
            return None
        path = f"carry-{step.number}"
        self.segments[path] = rest
        epochs = [row["tb"] for row in rest]
        extents = (Extent("tb", min(epochs), max(epochs)),)
        return Carry(work.node.query, 0, Batch("hosts", step.number, path, len(rest), 0, extents))


def epoch_of(work: Work, row: Tuple) -> float:
    epoch = work.inputs[0].epoch
    assert epoch is not None
    value = value_of(epoch, row)
    assert isinstance(value, int)
    return value


def _rows(node: RunningNode, table: pa.Table) -> list[tuple[Any, ...]]:
    columns = [from_arrow(table[c.name], c.type).to_list() for c in node.schema.columns]
    return list(zip(*columns, strict=True))


@st.composite
def streams(draw: st.DrawFn, interface: str) -> tuple[list[Message], dict[str, list[Tuple]]]:
    """Draw messages of an interface: rows not below the bound, and rising bounds."""
    name = f"hosts@{interface}"
    messages: list[Message] = []
    segments: dict[str, list[Tuple]] = {}
    bound, greatest = 0, 0
    for _ in range(draw(st.integers(0, 6))):
        if draw(st.booleans()):
            epochs = draw(st.lists(st.integers(bound, bound + 4), min_size=1, max_size=3))
            greatest = max(greatest, *epochs)
            path = f"{interface}{len(messages)}"
            hosts = st.sampled_from([b"x", b"y", None])
            segments[path] = [{"tb": e, "host": draw(hosts)} for e in epochs]
            extents = (Extent("tb", min(epochs), max(epochs)),)
            messages.append(Batch(name, len(messages), path, len(epochs), 0, extents))
        else:
            bound += draw(st.integers(0, 5))
            messages.append(_beat(name, len(messages), bound))
    if draw(st.booleans()):
        messages.append(_beat(name, len(messages), max(bound, greatest)))
    messages.append(EndOfStream(name, len(messages)))
    return messages, segments


def _beat(stream: str, sequence: int, bound: int) -> Heartbeat:
    return Heartbeat(stream, sequence, 1, 0, (Punctuation("tb", bound),))


def wanted(messages: list[Message], segments: dict[str, list[Tuple]]) -> dict[str, list[Any]]:
    """Return the answers of both queries, computed at once."""
    bounds = [p.bound for m in messages if isinstance(m, Heartbeat) for p in m.punctuations]
    last = max(bounds, default=-math.inf)
    rows = [row for segment in segments.values() for row in segment]
    hosts, pairs = program().nodes
    answers = _at_once(hosts, rows, last)
    upper = [dict(zip(hosts.schema.names, row, strict=True)) for row in answers]
    return {"hosts": answers, "pairs": _at_once(pairs, upper, last // 2)}


def _at_once(node: HftaNode, rows: list[Tuple], last: float) -> list[tuple[Any, ...]]:
    assert isinstance(node, RunningNode)
    tables: list[pa.Table] = []
    fold(node, epoch_rows(node, rows), None, Epochs(-math.inf, math.inf, last), tables.append)
    return [row for table in tables for row in _rows(node, table)]


@given(streams("a"), streams("b"), st.data())
def test_steps_and_crashes_do_not_show(
    one: tuple[list[Message], dict[str, list[Tuple]]],
    other: tuple[list[Message], dict[str, list[Tuple]]],
    data: st.DataObject,
) -> None:
    queues = [list(one[0]), list(other[0])]
    segments = one[1] | other[1]
    want = wanted(one[0] + other[0], segments)
    plane, steps = FoldPlane(dict(segments)), Steps(program())
    crashes = data.draw(st.sets(st.integers(1, 8), max_size=2), label="crash after step")
    seen: list[Message] = []
    with (
        mock.patch.object(release_size, "MAX_STEP_ROWS", data.draw(st.integers(1, 6))),
        mock.patch.object(running, "MAX_STEP_EPOCHS", data.draw(st.integers(1, 4))),
    ):
        while not steps.is_finished:
            step = steps.next()
            if step is None:
                queue = data.draw(st.sampled_from([q for q in queues if q]), label="next")
                seen.append(queue.pop(0))
                steps.on_messages(seen[-1:])
                continue
            plane.run(steps, step)
            if step.number in crashes:
                crashes.discard(step.number)
                state = json.loads(json.dumps(steps.snapshot()))
                needed = steps.needed()
                steps = Steps(program())
                steps.restore(step.number, state)
                steps.on_messages([m for m in seen if m.sequence >= needed[m.stream]])
    for query, rows in want.items():
        assert sorted(plane.answers.get(query, []), key=repr) == sorted(rows, key=repr), query


def test_a_silent_link_gives_rows_for_groups_that_live() -> None:
    rows = [{"tb": 1, "host": b"x"}]
    plane, steps = FoldPlane({"s": rows}), Steps(program())
    beat = Punctuation("tb", 1)
    steps.on_messages(
        [
            Batch("hosts@a", 0, "s", 1, 0, (Extent("tb", 1, 1),)),
            Heartbeat("hosts@a", 1, 1, 0, (beat,)),
            Heartbeat("hosts@b", 0, 1, 0, (beat,)),
        ]
    )
    for bound in (4, 5):
        steps.on_messages([_beat("hosts@a", bound, bound), _beat("hosts@b", bound, bound)])
        while (step := steps.next()) is not None:
            plane.run(steps, step)
    assert [row[0] for row in plane.answers["hosts"]] == [1, 2, 3, 4]
    states = [operator.state for operator in steps.operators.values()]
    assert steps.carried() >= {state.path for state in states if state is not None}
    assert states[0] is not None


def test_time_without_groups_is_one_step_and_time_with_them_is_cut() -> None:
    far = 1 << 60
    steps = Steps(program())
    messages: list[Message] = [
        _beat("hosts@a", 0, 3),
        _beat("hosts@b", 0, far),
        Batch("hosts@a", 1, "t", 1, 0, (Extent("tb", far, far),)),
        _beat("hosts@a", 2, far),
    ]
    steps.on_messages(messages)
    first = steps.next()
    assert first is not None
    assert first.works[0].high == far
    plane = FoldPlane({"s": [{"tb": 5, "host": b"x"}]})
    steps = Steps(program())
    steps.on_messages(
        [
            Batch("hosts@a", 0, "s", 1, 0, (Extent("tb", 5, 5),)),
            _beat("hosts@a", 1, far),
            _beat("hosts@b", 0, far),
        ]
    )
    for _ in range(2):
        step = steps.next()
        assert step is not None
        plane.run(steps, step)
    assert len(plane.answers["hosts"]) == 2 * running.MAX_STEP_EPOCHS


def test_a_gap_of_years_in_the_middle_of_a_batch_takes_few_steps() -> None:
    """The first query closes a group after an empty epoch; a batch is read in part."""
    far = 40_000_000
    rows = [{"tb": 5, "host": b"x"}, {"tb": far, "host": b"x"}]
    plane, steps = FoldPlane({"s": rows}), Steps(program(CLOSES_WHEN_EMPTY))
    steps.on_messages(
        [
            Batch("hosts@a", 0, "s", 2, 0, (Extent("tb", 5, far),)),
            EndOfStream("hosts@a", 1),
            EndOfStream("hosts@b", 0),
        ]
    )
    while (step := steps.next()) is not None:
        plane.run(steps, step)
    assert [row[0] for row in plane.answers["hosts"]] == [5, 6, far]
    assert steps.number < 40


def test_an_end_of_the_input_that_is_answered_in_pieces_adds_no_epoch() -> None:
    """The first query promises epoch 4 before it ends; the clock of both stands in epoch 3."""
    rows = [{"tb": 3, "host": b"x"}, {"tb": 3, "host": b"y"}]
    plane, steps = FoldPlane({"s": rows, "t": rows}), Steps(program())
    extents = (Extent("tb", 3, 3),)
    steps.on_messages(
        [
            Batch("hosts@a", 0, "s", 2, 0, extents),
            Batch("hosts@a", 1, "t", 2, 0, extents),
            _beat("hosts@a", 2, 3),
            EndOfStream("hosts@a", 3),
            EndOfStream("hosts@b", 0),
        ]
    )
    with mock.patch.object(release_size, "MAX_STEP_ROWS", 2):
        while (step := steps.next()) is not None:
            plane.run(steps, step)
    assert steps.number > 1
    assert [row[0] for row in plane.answers["hosts"]] == [3, 3]
    assert [row[0] for row in plane.answers["pairs"]] == [1]
