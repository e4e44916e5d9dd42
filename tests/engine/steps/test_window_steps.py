"""Windows over any interleaving of batches and heartbeats, with restarts, on a plain data plane.

The data plane keeps times in lists. Each window's answer must be the times that it holds, found in
all times by a plain loop.
"""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from unittest import mock

from hypothesis import given
from hypothesis import strategies as st
from tests.engine.operators.windowed import windowed

from gscope.engine.operators import window as window_operator
from gscope.engine.steps.needed_bounds import needed_promises
from gscope.engine.steps.steps import Carry, Evaluation, Step, Steps
from gscope.engine.storage.parquet_files import State
from gscope.engine.watermarks import release_size
from gscope.queries.plan.window_node import WindowNode
from gscope.queries.plan.windows.columns import SLICE
from gscope.queries.plan.windows.window import RepeatedSlices, SlidingWindow
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from gscope.engine.operators.base import Work
    from gscope.queries.plan.program import Program
    from gscope.queries.plan.windows.window import Window

MOST_DEMANDS = 500
"""More than there are windows."""

Answers = dict[str, dict[int, list[int]]]


@dataclass
class ListPlane:
    """Evaluates windows over lists of times.

    Attributes:
        files: the times of each segment, carry and state, by path.
        answers: for each query the times that each of its windows holds, in order.
    """

    files: dict[str, list[int]]
    answers: Answers = field(default_factory=lambda: defaultdict(dict))

    def run(self, steps: Steps, step: Step) -> None:
        fresh: dict[str, list[int]] = {}
        carries, states = [], []
        for work in step.works:
            node = work.node
            assert isinstance(node, WindowNode)
            assert work.high in (float("-inf"), float("inf")) or is_end(node, work.high)
            if work.reads_rows:
                times = self._read(work, fresh)
                if node.slices is not None:
                    times += self.files[work.state.path] if work.state is not None else []
                    states.append((node.query, self._state(step, work, times)))
                fresh[node.query] = self._answer(work, times)
            (taken,) = work.inputs
            for upstream in taken.carries:
                least = work.high + taken.epoch_range.first
                kept = [time for time in fresh[upstream] if number(node, time) >= least]
                if kept:
                    path = f"carry-{step.number}"
                    self.files[path] = kept
                    extents = (
                        Extent("window_start", min(kept) - 99, max(kept)),
                        Extent("window_end", min(kept), max(kept)),
                    )
                    batch = Batch(upstream, step.number, path, len(kept), 0, extents)
                    carries.append(Carry(node.query, 0, batch))
        steps.on_evaluated(Evaluation(carries=tuple(carries), states=tuple(states)))

    def _read(self, work: Work, fresh: dict[str, list[int]]) -> list[int]:
        node, (taken,) = work.node, work.inputs
        assert isinstance(node, WindowNode)
        stored = [time for _, batch in taken.batches for time in self.files[batch.path]]
        first = work.low + taken.epoch_range.first
        inside = [time for time in stored if first <= number(node, time) < work.high]
        assert taken.straddles or inside == stored
        new = [time for name in taken.upstream for time in fresh[name]]
        assert all(number(node, time) >= work.low for time in new)
        return inside + [time for time in new if number(node, time) < work.high]

    def _answer(self, work: Work, times: Iterable[int]) -> list[int]:
        node = work.node
        assert isinstance(node, WindowNode)
        windows = node.windows
        held: dict[int, list[int]] = defaultdict(list)
        for time in times:
            window = node.window.first_ending_after(time)
            while node.window.start(window) <= time:
                if work.low < windows.end_slice(window) <= work.high:
                    held[window].append(time)
                window += 1
        known = self.answers[node.query]
        for window in sorted(held):
            assert not known or window > max(known)
            known[window] = sorted(held[window])
            for extent in work.extents:
                edge = node.window.end if extent.column == "window_end" else node.window.start
                assert extent.least <= edge(window) <= extent.greatest
        if held:
            assert {extent.column for extent in work.extents} == {"window_start", "window_end"}
        return [node.window.end(window) for window in sorted(held)]

    def _state(self, step: Step, work: Work, times: Iterable[int]) -> State | None:
        node = work.node
        assert isinstance(node, WindowNode)
        if work.high == float("inf"):
            return None
        first = node.windows.last_complete(int(work.high)) + 1
        open_times = [time for time in times if time >= node.window.start(first)]
        if not open_times:
            return None
        path = f"state-{step.number}"
        self.files[path] = open_times
        numbers = [number(node, time) for time in open_times]
        extents = (Extent(SLICE, min(numbers), max(numbers)),)
        return State(node.query, step.number, path, len(open_times), 0, extents)


def is_end(node: WindowNode, number: float) -> bool:
    windows = node.windows
    return windows.end_slice(windows.last_complete(int(number))) == number


def number(node: WindowNode, time: int) -> int:
    return node.windows.slicing.number(time)


def expected(program: Program, times: Iterable[int]) -> Answers:
    answers: Answers = {}
    rows = list(times)
    for node in program.nodes:
        assert isinstance(node, WindowNode)
        window, found = node.window, {}
        for at in range(-200, 400):
            held = sorted(time for time in rows if window.start(at) <= time < window.end(at))
            if held:
                found[at] = held
        answers[node.query] = found
        rows = [window.end(at) for at in found]
    return answers


sliding = st.builds(SlidingWindow, st.integers(1, 25), st.integers(1, 12))
slices = st.builds(RepeatedSlices, st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple))
windows = st.one_of(sliding, slices)


@st.composite
def scripts(draw: st.DrawFn, window: Window) -> tuple[list[Message], dict[str, list[int]]]:
    """Draw interleaved messages of two streams of slices, and the times in their segments."""
    program = windowed(window)
    (node,) = program.nodes
    assert isinstance(node, WindowNode)
    segments: dict[str, list[int]] = {}
    logs: list[list[Message]] = []
    for name in ("low@a", "low@b"):
        log: list[Message] = []
        now = draw(st.integers(-20, 20))
        for _ in range(draw(st.integers(0, 6))):
            sequence = len(log)
            if draw(st.booleans()):
                times = draw(st.lists(st.integers(now, now + 20), min_size=1, max_size=5))
                path = f"{name}-{sequence}"
                segments[path] = times
                spans = [number(node, time) for time in times]
                extents = (Extent(SLICE, min(spans), max(spans)),)
                log.append(Batch(name, sequence, path, len(times), 0, extents))
            else:
                now += draw(st.integers(0, 12))
                promise = (Punctuation(SLICE, number(node, now)),)
                log.append(Heartbeat(name, sequence, 0, 0, promise))
        log.append(EndOfStream(name, len(log)))
        logs.append(log)
    messages: list[Message] = []
    while any(logs):
        messages.append(draw(st.sampled_from([log for log in logs if log])).pop(0))
    return messages, segments


def restarted(steps: Steps, sent: Sequence[Message]) -> Steps:
    """Return the steps of a job that continues after the last commit."""
    after = Steps(steps.program)
    needed = steps.needed()
    after.restore(steps.number, json.loads(json.dumps(steps.snapshot())))
    after.on_messages(m for m in sent if m.sequence >= needed[m.stream])
    return after


@given(st.data())
def test_any_interleaving_answers_every_window_once_and_in_order(data: st.DataObject) -> None:
    first = data.draw(windows)
    program = windowed(first, *data.draw(st.lists(windows, max_size=1)))
    messages, segments = data.draw(scripts(first))
    most = data.draw(st.sampled_from([1, 10, 1_000_000]))
    rows = data.draw(st.sampled_from([3, 500_000]))
    steps, plane = Steps(program), ListPlane(dict(segments))
    with (
        mock.patch.object(window_operator, "MAX_STEP_ANSWERS", most),
        mock.patch.object(release_size, "MAX_STEP_ROWS", rows),
    ):
        for place, message in enumerate(messages, 1):
            steps.on_messages([message])
            while (step := steps.next()) is not None:
                plane.run(steps, step)
                if data.draw(st.integers(0, 9)) == 0:
                    steps = restarted(steps, messages[:place])
    assert steps.is_finished
    assert dict(plane.answers) == {
        query: found
        for query, found in expected(program, [t for s in segments.values() for t in s]).items()
        if query in plane.answers or found
    }
    assert steps.carried() == set()


@given(st.data())
def test_demands_alone_release_all_windows(data: st.DataObject) -> None:
    """Without the end of the streams, heartbeats come only where they are demanded."""
    first = data.draw(windows)
    program = windowed(first, *data.draw(st.lists(windows, max_size=1)))
    messages, segments = data.draw(scripts(first))
    steps, plane = Steps(program), ListPlane(dict(segments))
    sent = dict.fromkeys(steps.streams, 0)
    for message in messages:
        if not isinstance(message, EndOfStream):
            steps.on_messages([message])
            sent[message.stream] += 1
    for _ in range(MOST_DEMANDS):
        while (step := steps.next()) is not None:
            plane.run(steps, step)
        demands = needed_promises(steps.operators)
        if not demands:
            break
        for stream, bounds in demands.items():
            promises = tuple(Punctuation(*each) for each in bounds.items())
            steps.on_messages([Heartbeat(stream, sent[stream], 0, 0, promises)])
            sent[stream] += 1
    assert demands == {}
    times = [time for path in segments for time in segments[path]]
    assert {query: found for query, found in plane.answers.items() if found} == {
        query: found for query, found in expected(program, times).items() if found
    }
