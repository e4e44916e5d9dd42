"""Streams that are answers, read from a log that is given by a script.

They are read also across its daemon's death.
"""

from __future__ import annotations

import queue
from typing import TYPE_CHECKING, Any, Self

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.cli.delivery import stream_reader as module
from gscope.cli.delivery.checkpoint import StreamPosition
from gscope.cli.delivery.stream_events import StreamRows, StreamsFinished
from gscope.cli.delivery.stream_reader import Passthrough
from gscope.errors import StreamError
from gscope.queries.compile import CompileContext, QueryText, compile_queries
from gscope.queries.streams.leases import LeaseReply
from gscope.queries.streams.messages import (
    Batch,
    EndOfStream,
    Extent,
    Heartbeat,
    Message,
    Punctuation,
)
from gscope.queries.streams.process_events import ProcessError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from gscope.cli.events import Event

PROGRAM = compile_queries(
    [QueryText("SELECT time, len FROM IP", "query")], CompileContext(("a",))
).program
STREAM = PROGRAM.lftas[0].stream("a")
GONE = StreamError("the capture daemon does not answer")


class Log:
    """A log whose daemon dies where the script says so.

    Attributes:
        messages: all there are.
        dies_before: at these sequence numbers, once each.
        acknowledged: what was reported, in order.
        shed: sequence numbers of batches that are gone when they are to be read.
        is_up: whether the daemon answers.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.messages: list[Message] = []
        self.dies_before: list[int] = []
        self.acknowledged: list[dict[str, int]] = []
        self.shed: set[int] = set()
        self.is_up = True
        (folder / "log").mkdir()

    def batch(self, *times: int) -> None:
        sequence = len(self.messages)
        table = pa.table({"time": pa.array(times, pa.int64()), "len": pa.array(times, pa.int64())})
        pq.write_table(table, self.folder / "log" / f"{sequence}.parquet")
        extents = (Extent("time", min(times), max(times)),)
        self.messages.append(Batch(STREAM, sequence, f"{sequence}.parquet", len(times), 1, extents))

    def beat(self, bound: int) -> None:
        promise = (Punctuation("time", bound),)
        self.messages.append(Heartbeat(STREAM, len(self.messages), 1, bound, promise))

    def end(self) -> None:
        self.messages.append(EndOfStream(STREAM, len(self.messages)))

    def connect(self, _path: Path) -> Client:
        return Client(self)


class Client:
    def __init__(self, log: Log) -> None:
        self._log = log

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def subscribe(self, cursors: Mapping[str, int]) -> Iterator[list[Message]]:
        for message in self._log.messages[cursors[STREAM] :]:
            if message.sequence in self._log.dies_before:
                self._log.dies_before.remove(message.sequence)
                self._log.is_up = False
                raise GONE
            yield [message]

    def acknowledge(self, consumer: str, cursors: Mapping[str, int]) -> None:
        assert consumer == "cli"
        self._log.acknowledged.append(dict(cursors))

    acknowledge_last = acknowledge

    def lease(self, _consumer: str, batches: Mapping[str, Sequence[int]]) -> LeaseReply:
        return LeaseReply(
            {s: tuple(n for n in numbers if n in self._log.shed) for s, numbers in batches.items()}
        )

    def ping(self) -> None:
        if not self._log.is_up:
            raise GONE


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Log:
    made = Log(tmp_path)
    monkeypatch.setattr(module, "LogClient", made.connect)
    return made


def follow(
    log: Log, positions: Mapping[str, StreamPosition] | None = None, *, holds: bool = False
) -> tuple[list[int], object]:
    """The times that were delivered, and the last event; a daemon that died comes back at once."""
    events: queue.SimpleQueue[Event] = queue.SimpleQueue()
    reading = Passthrough(PROGRAM, log.folder, positions)
    assert reading.streams == (STREAM,)
    reading.connect(events)
    times: list[int] = []
    settled: dict[str, int] = {}
    while True:
        try:
            event = events.get(timeout=0.2)
        except queue.Empty:
            if log.is_up:
                continue
            log.is_up = True
            reading.connect(events)
            continue
        found = event.report
        if not isinstance(found, StreamRows):
            return times, found
        tables = [table for _, tables in found.rows for table in tables]
        times += [t for table in tables for t in table["time"].to_pylist()]
        if not holds or found.is_last:
            settled = {s: p.cursor for s, p in found.streams.items()}
        found.done(settled)


def scripted(log: Log) -> list[int]:
    log.batch(3, 1, 2)
    log.beat(3)
    log.batch(5, 4, 3)
    log.beat(5)
    log.end()
    return [1, 2, 3, 3, 4, 5]


def test_rows_come_in_order_and_batches_are_acknowledged_when_all_their_rows_are_out(
    log: Log,
) -> None:
    expected = scripted(log)
    times, last = follow(log)
    assert (times, last) == (expected, StreamsFinished())
    assert [each[STREAM] for each in log.acknowledged] == [0, 2, 5, 5]


@pytest.mark.parametrize("places", [[0], [2], [4], [1, 3], [0, 1, 2, 3, 4]])
def test_a_daemon_that_dies_and_comes_back_changes_nothing(log: Log, places: list[int]) -> None:
    expected = scripted(log)
    log.dies_before = places
    times, last = follow(log)
    assert (times, last) == (expected, StreamsFinished())


def test_nothing_is_acknowledged_before_it_is_on_record(log: Log) -> None:
    expected = scripted(log)
    times, _ = follow(log, holds=True)
    assert times == expected
    assert log.acknowledged == [{STREAM: 5}]


def test_reading_goes_on_where_it_was_on_record(log: Log) -> None:
    scripted(log)
    times, _ = follow(log, {STREAM: StreamPosition(0, 2, 3)})
    assert times == [3, 3, 4, 5]


def test_what_was_delivered_to_its_end_is_acknowledged_and_not_read(log: Log) -> None:
    scripted(log)
    times, last = follow(log, {STREAM: StreamPosition(5, 5, 5, has_ended=True)})
    assert (times, last) == ([], StreamsFinished())
    assert log.acknowledged == [{STREAM: 5}]


def test_what_was_shed_meanwhile_is_passed_over(log: Log) -> None:
    scripted(log)
    log.shed = {0}
    assert follow(log)[0] == [3, 4, 5]


def test_a_log_that_is_there_but_cannot_be_read_is_an_error(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_self: Client, _cursors: object) -> Any:
        message = "stream holds messages 7 to 9, not 0"
        raise StreamError(message)

    monkeypatch.setattr(Client, "subscribe", refuse)
    _, last = follow(log)
    assert last == ProcessError("stream holds messages 7 to 9, not 0")
