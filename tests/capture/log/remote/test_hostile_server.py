"""The client of a log, and servers that send too much, too slowly, or what is not Arrow data."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from tests.support.gscope_command import PATIENCE_S

from gscope.capture.log.remote import client as client_module
from gscope.capture.log.remote import connection
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.remote.connection import MAX_RESULT_BYTES
from gscope.capture.log.server import MAX_MESSAGES, MESSAGE_SCHEMA
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.streams.messages import EndOfStream
from gscope.queries.streams.wire import encode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator


class Server(flight.FlightServerBase):  # type: ignore[misc]  # pyarrow has no types
    """Sends what a test has put there."""

    results: Iterable[bytes] = ()
    schema: pa.Schema = MESSAGE_SCHEMA
    batches: Iterable[pa.RecordBatch] = ()

    def do_action(self, _context: Any, _action: Any) -> Iterator[bytes]:
        yield from self.results

    def do_get(self, _context: Any, _ticket: Any) -> Any:
        if isinstance(self.batches, list):
            return flight.RecordBatchStream(pa.Table.from_batches(self.batches, self.schema))
        return flight.GeneratorStream(self.schema, self.batches)


@pytest.fixture
def server() -> Iterator[Server]:
    server = Server("grpc://127.0.0.1:0")
    yield server
    # It waits for its calls to end, which no signal interrupts.
    ending = threading.Thread(target=server.shutdown, daemon=True)
    ending.start()
    ending.join(PATIENCE_S)
    assert not ending.is_alive(), "a call to the server has not ended"


@pytest.fixture
def client(server: Server) -> Iterator[RemoteLog]:
    with RemoteLog(LogAddress(TcpAddress("127.0.0.1", server.port)), "relay") as client:
        yield client


def test_only_the_results_that_are_needed_are_received(server: Server, client: RemoteLog) -> None:
    made = 0

    def endless() -> Iterator[bytes]:
        nonlocal made
        while True:
            made += 1
            yield bytes(1 << 20)

    server.results = endless()
    with pytest.raises(StreamError, match="expected one result of describe"):
        client.describe()
    assert made < 100


@pytest.mark.parametrize("results", [[], [b"{}", b"{}"], [bytes(MAX_RESULT_BYTES + 1)]])
def test_one_result_of_a_reasonable_size_is_expected(
    server: Server, client: RemoteLog, results: list[bytes]
) -> None:
    server.results = results
    with pytest.raises(StreamError, match="expected one result of describe"):
        client.describe()


def binary(offsets: list[int], *, nulls: int = 0) -> pa.Array:
    """Three texts at any offsets of nine bytes, with a count of NULLs that may be wrong."""
    places = pa.py_buffer(pa.array(offsets, pa.int32()).buffers()[1])
    valid = pa.py_buffer(b"\xff") if nulls else None
    return pa.Array.from_buffers(pa.binary(), 3, [valid, places, pa.py_buffer(bytes(9))], nulls)


def dictionary(index: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0, 0, index]), pa.array([b"x"]), safe=False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: binary([0, 7, 3, 9]),
        lambda: binary([0, -5, 3, 9]),
        lambda: binary([0, 3, 6, 9], nulls=2),
        lambda: dictionary(7),
        lambda: dictionary(-1),
    ],
)
def test_arrays_that_lead_out_of_their_buffers_are_refused(
    server: Server, client: RemoteLog, make: Callable[[], pa.Array]
) -> None:
    batch = pa.record_batch({"text": make()})
    server.schema, server.batches = batch.schema, [batch]
    with pytest.raises(StreamError, match="sent invalid data"):
        client.pull("a", 0)


def test_messages_are_checked_as_rows_are(server: Server, client: RemoteLog) -> None:
    server.batches = [pa.record_batch([binary([0, 7, 3, 9])], schema=MESSAGE_SCHEMA)]
    with pytest.raises(StreamError, match="sent invalid data"):
        list(client.subscribe({"a": 0}))
    end = encode(EndOfStream("a", 0))
    server.batches = [pa.record_batch([pa.array([end, None])], schema=MESSAGE_SCHEMA)]
    with pytest.raises(StreamError, match="sent NULL in place of a message"):
        list(client.subscribe({"a": 0}))
    for number, is_admitted in ((MAX_MESSAGES, True), (MAX_MESSAGES + 1, False)):
        records = pa.array([end] * number, pa.binary())
        server.batches = [pa.record_batch([records], schema=MESSAGE_SCHEMA)]
        if is_admitted:
            assert [len(found) for found in client.subscribe({"a": 0})] == [number]
        else:
            with pytest.raises(StreamError, match=f"sent {number} messages"):
                list(client.subscribe({"a": 0}))


@pytest.mark.parametrize("rows", [1, 1000])
def test_a_batch_without_end_is_refused_however_small_its_parts(
    server: Server, client: RemoteLog, rows: int
) -> None:
    batch = pa.record_batch({"n": pa.array(range(rows), pa.int64())})
    made = 0

    def endless() -> Iterator[pa.RecordBatch]:
        nonlocal made
        while True:
            made += 1
            yield batch

    server.schema, server.batches = batch.schema, endless()
    with pytest.raises(StreamError, match="sent a batch of more than 1000000 bytes"):
        client.pull("a", 0, most_bytes=1_000_000)
    assert made < 100_000


def test_a_slow_link_has_time_for_a_large_batch_and_a_silent_one_has_not(
    server: Server, client: RemoteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "CALL_S", 0.2)
    monkeypatch.setattr(connection, "CALL_S", 0.2)
    monkeypatch.setattr(client_module, "SLOWEST_BYTES_PER_S", 1000)
    batch = pa.record_batch({"n": pa.array([1], pa.int64())})

    def slow() -> Iterator[pa.RecordBatch]:
        for _ in range(4):
            time.sleep(0.1)
            yield batch

    server.schema, server.batches = batch.schema, slow()
    found = client.pull("a", 0, file_bytes=60_000)
    assert found is not None
    assert found.num_rows == 4
    server.batches = slow()
    with pytest.raises(DisconnectedError, match="does not answer"):
        client.pull("a", 0)
