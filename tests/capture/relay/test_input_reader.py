"""What an input may send: messages and rows that are refused before the relay sees them."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pytest
from tests.capture.relay.lftas import aggregation, table

from gscope.capture.log.description import SENSOR, StreamDescription, describe_log, describe_program
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.relay import input_reader
from gscope.capture.relay.endpoints import FixedEndpoint
from gscope.capture.relay.held_rows import Shelf
from gscope.capture.relay.input_events import Connected, Crashed, Disconnected, Received
from gscope.capture.relay.input_reader import MOST_PROMISES, InputReader
from gscope.queries.catalog.aggregate.partial_op import PartialOp
from gscope.queries.expressions.types import GsqlType
from gscope.queries.plan.program import Program
from gscope.queries.streams.losses import Losses, LostRows
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
    Shed,
)

if TYPE_CHECKING:
    from pathlib import Path

    from gscope.capture.relay.input_events import InputEvent

FLOW = aggregation([GsqlType.STRING], [(PartialOp.COUNT, GsqlType.INT)])
PROGRAM = Program(("eth0",), (FLOW,), (), (), ())
STREAM = "flow@eth0"
ROWS = table(FLOW, [(1, 10, b"x", 1), (2, 20, None, 1)])
PATIENCE_S = 10


class Input:
    """Takes the place of ``RemoteLog``: sends ``messages`` once, and ``rows`` for each batch."""

    messages: tuple[Message, ...] = ()
    rows: pa.Table | None = ROWS

    def __init__(self, *_: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def describe(self) -> Any:
        stream = StreamDescription(STREAM, 0, 9, 0, has_ended=False)
        return describe_log(SENSOR, "0" * 32, describe_program(PROGRAM), [stream])

    def subscribe(self, _cursors: object) -> Any:
        return Messages([list(self.messages)])

    def pull(self, *_: object) -> pa.Table | None:
        return self.rows


class Messages(list[list[Message]]):
    def cancel(self) -> None:
        pass


def read(folder: Path, monkeypatch: pytest.MonkeyPatch, *sent: Message, **fields: Any) -> Any:
    """Return what a relay is passed until the input is lost, and why it is lost."""
    made = type("Made", (Input,), {"messages": sent, **fields})
    monkeypatch.setattr(input_reader, "RemoteLog", made)
    passed: list[Received] = []
    ends: list[Disconnected] = []
    is_over = threading.Event()

    def put(event: InputEvent) -> bool:
        assert not isinstance(event, Crashed), event
        match event:
            case Connected():
                event.reply.put({STREAM: 0})
            case Received():
                passed.append(event)
            case Disconnected():
                ends.append(event)
                is_over.set()
        return not is_over.is_set()

    address = LogAddress(TcpAddress("sensor1", 9470))
    reader = InputReader("a", FixedEndpoint(address), "relay", PROGRAM, Shelf(folder, 1 << 30), put)
    reader.start()
    assert is_over.wait(PATIENCE_S)
    reader.stop()
    return passed, ends[0]


def beat(bound: int = 0, clock_ns: int = 0, promises: int = 1) -> Heartbeat:
    bounds = tuple(Punctuation("tb", bound) for _ in range(promises))
    return Heartbeat(STREAM, 0, 0, clock_ns, bounds, ())


def batch(rows: int = 2) -> Batch:
    return Batch(STREAM, 0, "../../etc/passwd", rows, 100, ())


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (EndOfStream("x", 0), "sensor1:9470 sent an unknown stream 'x'"),
        (beat(bound=1 << 63), "sent an invalid heartbeat of 'flow@eth0'"),
        (beat(bound=-(1 << 63) - 1), "sent an invalid heartbeat"),
        (beat(clock_ns=1 << 70), "sent an invalid heartbeat"),
        (beat(promises=MOST_PROMISES), "sent an invalid heartbeat"),
        (
            replace(beat(), losses=Losses((), (LostRows((Extent("x", 1, 1),)),))),
            "sent extents of unknown columns of 'flow@eth0'",
        ),
        (Shed(STREAM, 0, 1, 1, (Extent("p0", 1, 1),)), "sent extents of unknown columns"),
        (replace(batch(), extents=(Extent("x", 1, 1),)), "sent extents of unknown columns"),
        (batch(rows=-1), "sent a batch of -1 rows"),
        (batch(rows=3), "sent 2 rows of batch 0 of flow@eth0, expected 3"),
    ],
)
def test_messages_that_are_wrong_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sent: Message, reason: str
) -> None:
    passed, end = read(tmp_path, monkeypatch, sent)
    assert passed == []
    assert end.is_refused
    assert reason in end.reason


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (ROWS.drop(["p0"]), "expected the columns"),
        (ROWS.append_column("more", ROWS["p0"]), "expected the columns"),
        (ROWS.set_column(3, "p0", pa.array([1.0, 2.0])), "expected p0 as int64, got 'double'"),
        (ROWS.set_column(3, "p0", pa.array([1, 2], pa.uint64())), "expected p0 as int64"),
        (ROWS.set_column(0, "tb", pa.array([1, None])), "tb is NULL, which it cannot be"),
        (ROWS.slice(0, 0), "sent 0 rows"),
    ],
)
def test_rows_that_are_not_of_the_query_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: pa.Table, reason: str
) -> None:
    passed, end = read(tmp_path, monkeypatch, batch(rows.num_rows), rows=rows)
    assert passed == []
    assert end.is_refused
    assert reason in end.reason


def test_what_is_right_is_passed_on_with_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    narrow = ROWS.set_column(3, "p0", pa.array([1, 1], pa.int16()))
    (first, second), end = read(tmp_path, monkeypatch, batch(), beat(bound=5), rows=narrow)
    ((lfta, _, held),) = first.messages
    assert (lfta, held.read().equals(ROWS)) == ("flow", True)
    assert [message for _, message, _ in second.messages] == [beat(bound=5)]
    assert not end.is_refused
    # The input has shed the batch meanwhile.
    passed, _ = read(tmp_path, monkeypatch, batch(), rows=None)
    assert passed[0].messages == (("flow", batch(), None),)
