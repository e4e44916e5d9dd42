"""The log over Arrow Flight on a unix socket."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pyarrow.flight as flight
import pytest

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.log import server as server_module
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.consumers import Consumer
from gscope.capture.log.log import StreamLog
from gscope.capture.log.server import LogServer
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.engine.log_client.flight_client import LogClient
from gscope.errors import StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.run_folder.socket_address import SocketAddress
from gscope.queries.streams.messages import Message, Punctuation

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SPECS = [StreamSpec(name, (("tb", Direction.INCREASING),), epoch="tb") for name in ("a", "b")]


@pytest.fixture
def log(tmp_path: Path) -> Iterator[StreamLog]:
    log = StreamLog(tmp_path / "log", SPECS, consumers=[Consumer("job")])
    server = LogServer(log, tmp_path / "capture.sock")
    yield log
    log.close()
    server.stop()


@pytest.fixture
def client(log: StreamLog, tmp_path: Path) -> Iterator[LogClient]:
    with LogClient(tmp_path / "capture.sock") as client:
        yield client


def beat(log: StreamLog, bound: int) -> None:
    log.write_heartbeat(bound, 0, [StreamHeartbeat("a", (Punctuation("tb", bound),))])


def flat(chunks: Iterator[list[Message]]) -> list[int]:
    return [message.sequence for messages in chunks for message in messages]


def test_messages_arrive_as_they_are_written_until_the_end(
    log: StreamLog, client: LogClient
) -> None:
    beat(log, 1)
    subscription = client.subscribe({"a": 0})
    first = next(subscription)
    assert first == log.read({"a": 0})
    beat(log, 2)
    assert [m.sequence for m in next(subscription)] == [1]
    log.end(["a"])
    assert flat(subscription) == [2]


def test_two_subscribers_read_at_their_own_pace(log: StreamLog, client: LogClient) -> None:
    for bound in range(5):
        beat(log, bound)
    log.end(["a"])
    assert flat(client.subscribe({"a": 0})) == [0, 1, 2, 3, 4, 5]
    assert flat(client.subscribe({"a": 3})) == [3, 4, 5]


def test_many_messages_cross(log: StreamLog, client: LogClient) -> None:
    streams = [StreamHeartbeat(name, (Punctuation("tb", 0),)) for name in ("a", "b")]
    for number in range(3000):
        log.write_heartbeat(number, 0, streams)
    log.end(["a", "b"])
    assert len(flat(client.subscribe({"a": 0, "b": 0}))) == 6002


def test_a_closed_log_ends_a_subscription(log: StreamLog, client: LogClient) -> None:
    seen: list[int] = []
    reader = threading.Thread(target=lambda: seen.extend(flat(client.subscribe({"a": 0}))))
    reader.start()
    log.close()
    reader.join(10)
    assert (reader.is_alive(), seen) == (False, [])


def test_an_abandoned_subscription_harms_no_other(log: StreamLog, client: LogClient) -> None:
    beat(log, 1)
    subscription = client.subscribe({"a": 0})
    next(subscription)
    del subscription
    beat(log, 2)
    log.end(["a"])
    assert flat(client.subscribe({"a": 0})) == [0, 1, 2]


def test_a_client_that_stops_reading_does_not_hold_up_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "STOP_SECONDS", 0.1)
    log = StreamLog(tmp_path / "log", SPECS)
    server = LogServer(log, tmp_path / "capture.sock")
    for _ in range(200):
        log.write_heartbeat(
            0, 0, [StreamHeartbeat("a", tuple(Punctuation("x" * 50, 0) for _ in range(1000)))]
        )
    with LogClient(tmp_path / "capture.sock") as client:
        subscription = client.subscribe({"a": 0})
        next(subscription)
        log.close()
        server.stop()
        subscription.close()  # type: ignore[attr-defined]  # a generator, declared as an iterator


def test_acknowledgements_arrive(log: StreamLog, client: LogClient) -> None:
    beat(log, 1)
    log.end(["a", "b"])
    client.acknowledge("job", {"a": 2, "b": 1})
    assert log.wait_acknowledged(0)


def test_streams_and_counters_are_reported(log: StreamLog, client: LogClient) -> None:
    client.ping()
    assert client.streams() == ("a", "b")
    assert client.counters()["batches_total"] == 0


def test_a_refusal_arrives_as_its_sentence(client: LogClient) -> None:
    with pytest.raises(StreamError, match=r"^unknown consumer 'who'; available: \['job'\]$"):
        client.acknowledge("who", {})
    with pytest.raises(StreamError, match="unknown stream 'x'"):
        next(client.subscribe({"x": 0}))


@pytest.mark.parametrize(
    "ticket",
    [b"", b"\xff", b"[]", b"{}", b'{"cursors": 1}', b'{"cursors": {"a": "0"}}', b"[" * 100_000],
)
def test_a_malformed_ticket_is_refused_and_the_server_lives(
    log: StreamLog, client: LogClient, tmp_path: Path, ticket: bytes
) -> None:
    address = SocketAddress(tmp_path / "capture.sock")
    with flight.connect(address.location) as raw, pytest.raises(flight.FlightServerError):
        raw.do_get(flight.Ticket(ticket))
    address.close()
    client.ping()


@pytest.mark.parametrize(
    ("name", "body"), [("shout", b""), ("acknowledge", b"{"), ("acknowledge", b"{}")]
)
def test_a_malformed_action_is_refused_and_the_server_lives(
    log: StreamLog, client: LogClient, tmp_path: Path, name: str, body: bytes
) -> None:
    address = SocketAddress(tmp_path / "capture.sock")
    with flight.connect(address.location) as raw, pytest.raises(flight.FlightServerError):
        list(raw.do_action(flight.Action(name, body)))
    address.close()
    client.ping()


def test_the_actions_are_listed(log: StreamLog, tmp_path: Path) -> None:
    address = SocketAddress(tmp_path / "capture.sock")
    with flight.connect(address.location) as raw:
        names = {action.type for action in raw.list_actions()}
    address.close()
    of_consumers = {"describe", "acknowledge", "deregister", "lease", "punctuate"}
    assert names == {*of_consumers, "streams", "counters", "ping"}
    assert json.dumps(sorted(names))


def test_a_missing_listener_is_one_sentence(tmp_path: Path) -> None:
    with (
        LogClient(tmp_path / "none.sock") as client,
        pytest.raises(StreamError, match="does not answer"),
    ):
        client.ping()


def test_a_deep_folder_is_reached(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    log = StreamLog(deep / "log", SPECS)
    server = LogServer(log, deep / "capture.sock")
    with LogClient(deep / "capture.sock") as client:
        client.ping()
    log.close()
    server.stop()


def test_a_folder_that_is_not_there_is_one_sentence(log: StreamLog, tmp_path: Path) -> None:
    with pytest.raises(StreamError, match="cannot listen on"):
        LogServer(log, tmp_path / "none" / "capture.sock")


def test_a_daemon_that_is_gone_has_heard_the_last_acknowledgement(tmp_path: Path) -> None:
    with LogClient(tmp_path / "capture.sock") as client:
        client.acknowledge_last("hfta", {"a": 1})


def test_a_last_acknowledgement_that_is_refused_is_an_error(client: LogClient) -> None:
    with pytest.raises(StreamError):
        client.acknowledge_last("stranger", {"a": 1})


def test_heartbeats_are_asked_for_by_stream_and_bound(tmp_path: Path) -> None:
    log = StreamLog(tmp_path / "asked", SPECS)
    demands = Demands(log.streams)
    woken: list[str] = []
    demands.attach(["a"], lambda: woken.append("a"))
    server = LogServer(log, tmp_path / "asked.sock", demands)
    try:
        with LogClient(tmp_path / "asked.sock") as client:
            client.punctuate({"a": {"tb": 7}, "b": {}})
            client.punctuate({"a": {"tb": 5}})
            assert (demands.take("ab"), woken) == ({"a": {"tb": 7}, "b": {}}, ["a", "a"])
            with pytest.raises(StreamError, match="unknown stream 'c'"):
                client.punctuate({"c": {}})
    finally:
        log.close()
        server.stop()


@pytest.mark.parametrize("wanted", [7, ["a"], {"a": 7}, {"a": {"tb": "x"}}, {"a": {"tb": 1.5}}])
def test_nonsense_is_no_demand(tmp_path: Path, log: StreamLog, wanted: object) -> None:
    address = SocketAddress(tmp_path / "capture.sock")
    with flight.connect(address.location) as raw:
        body = json.dumps({"wanted": wanted}).encode()
        with pytest.raises(flight.FlightServerError, match="expected an object of"):
            list(raw.do_action(flight.Action("punctuate", body)))
    address.close()


def test_no_demand_is_answered_where_heartbeats_come_by_themselves(client: LogClient) -> None:
    with pytest.raises(StreamError, match=r"heartbeat\.mode"):
        client.punctuate({"a": {}})
