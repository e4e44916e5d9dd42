"""The service of a log for other hosts, and peers that do not behave."""

from __future__ import annotations

import json
import socket
import ssl
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.flight as flight
import pytest
from tests.capture.log.remote.cut import Cut
from tests.support.certificates import (
    TOKEN,
    Certificate,
    make_certificate,
    token_file,
)
from tests.support.gscope_command import PATIENCE_S
from tests.support.requirements import needs

from gscope.capture.heartbeats.demands import Demands
from gscope.capture.log.batches import StreamSpec
from gscope.capture.log.description import SENSOR
from gscope.capture.log.log import StreamLog
from gscope.capture.log.remote import forwarder
from gscope.capture.log.remote.address import LogAddress, TcpAddress
from gscope.capture.log.remote.client import RemoteLog
from gscope.capture.log.remote.credentials import Tokens, read_tokens, server_context
from gscope.capture.log.remote.listener import Listener, open_socket
from gscope.capture.log.remote.request_bound import MAX_REQUESTS
from gscope.capture.log.remote.service import RemoteService
from gscope.capture.log.stream_heartbeat import StreamHeartbeat
from gscope.errors import DisconnectedError, StreamError
from gscope.queries.expressions.types import Direction
from gscope.queries.streams.messages import Batch, Extent, Punctuation

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

SPECS = [StreamSpec("a", (("tb", Direction.INCREASING),), epoch="tb")]
ROWS = 1000
LARGE_ROWS = 200_000


class Served:
    """A log that is served on loopback."""

    def __init__(self, folder: Path, certificate: Certificate | None) -> None:
        self.log = StreamLog(folder / "log", SPECS, most_registered=4)
        self.certificate = certificate
        self._socket = open_socket(TcpAddress("127.0.0.1", 0))
        self._socket.setblocking(False)
        self.place = TcpAddress("127.0.0.1", self._socket.getsockname()[1])
        self.demands = Demands(self.log.streams)
        tls = None
        if certificate is not None:
            tls = server_context(certificate.certificate, certificate.key)
        listener = Listener(
            self._socket, tls, Tokens(read_tokens(token_file(folder))), str(self.place)
        )
        self.service = RemoteService(
            self.log, listener, folder / "remote.sock", self.demands, lftas=(), role=SENSOR
        )

    def write(self, first: int) -> None:
        column = pa.array([first] * ROWS, pa.int64())
        batch = pa.record_batch({"tb": column, "text": pa.array([b"x" * 100] * ROWS)})
        self.log.append("a", batch, (Extent("tb", first, first),))
        beat = StreamHeartbeat("a", (Punctuation("tb", first + 1),))
        self.log.write_heartbeat(first, 0, [beat])

    def write_large(self) -> None:
        """Write a batch that does not fit into the buffers between a server and a client."""
        column = pa.array([0] * LARGE_ROWS, pa.int64())
        batch = pa.record_batch({"tb": column, "text": pa.array([b"x" * 100] * LARGE_ROWS)})
        self.log.append("a", batch, (Extent("tb", 0, 0),))
        self.log.write_heartbeat(0, 0, [StreamHeartbeat("a", (Punctuation("tb", 1),))])

    def client(self, name: str = "relay", token: str = TOKEN, **how: Any) -> RemoteLog:
        trusted = how.get("trusted", self.certificate)
        pem = None if trusted is None else trusted.certificate.read_bytes()
        return RemoteLog(LogAddress(how.get("place", self.place), token, pem), name)

    def raw(self) -> socket.socket:
        """Return a connection after the handshake of TLS, if there is one."""
        plain = socket.create_connection((self.place.host, self.place.port), timeout=10)
        if self.certificate is None:
            return plain
        context = ssl.create_default_context(cafile=str(self.certificate.certificate))
        context.set_alpn_protocols(["h2"])
        return context.wrap_socket(plain, server_hostname="127.0.0.1")

    @property
    def refused(self) -> dict[str, int]:
        return dict(self.service.status()["refused_total"])

    def close(self) -> None:
        if not self.log.is_closed:
            self.log.close()
            self.service.stop()


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Certificate:
    return make_certificate(tmp_path_factory.mktemp("certificates"), "sensor1")


@pytest.fixture(params=["TLS", "plain"])
def served(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Served]:
    is_encrypted = request.param == "TLS"
    served = Served(tmp_path, request.getfixturevalue("certificate") if is_encrypted else None)
    yield served
    served.close()


@pytest.fixture
def plain(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path, None)
    yield served
    served.close()


@pytest.fixture
def encrypted(tmp_path: Path, certificate: Certificate) -> Iterator[Served]:
    served = Served(tmp_path, certificate)
    yield served
    served.close()


def eventually(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < until
        time.sleep(0.01)


pytestmark = needs("openssl")


def test_a_log_is_read_and_acknowledged_over_tcp(served: Served) -> None:
    with served.client() as client:
        description = client.describe()
        assert (description.role, description.log) == ("sensor", served.log.identity)
        for first in range(3):
            served.write(first)
        served.log.end(["a"])
        messages = [m for chunk in client.subscribe({"a": 0}) for m in chunk]
        batches = [m for m in messages if isinstance(m, Batch)]
        tables = [client.pull("a", batch.sequence) for batch in batches]
        assert [t.num_rows for t in tables if t is not None] == [ROWS] * 3
        (reader,) = served.service.status()["consumers"]
        assert reader["state"] == "connected"
        assert reader["peer"].startswith("127.0.0.1:")
        assert (reader["rows_out_total"], reader["waiting_tuples"]) == (3 * ROWS, 3 * ROWS)
        assert reader["bytes_out_total"] > 3 * ROWS * 100
        client.acknowledge({"a": 7})
        (reader,) = served.service.status()["consumers"]
        assert (reader["waiting_messages"], reader["waiting_tuples"]) == (0, 0)
    eventually(lambda: served.service.status()["consumers"][0]["state"] == "absent")
    assert served.log.wait_acknowledged(0)


def test_demands_for_heartbeats_arrive(plain: Served) -> None:
    woken: list[str] = []
    plain.demands.attach(["a"], lambda: woken.append("a"))
    with plain.client() as client:
        client.describe()
        client.punctuate({"a": {"tb": 5}})
    assert woken == ["a"]


@pytest.mark.parametrize(
    ("token", "reason", "message"),
    [
        ("", "missing_tokens", "refused the token: a token is required"),
        ("f" * 32, "wrong_tokens", "refused the token: the token is wrong"),
        (TOKEN[:-1], "wrong_tokens", "the token is wrong"),
        (TOKEN + "0", "wrong_tokens", "the token is wrong"),
    ],
)
def test_without_the_token_nothing_is_served(
    plain: Served, token: str, reason: str, message: str
) -> None:
    plain.write(0)
    with plain.client(token=token) as client:
        calls: list[Callable[[], object]] = [
            client.describe,
            client.ping,
            lambda: client.pull("a", 0),
            lambda: client.acknowledge({"a": 1}),
            lambda: list(client.subscribe({"a": 0})),
        ]
        for call in calls:
            with pytest.raises(StreamError, match=message):
                call()
    assert plain.refused == {reason: len(calls)}
    assert plain.service.status()["consumers"] == []


def test_a_log_in_a_folder_with_a_long_path_is_served(tmp_path: Path) -> None:
    folder = tmp_path / ("f" * 120)
    folder.mkdir()
    served = Served(folder, None)
    try:
        with served.client() as client:
            assert client.describe().log == served.log.identity
        assert served.refused == {}
    finally:
        served.close()


def test_a_connection_that_finds_no_server_is_counted(plain: Served, tmp_path: Path) -> None:
    (tmp_path / "remote.sock").unlink()
    with plain.raw() as raw:
        assert raw.recv(1) == b""
    eventually(lambda: plain.refused == {"unserved_connections": 1})


def test_a_peer_that_trusts_another_certificate_does_not_connect(
    encrypted: Served, tmp_path: Path
) -> None:
    other = make_certificate(tmp_path, "other")
    with encrypted.client(trusted=other) as client, pytest.raises(StreamError, match="not trusted"):
        client.describe()
    eventually(lambda: encrypted.refused.get("failed_handshakes", 0) > 0)


def test_a_certificate_for_another_name_is_refused(encrypted: Served) -> None:
    place = TcpAddress("localhost", encrypted.place.port)
    with encrypted.client(place=place) as client, pytest.raises(StreamError, match="subjectAlt"):
        client.describe()


def test_a_peer_without_tls_does_not_connect(encrypted: Served) -> None:
    with encrypted.client(trusted=None) as client, pytest.raises(DisconnectedError):
        client.describe()
    with encrypted.client() as client:
        client.describe()


def test_only_reading_and_acknowledging_is_possible(plain: Served) -> None:
    options = flight.FlightCallOptions(headers=[(b"authorization", f"Bearer {TOKEN}".encode())])
    with flight.connect(f"grpc://{plain.place}") as raw:
        for name in ("streams", "counters", "lease", "shutdown"):
            with pytest.raises(flight.FlightServerError, match="unknown action"):
                list(raw.do_action(flight.Action(name, b"{}"), options))
        descriptor = flight.FlightDescriptor.for_path("a")
        writer, _ = raw.do_put(descriptor, pa.schema([]), options)
        with pytest.raises((flight.FlightError, pa.ArrowException)):
            writer.close()
        for listing in (raw.list_flights(options=options), raw.list_flights(b"x", options)):
            with pytest.raises((flight.FlightError, pa.ArrowException)):
                list(listing)


def test_describe_comes_first_and_a_consumer_acknowledges_for_itself_alone(
    plain: Served,
) -> None:
    plain.write(0)
    with plain.client("one") as one, plain.client("two") as two:
        with pytest.raises(DisconnectedError, match="describe must be the first request"):
            one.acknowledge({"a": 1})
        with pytest.raises(DisconnectedError, match="describe must be the first request"):
            one.pull("a", 0)
        one.describe()
        two.describe()
        one.consumer = "two"
        with pytest.raises(StreamError, match="is that of the consumer 'one', not of 'two'"):
            one.acknowledge({"a": 1})
        with pytest.raises(StreamError, match="is that of the consumer 'one', not of 'two'"):
            one.deregister()
    assert plain.log.acknowledged == {"one": {}, "two": {}}


@pytest.mark.parametrize(
    "ticket",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b'{"cursors": {"x": 0}}',
        b'{"cursors": {"a": 99}}',
        b'{"cursors": {"a": -1}}',
        b'{"segment": {"stream": "x", "sequence": 0}}',
        b'{"segment": {"stream": "a", "sequence": true}}',
        b'{"segment": {"stream": "a", "sequence": "../../etc/passwd"}}',
        b'{"segment": ["a", 0]}',
        b'{"segment": {"stream": "a", "sequence": 0, "row_groups": 0}}',
        b'{"segment": {"stream": "a", "sequence": 0, "row_groups": [true]}}',
        b'{"segment": {"stream": "a", "sequence": 0, "groups": [0]}}',
    ],
)
def test_wrong_tickets_are_refused_and_the_service_lives(plain: Served, ticket: bytes) -> None:
    with plain.client() as client:
        client.describe()
        with pytest.raises((flight.FlightError, StreamError, pa.ArrowException)):
            raw_get(client, ticket)
        client.ping()


def raw_get(client: RemoteLog, ticket: bytes) -> None:
    client.client.do_get(flight.Ticket(ticket), client.options(5)).read_all()


def test_an_oversized_ticket_ends_the_connection_before_it_is_held(
    plain: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "REQUEST_BYTES_PER_S", 64 << 20)
    with plain.client() as client:
        client.describe()
        with pytest.raises((flight.FlightError, pa.ArrowException)):
            raw_get(client, b" " * (20 << 20))
    assert plain.refused == {"oversized_requests": 1}
    with plain.client() as client:
        client.describe()


def test_requests_that_pile_up_end_the_connection(plain: Served) -> None:
    plain.log.register("relay")
    plain.write_large()
    with plain.client("one") as one, plain.client("two") as two:
        one.describe()
        two.describe()
        ticket = flight.Ticket(b'{"segment": {"stream": "a", "sequence": 0}}')
        unread: list[Any] = []
        with suppress(pa.ArrowException):
            unread.extend(
                one.client.do_get(ticket, one.options(60)) for _ in range(MAX_REQUESTS + 1)
            )
        assert plain.refused == {"too_many_requests": 1}
        table = two.pull("a", 0)
        assert table is not None


def test_a_peer_without_the_token_has_a_few_requests(plain: Served) -> None:
    with plain.client(token="f" * 32) as client:
        for _ in range(3 * forwarder.MAX_UNPROVEN):
            with pytest.raises(StreamError):
                client.ping()
    assert plain.refused["too_many_requests"] >= 1
    with plain.client() as client:
        client.describe()
        for _ in range(3 * forwarder.MAX_UNPROVEN):
            client.ping()
        assert plain.service.status()["connections"] == 1


def test_a_later_subscription_of_a_consumer_ends_the_earlier_one(plain: Served) -> None:
    with plain.client() as one, plain.client() as two:
        one.describe()
        two.describe()
        plain.write(0)
        earlier = one.subscribe({"a": 0})
        messages = iter(earlier)
        assert len(next(messages)) == 2
        later = iter(two.subscribe({"a": 0}))
        assert len(next(later)) == 2
        assert list(messages) == []
        plain.write(1)
        assert [m.sequence for m in next(later)] == [2, 3]


def test_a_reader_that_stops_reading_holds_up_no_other_and_not_the_end(plain: Served) -> None:
    with plain.client("slow") as slow, plain.client("other") as other:
        slow.describe()
        other.describe()
        for number in range(16):
            beat = StreamHeartbeat("a", tuple(Punctuation("x" * 90, number) for _ in range(5000)))
            plain.log.write_heartbeat(number, 0, [beat])
        stalled = iter(slow.subscribe({"a": 0}))
        next(stalled)
        plain.log.end(["a"])
        assert sum(len(chunk) for chunk in other.subscribe({"a": 0})) == 17
        began = time.monotonic()
        plain.close()
        assert time.monotonic() - began < PATIENCE_S


def test_a_connection_cut_in_the_middle_is_an_error_and_the_batch_is_still_there(
    plain: Served,
) -> None:
    plain.log.register("relay")
    plain.write_large()
    with Cut(plain.place, after=3 << 20) as cut, plain.client(place=cut.place) as client:
        client.describe()
        with pytest.raises(DisconnectedError):
            client.pull("a", 0)
    with plain.client() as client:
        client.describe()
        table = client.pull("a", 0)
        assert table is not None
        assert table.num_rows == LARGE_ROWS


def test_silent_peers_are_disconnected_and_connections_of_a_host_are_bounded(
    plain: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "TOKEN_S", 0.5)
    silent = [plain.raw() for _ in range(forwarder.MAX_OF_HOST)]
    eventually(lambda: plain.service.status()["connections"] == forwarder.MAX_OF_HOST)
    more = plain.raw()
    assert more.recv(1) == b""
    assert plain.refused["too_many_connections"] == 1
    for each in silent:
        with suppress(ConnectionResetError):
            while each.recv(1000):
                pass
    eventually(lambda: plain.refused.get("silent_connections") == forwarder.MAX_OF_HOST)
    for each in (*silent, more):
        each.close()
    with plain.client() as client:
        client.describe()
        time.sleep(0.7)
        client.ping()
        assert plain.service.status()["connections"] == 1


def test_a_handshake_that_does_not_go_on_is_given_up(
    encrypted: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forwarder, "HANDSHAKE_S", 0.3)
    with socket.create_connection((encrypted.place.host, encrypted.place.port), 10) as half:
        half.sendall(b"\x16\x03\x01")
        with suppress(ConnectionResetError):
            while half.recv(100):
                pass
    eventually(lambda: encrypted.refused == {"failed_handshakes": 1})


def test_garbage_is_survived(served: Served) -> None:
    preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    for data in (b"GET / HTTP/1.1\r\n\r\n", preface + b"\xff" * 50, b"\0" * 5000, preface):
        with served.raw() as raw, suppress(OSError):
            raw.sendall(data)
    eventually(lambda: served.service.status()["connections"] == 0)
    with served.client() as client:
        client.describe()


def test_the_status_is_plain_json(plain: Served) -> None:
    assert json.loads(json.dumps(plain.service.status())) == {
        "address": str(plain.place),
        "is_encrypted": False,
        "connections": 0,
        "refused_total": {},
        "consumers": [],
    }


@pytest.mark.parametrize(
    ("address", "host"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
    ],
)
def test_an_ipv6_network_counts_as_one_host(address: str, host: str) -> None:
    assert forwarder.host_of(address) == host
