"""The path of heartbeats through the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.engine.steps.watched_steps import batch, heartbeat, steps

from gscope.engine.monitoring.trace_file import TraceBook, read_traces
from gscope.engine.monitoring.traces import IDLE_NS, Tracer
from gscope.engine.steps.steps import Evaluation, Steps
from gscope.engine.storage.commits import Output

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.queries.streams.messages import Message

MS = 1_000_000


class Clock:
    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class Traced:
    """Steps with a tracer and a clock; evaluating one only states the number of its rows."""

    def __init__(self, folder: Path, *interfaces: str) -> None:
        self.clock = Clock()
        self.folder = folder
        self.steps: Steps = steps(*interfaces)
        self.book = TraceBook(folder)
        self.tracer = Tracer(self.book, self.clock)

    def feed(self, *messages: Message, received_ns: int, taken_ns: int) -> None:
        self.clock.now_ns = taken_ns
        self.tracer.on_messages(messages, received_ns)
        self.steps.on_messages(messages)

    def evaluate(self, began_ns: int, ended_ns: int, committed_ns: int) -> None:
        self.tracer.advancing()
        step = self.steps.next()
        assert step is not None
        evaluation = Evaluation(outputs=(Output("tens", "tens/1", 3),))
        self.tracer.released(step, self.steps, evaluation, began_ns, ended_ns)
        self.clock.now_ns = committed_ns
        self.tracer.committed(ended_ns)

    @property
    def traces(self) -> list[dict[str, Any]]:
        self.book.close()
        return list(read_traces(self.folder))


def test_a_heartbeat_is_followed_to_the_commit(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    traced.feed(
        batch(traced.steps, "eth0", 0, 40),
        heartbeat(traced.steps, "eth0", 1, 41, 17, made_ns=0),
        received_ns=5 * MS,
        taken_ns=9 * MS,
    )
    traced.evaluate(began_ns=20 * MS, ended_ns=120 * MS, committed_ns=130 * MS)
    (trace,) = traced.traces
    assert (trace["id"], trace["step"], trace["rows"]) == (17, 1, 3)
    hops = {hop["kind"]: hop for hop in trace["hops"]}
    assert list(hops) == ["lfta", "log", "flight", "inbox", "operator", "step", "commit"]
    assert hops["lfta"]["tuples_in_total"] == 7
    assert hops["log"]["worked_ns"] == 2 * MS
    assert hops["flight"]["queued_ns"] == 2 * MS
    assert hops["inbox"]["queued_ns"] == 4 * MS
    assert hops["step"]["worked_ns"] == 100 * MS
    assert hops["commit"]["worked_ns"] == 10 * MS
    assert trace["ended_ns"] - trace["began_ns"] == 130 * MS


def test_every_operator_on_the_way_adds_its_name(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    traced.feed(
        batch(traced.steps, "eth0", 0, 40),
        heartbeat(traced.steps, "eth0", 1, 41, 1),
        received_ns=5 * MS,
        taken_ns=5 * MS,
    )
    traced.evaluate(5 * MS, 6 * MS, 7 * MS)
    operators = [hop for hop in traced.traces[0]["hops"] if hop["kind"] == "operator"]
    assert [hop["node"] for hop in operators] == ["tens", "minutes"]
    assert operators[0]["tuples_in"] == 5
    assert operators[0]["tuples_out"] == 3
    assert operators[0]["watermark"] == 41


def test_a_hop_begins_when_the_one_before_ended(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    traced.feed(
        batch(traced.steps, "eth0", 0, 40),
        heartbeat(traced.steps, "eth0", 1, 41, 1),
        received_ns=5 * MS,
        taken_ns=6 * MS,
    )
    traced.evaluate(7 * MS, 8 * MS, 9 * MS)
    hops = [hop for hop in traced.traces[0]["hops"] if hop["kind"] != "operator"]
    ends = [hop["arrived_ns"] + hop["queued_ns"] + hop["worked_ns"] for hop in hops]
    assert [hop["arrived_ns"] for hop in hops[1:4]] == ends[:3]


def test_heartbeats_that_release_nothing_are_counted_together(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    for number in range(1, 20):
        at_ns = number * 1000 * MS
        beat = heartbeat(traced.steps, "eth0", number, 40, number, made_ns=at_ns - 5 * MS)
        traced.feed(beat, received_ns=at_ns, taken_ns=at_ns + (number == 7) * MS)
    assert traced.traces == []
    traced.tracer.close()
    (idle,) = traced.traces
    assert (idle["idle"], idle["first"], idle["last"], idle["slowest"]) == (19, 1, 19, 7)
    assert idle["slowest_ns"] == 6 * MS
    assert (traced.tracer.heartbeats_total, traced.tracer.idle_total) == (19, 19)


def test_what_is_only_counted_is_written_down_now_and_then(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    beat = heartbeat(traced.steps, "eth0", 0, 40, 1)
    traced.feed(beat, received_ns=0, taken_ns=IDLE_NS + 1)
    assert len(traced.traces) == 1


def test_the_latest_heartbeat_of_each_interface_is_traced(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0", "eth1")
    traced.feed(
        batch(traced.steps, "eth0", 0, 40),
        heartbeat(traced.steps, "eth0", 1, 41, 1),
        heartbeat(traced.steps, "eth0", 2, 42, 2),
        heartbeat(traced.steps, "eth1", 0, 42, 3),
        received_ns=5 * MS,
        taken_ns=5 * MS,
    )
    traced.evaluate(5 * MS, 6 * MS, 7 * MS)
    idle, *moved = traced.traces
    assert (idle["idle"], idle["first"], idle["last"]) == (1, 1, 1)
    assert [trace["id"] for trace in moved] == [2, 3]


def test_the_newest_heartbeat_can_be_seen_at_once(tmp_path: Path) -> None:
    traced = Traced(tmp_path, "eth0")
    assert traced.tracer.newest(traced.steps) is None
    traced.feed(heartbeat(traced.steps, "eth0", 0, 40, 8), received_ns=5 * MS, taken_ns=6 * MS)
    traced.tracer.advancing()
    newest = traced.tracer.newest(traced.steps)
    assert newest is not None
    assert newest["id"] == 8
    assert [hop["kind"] for hop in newest["hops"]][:4] == ["lfta", "log", "flight", "inbox"]
