"""The client of a log on another host, here over a unix socket."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.server import LogServer
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import DisconnectedError, StreamError, UsageError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Batch, Extent, Message, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPECS = [StreamSpec("a", (("tb", Direction.INCREASING),), epoch="tb")]
MOST = 2


def rows(first: int, count: int = 3) -> pa.RecordBatch:
    return pa.record_batch(
        {"tb": pa.array([first] * count, pa.int64()), "text": [b"x", None, b"\xff\x00"][:count]}
    )


def write(log: StreamLog, first: int) -> None:
    """Write three rows of one epoch, and the heartbeat that seals them."""
    log.append("a", rows(first), (Extent("tb", first, first),))
    log.write_heartbeat(first, 0, [StreamHeartbeat("a", (Punctuation("tb", first + 1),))])


@pytest.fixture
def log(tmp_path: Path) -> Iterator[StreamLog]:
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    server = LogServer(log, tmp_path / "capture.sock")
    yield log
    log.close()
    server.stop()


@pytest.fixture
def client(log: StreamLog, tmp_path: Path) -> Iterator[RemoteLog]:
    with RemoteLog(LogAddress(tmp_path / "capture.sock"), "relay") as client:
        yield client


def received(client: RemoteLog, cursors: dict[str, int]) -> list[Message]:
    return [message for messages in client.subscribe(cursors) for message in messages]


def test_messages_and_their_rows_arrive_exactly_as_they_were_written(
    log: StreamLog, client: RemoteLog
) -> None:
    client.describe()
    for first in (10, 20):
        write(log, first)
    log.end(["a"])
    messages = received(client, {"a": 0})
    batches = [message for message in messages if isinstance(message, Batch)]
    tables = [client.pull("a", batch.sequence) for batch in batches]
    found = [None if table is None else table.to_pydict() for table in tables]
    assert found == [rows(10).to_pydict(), rows(20).to_pydict()]


def test_a_reader_receives_the_row_groups_that_it_asks_for(
    log: StreamLog, client: RemoteLog
) -> None:
    client.describe()
    schema = pa.schema([pa.field("tb", pa.int64(), nullable=False)])
    for first in (0, 2000, 4000):
        numbers = pa.array(range(first, first + 2000), pa.int64())
        batch = pa.RecordBatch.from_arrays([numbers], schema=schema)
        log.append("a", batch, (Extent("tb", 7, 7),))
    log.end(["a"])
    expected = {
        (): [],
        (1,): list(range(2000, 4000)),
        (0, 2): [*range(2000), *range(4000, 6000)],
        None: list(range(6000)),
    }
    for wanted, numbers in expected.items():
        table = client.pull("a", 0, row_groups=wanted)
        assert table is not None
        assert table["tb"].to_pylist() == numbers
    for wrong in ((3,), (-1,), (1, 1), (2, 0)):
        with pytest.raises(StreamError, match="invalid row group"):
            client.pull("a", 0, row_groups=wrong)


def test_a_batch_is_kept_until_every_registered_consumer_has_acknowledged_it(
    log: StreamLog, client: RemoteLog, tmp_path: Path
) -> None:
    client.describe()
    with RemoteLog(LogAddress(tmp_path / "capture.sock"), "other") as other:
        other.describe()
        write(log, 10)
        client.acknowledge({"a": 1})
        assert client.pull("a", 0) is not None
        other.acknowledge({"a": 1})
        assert client.pull("a", 0) is None
        (stream,) = client.describe().streams
        assert (stream.base, stream.end, stream.acknowledged) == (1, 2, 1)


def test_a_log_without_a_registered_consumer_keeps_everything(
    log: StreamLog, client: RemoteLog
) -> None:
    write(log, 10)
    log.end(["a"])
    assert not log.wait_acknowledged(0)
    client.describe()
    client.acknowledge({"a": 3})
    assert log.wait_acknowledged(0)


def test_a_consumer_that_leaves_holds_nothing_and_makes_room_for_another(
    log: StreamLog, client: RemoteLog, tmp_path: Path
) -> None:
    with RemoteLog(LogAddress(tmp_path / "capture.sock"), "other") as other:
        client.describe()
        other.describe()
        write(log, 10)
        write(log, 20)
        client.acknowledge({"a": 2})
        other.deregister()
        assert log.positions["a"].base == 2
        assert log.acknowledged == {"relay": {"a": 2}}
        with pytest.raises(StreamError, match="unknown consumer 'other'"):
            other.deregister()
    log.register("third")
    # Nothing is released while no consumer is left.
    for name in ("relay", "third"):
        log.deregister(name)
    assert log.positions["a"].base == 2
    assert log.register("fourth") == {"a": 2}


def test_what_was_released_stays_released_after_the_last_consumer_has_left(
    tmp_path: Path,
) -> None:
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    write(log, 10)
    write(log, 20)
    log.register("relay")
    log.acknowledge("relay", {"a": 2})
    log.deregister("relay")
    log.close()
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    assert (log.acknowledged, log.positions["a"].base, log.stats.shed_tuples_total) == ({}, 2, 0)
    log.register("relay")
    assert [type(m).__name__ for m in log.read({"a": 2})] == ["Batch", "Heartbeat"]
    log.end(["a"])
    assert not log.wait_acknowledged(0)
    log.acknowledge("relay", {"a": 5})
    log.deregister("relay")
    assert log.wait_acknowledged(0)
    log.close()


def test_a_consumer_that_the_log_was_opened_for_does_not_leave(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "log", SPECS, consumers=[Consumer("job")], most_registered=MOST)
    with pytest.raises(StreamError, match="cannot be forgotten"):
        log.deregister("job")
    log.close()


def test_registered_consumers_are_known_after_a_restart(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    identity = log.identity
    write(log, 10)
    log.register("relay")
    log.acknowledge("relay", {"a": 1})
    log.close()
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    assert log.acknowledged == {"relay": {"a": 1}}
    assert log.identity == identity
    log.close()


def test_a_restart_misses_nothing_that_was_released_before_a_consumer_registered(
    tmp_path: Path,
) -> None:
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    log.register("one")
    write(log, 10)
    log.acknowledge("one", {"a": 1})
    log.register("two")
    log.close()
    log = StreamLog(tmp_path / "log", SPECS, most_registered=MOST)
    assert log.acknowledged == {"one": {"a": 1}, "two": {"a": 1}}
    log.close()


def test_a_log_that_takes_no_consumers_refuses_one(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "log", SPECS, consumers=[Consumer("job")])
    with pytest.raises(StreamError, match="too many consumers"):
        log.register("relay")
    log.close()


@pytest.mark.parametrize("name", ["", "x" * 65, "../x", "a b", "é", "a\n"])
def test_invalid_names_of_consumers_are_refused(log: StreamLog, name: str) -> None:
    with pytest.raises(StreamError, match="invalid consumer"):
        log.register(name)


def test_the_number_of_consumers_is_limited(log: StreamLog, client: RemoteLog) -> None:
    for number in range(MOST):
        log.register(f"relay{number}")
    with pytest.raises(StreamError, match="too many consumers"):
        client.describe()
    assert len(log.acknowledged) == MOST


def test_a_batch_that_was_never_written_is_not_there(log: StreamLog, client: RemoteLog) -> None:
    assert client.pull("a", 7) is None
    with pytest.raises(StreamError, match="unknown stream 'x'"):
        client.pull("x", 0)


def test_a_segment_that_is_released_while_it_is_read_is_read_to_its_end(log: StreamLog) -> None:
    log.register("relay")
    write(log, 10)
    file = log.open_segment("a", 0)
    assert file is not None
    log.acknowledge("relay", {"a": 2})
    with file:
        assert pq.read_table(file).num_rows == 3


def test_cancel_ends_a_subscription_from_another_thread(log: StreamLog, client: RemoteLog) -> None:
    write(log, 10)
    subscription = client.subscribe({"a": 0})
    seen: list[int] = []
    has_begun = threading.Event()

    def read() -> None:
        try:
            for messages in subscription:
                seen.extend(message.sequence for message in messages)
                has_begun.set()
        except StreamError:
            seen.append(-1)

    reader = threading.Thread(target=read)
    reader.start()
    assert has_begun.wait(10)
    subscription.cancel()
    reader.join(10)
    assert not reader.is_alive()
    assert seen[:2] == [0, 1]


def test_a_missing_server_is_one_sentence(tmp_path: Path) -> None:
    with (
        RemoteLog(LogAddress(tmp_path / "none.sock"), "relay") as client,
        pytest.raises(DisconnectedError, match=r"none\.sock does not answer: "),
    ):
        client.describe()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sensor1:9470", TcpAddress("sensor1", 9470)),
        ("[2001:db8::1]:9470", TcpAddress("2001:db8::1", 9470)),
        ("10.0.0.1:0", TcpAddress("10.0.0.1", 0)),
    ],
)
def test_addresses_are_read_and_shown(text: str, expected: TcpAddress) -> None:
    assert TcpAddress.parse(text) == expected
    assert str(expected) == text


@pytest.mark.parametrize(
    "text", ["", "9470", ":9470", "a:", "a:-1", "a:65536", "a:x", "::1:9", "[a]:9", "a/b:9", "é:9"]
)
def test_wrong_addresses_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="invalid address"):
        TcpAddress.parse(text)


@pytest.mark.parametrize(
    ("host", "is_loopback"),
    [("localhost", True), ("127.8.8.8", True), ("::1", True), ("0.0.0.0", False), ("x", False)],
)
def test_only_loopback_addresses_are_of_this_host_alone(host: str, is_loopback: bool) -> None:
    assert TcpAddress(host, 1).is_loopback == is_loopback
